"""A request of the sandbox's API, and the one answer that it gets."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

T = TypeVar("T")
Send = Callable[[int, int, bytes], None]
"""(HTTP status, kind of content, content)"""
Result = tuple[dict[str, Any], str]
"""What an operation answers: data and message."""


class RequestError(Exception):
    """Why a request cannot be answered: an HTTP status and one sentence."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self._reply: dict[str, Any] = {"success": False, "message": message, "data": None}

    def reply(self) -> bytes:
        return json.dumps(self._reply).encode()


class InvalidArgumentError(RequestError):
    """An argument that does not fit; the client library expects status 422 with the place of it."""

    def __init__(self, place: str, problem: str) -> None:
        super().__init__(422, f"{place}: {problem}")
        self._reply["detail"] = [{"loc": ["body", place], "msg": problem, "type": "value_error"}]


class ApiRequest:
    """One request. Answered once; whatever comes after the first answer is dropped."""

    def __init__(self, method: str, target: str, content_type: str, body: bytes, send: Send) -> None:
        self.method = method
        self.path, _, query = target.partition("?")
        self.query = _parse_query(query) if query else {}
        self.content_type = content_type
        self.body = body
        self._answered = False
        self._send = send

    def arguments(self) -> Arguments:
        """The JSON object of the body. Raises InvalidArgumentError."""
        if not self.body:
            return Arguments({})
        try:
            data = json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise InvalidArgumentError("body", f"is not JSON: {error}") from None
        if not isinstance(data, dict):
            raise InvalidArgumentError("body", "must be a JSON object")
        return Arguments(data)

    def answer(self, data: object, message: str = "Done", **more: object) -> None:
        self.send(200, 0, json.dumps({"success": True, "message": message, "data": data, **more}).encode())

    def fail(self, error: RequestError) -> None:
        self.send(error.status, 0, error.reply())

    def send(self, status: int, kind: int, content: bytes) -> None:
        """kind: of the content, see `wire.KINDS`."""
        if not self._answered:
            self._answered = True
            self._send(status, kind, content)


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
        return self._typed(name, str, "must be a string")

    def path(self, name: str) -> str:
        value = self.text(name)
        if not value or "\0" in value:
            raise InvalidArgumentError(name, "must be a path")
        return value

    def flag(self, name: str, default: bool = False) -> bool:
        value = self._typed(name, bool, "must be true or false")
        return default if value is None else value

    def integer(self, name: str) -> int | None:
        value: int | None = self._checked(name, _is_integer, "must be an integer")
        return value

    def number(self, name: str) -> float | None:
        value = self._checked(name, lambda value: _is_number(value) and 0 <= value < 1e9, "must be a number from 0 on")
        return None if value is None else float(value)

    def coordinate(self, name: str) -> float | None:
        value = self._checked(name, lambda value: _is_number(value) and abs(value) < 1e6, "must be a number")
        return None if value is None else float(value)

    def mapping(self, name: str) -> Arguments | None:
        value: dict[str, Any] | None = self._typed(name, dict, "must be an object")
        return None if value is None else Arguments(value)

    def texts(self, name: str) -> list[str]:
        return self._list(name, lambda item: isinstance(item, str), "must be a list of strings")

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


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, float) or _is_integer(value)


def _parse_query(query: str) -> dict[str, str]:
    from urllib.parse import parse_qsl  # most requests have no query, and this takes a while to load

    return dict(parse_qsl(query.partition("#")[0], keep_blank_values=True))
