"""A request of the sandbox's API, its arguments, and its reply; and both on the socket to the server outside."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    import asyncio  # the server outside needs none

T = TypeVar("T")
Result = tuple[dict[str, Any], str]
"""What an operation answers: data and message."""


@dataclass(frozen=True, slots=True)
class Reply:
    """kind: of the content, see `KINDS`."""

    status: int
    kind: int
    content: bytes


def success(data: object, message: str = "Done", **more: object) -> Reply:
    return Reply(200, 0, json.dumps({"success": True, "message": message, "data": data, **more}).encode())


class RequestError(Exception):
    """Why a request cannot be answered: an HTTP status and one sentence."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self._reply: dict[str, Any] = {"success": False, "message": message, "data": None}

    def reply(self) -> Reply:
        return Reply(self.status, 0, json.dumps(self._reply).encode())


class InvalidArgumentError(RequestError):
    """An argument that does not fit; the client library expects status 422 with the place of it."""

    def __init__(self, place: str, problem: str) -> None:
        super().__init__(422, f"{place}: {problem}")
        self._reply["detail"] = [{"loc": ["body", place], "msg": problem, "type": "value_error"}]


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """One request. target: path and query."""

    method: str
    target: str
    body: bytes

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def query(self) -> dict[str, str]:
        from urllib.parse import parse_qsl  # most requests have no query, and this takes a while to load

        query = self.target.partition("?")[2].partition("#")[0]
        return dict(parse_qsl(query, keep_blank_values=True)) if query else {}

    def arguments(self) -> Arguments:
        """The JSON object of the body, or else the query. Raises InvalidArgumentError."""
        if not self.body:
            return Arguments(self.query)
        try:
            data = json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise InvalidArgumentError("body", f"is not JSON: {error}") from None
        if not isinstance(data, dict):
            raise InvalidArgumentError("body", "must be a JSON object")
        return Arguments(data)


class Arguments:
    """The arguments of a request, each with its type checked. Raises InvalidArgumentError."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._data = data

    def text(self, name: str) -> str:
        value = self.optional_text(name)
        if value is None:
            raise InvalidArgumentError(name, "is missing")
        return value

    def optional_text(self, name: str) -> str | None:
        text: str | None = self._typed(name, str, "must be a string")
        return text if text is None else _checked_text(name, text)

    def path(self, name: str) -> str:
        value = self.text(name)
        if not value or "\0" in value:
            raise InvalidArgumentError(name, "must be a path")
        return value

    def optional_path(self, name: str) -> str | None:
        return self.path(name) if self.optional_text(name) else None

    def flag(self, name: str, default: bool = False) -> bool:
        value = self._typed(name, bool, "must be true or false")
        return default if value is None else value

    def integer(self, name: str) -> int | None:
        value: int | None = self._checked(name, _is_integer, "must be an integer")
        return value

    def number(self, name: str) -> float | None:
        value = self._checked(name, lambda value: _is_number(value) and 0 <= value < 1e9, "must be a number from 0 on")
        return None if value is None else float(value)

    def timeout(self, name: str) -> float | None:
        """Seconds; None where there is no limit, which 0 stands for as well."""
        return self.number(name) or None

    def coordinate(self, name: str) -> float | None:
        value = self._checked(name, lambda value: _is_number(value) and abs(value) < 1e6, "must be a number")
        return None if value is None else float(value)

    def texts(self, name: str) -> list[str]:
        items = self._list(name, lambda item: isinstance(item, str), "must be a list of strings")
        return [_checked_text(name, item) for item in items]

    def integers(self, name: str) -> list[int]:
        return self._list(name, _is_integer, "must be a list of integers")

    def _list(self, name: str, is_valid_item: Callable[[Any], bool], problem: str) -> list[Any]:
        value = self._checked(name, lambda value: isinstance(value, list) and all(map(is_valid_item, value)), problem)
        return value or []

    def _typed(self, name: str, kind: type[T], problem: str) -> T | None:
        value: T | None = self._checked(name, lambda value: isinstance(value, kind), problem)
        return value

    def _checked(self, name: str, is_valid: Callable[[Any], bool], problem: str) -> Any:
        value = self._data.get(name)
        if value is not None and not is_valid(value):
            raise InvalidArgumentError(name, problem)
        return value


def choose(name: str, value: str, options: Mapping[str, T]) -> T:
    """What an argument stands for. Raises InvalidArgumentError for one that is not among the options."""
    if value not in options:
        raise InvalidArgumentError(name, f"must be one of {', '.join(options)}")
    return options[value]


def encode(text: str) -> bytes:
    """As UTF-8. A byte of a file's name that is none is kept as such (PEP 383)."""
    return text.encode("utf-8", "surrogateescape")


def _checked_text(name: str, text: str) -> str:
    try:
        encode(text)
    except UnicodeEncodeError:
        raise InvalidArgumentError(name, "holds half of a surrogate pair, which is no character") from None
    return text


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, float) or _is_integer(value)


READY: Final = b"ready\n"
"""The first bytes from the process inside, once it has dropped its rights."""

REQUEST: Final = struct.Struct(">IIQ")
"""A request is: number, length of the head, length of the body; then head and body."""
REPLY: Final = struct.Struct(">IHHQ")
"""A reply is: number, HTTP status, kind of content, length of the content; then the content."""

KINDS: Final = ("application/json", "application/octet-stream", "image/png")
"""Kinds of content by number, so that nothing from inside can end up in a header."""


def read_exactly(read: Callable[[int], bytes], count: int) -> bytes:
    """So many bytes from what `read(at most)` gives. Raises EOFError where it gives no more."""
    data = bytearray()
    while len(data) < count:
        chunk = read(min(count - len(data), 1 << 20))
        if not chunk:
            raise EOFError
        data += chunk
    return bytes(data)


def pack_request(number: int, method: str, target: str, body: bytes) -> bytes:
    # No character of a request line or a header ends it for JSON.
    head = json.dumps((method, target)).encode()
    return b"".join((REQUEST.pack(number, len(head), len(body)), head, body))


def pack_reply(number: int, reply: Reply) -> bytes:
    return REPLY.pack(number, reply.status, reply.kind, len(reply.content)) + reply.content


async def receive_request(reader: asyncio.StreamReader) -> tuple[int, ApiRequest]:
    """The request and its number. Raises EOFError."""
    number, head, body = REQUEST.unpack(await reader.readexactly(REQUEST.size))
    method, target = json.loads(await reader.readexactly(head))
    return number, ApiRequest(method, target, await reader.readexactly(body))


async def receive_reply(reader: asyncio.StreamReader, longest: int) -> Reply:
    """Raises EOFError, also for one that is longer than `longest` bytes."""
    _, status, kind, length = REPLY.unpack(await reader.readexactly(REPLY.size))
    if length > longest:
        raise EOFError(f"it answered with more than {longest >> 20} MiB")
    return Reply(status, kind, await reader.readexactly(length))
