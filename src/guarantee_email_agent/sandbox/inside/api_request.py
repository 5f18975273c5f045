"""A request of the sandbox's API, and the one answer that it gets."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

Send = Callable[[int, int, bytes], None]
"""(HTTP status, kind of content, content)"""


class Failure(Exception):  # noqa: N818 - an outcome that the client is told, not an error of ours
    """Why a request cannot be answered: an HTTP status and one sentence."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class Invalid(Failure):
    """An argument that does not fit; the client library expects status 422 with the place of it."""

    def __init__(self, place: str, problem: str) -> None:
        super().__init__(422, f"{place}: {problem}")
        self.place = place
        self.problem = problem


class Request:
    """One request. Answered once; whatever comes after the first answer is dropped."""

    def __init__(self, method: str, target: str, content_type: str, body: bytes, send: Send) -> None:
        self.method = method
        self.path, _, query = target.partition("?")
        self.query = _parsed(query) if query else {}
        self.content_type = content_type
        self.body = body
        self.answered = False
        self._send = send

    def arguments(self) -> Arguments:
        """The JSON object of the body. Raises Invalid."""
        if not self.body:
            return Arguments({})
        try:
            data = json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise Invalid("body", f"is not JSON: {error}") from None
        if not isinstance(data, dict):
            raise Invalid("body", "must be a JSON object")
        return Arguments(data)

    def answer(self, data: object, message: str = "Done", **more: object) -> None:
        self._reply(200, {"success": True, "message": message, "data": data, **more})

    def fail(self, failure: Failure) -> None:
        reply: dict[str, Any] = {"success": False, "message": failure.message, "data": None}
        if isinstance(failure, Invalid):
            reply["detail"] = [{"loc": ["body", failure.place], "msg": failure.problem, "type": "value_error"}]
        self._reply(failure.status, reply)

    def content(self, kind: int, content: bytes) -> None:
        if not self.answered:
            self.answered = True
            self._send(200, kind, content)

    def passed_on(self, status: int, content: bytes) -> None:
        """Answer with what another process has put into words."""
        if not self.answered:
            self.answered = True
            self._send(status, 0, content)

    def _reply(self, status: int, reply: Mapping[str, object]) -> None:
        if not self.answered:
            self.answered = True
            self._send(status, 0, json.dumps(reply).encode())


class Arguments:
    """The arguments of a request, each with its type checked. Raises Invalid."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._data = data

    def text(self, name: str) -> str:
        value = self.optional_text(name)
        if value is None:
            raise Invalid(name, "is missing")
        return value

    def optional_text(self, name: str) -> str | None:
        value = self._data.get(name)
        if value is not None and not isinstance(value, str):
            raise Invalid(name, "must be a string")
        return value

    def path(self, name: str) -> str:
        value = self.text(name)
        if not value or "\0" in value:
            raise Invalid(name, "must be a path")
        return value

    def flag(self, name: str, default: bool = False) -> bool:
        value = self._data.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise Invalid(name, "must be true or false")
        return value

    def integer(self, name: str) -> int | None:
        value = self._data.get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            raise Invalid(name, "must be an integer")
        return value

    def number(self, name: str) -> float | None:
        value = self._data.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e9:
            raise Invalid(name, "must be a number from 0 on")
        return float(value)

    def coordinate(self, name: str) -> float | None:
        value = self._data.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < 1e6:
            raise Invalid(name, "must be a number")
        return float(value)

    def mapping(self, name: str) -> Arguments | None:
        value = self._data.get(name)
        if value is not None and not isinstance(value, dict):
            raise Invalid(name, "must be an object")
        return None if value is None else Arguments(value)

    def texts(self, name: str) -> list[str]:
        value = self._data.get(name)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise Invalid(name, "must be a list of strings")
        return value

    def integers(self, name: str) -> list[int]:
        value = self._data.get(name)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(i, int) and not isinstance(i, bool) for i in value):
            raise Invalid(name, "must be a list of integers")
        return value


def _parsed(query: str) -> dict[str, str]:
    from urllib.parse import parse_qsl  # most requests have no query, and this takes a while to load

    return dict(parse_qsl(query.partition("#")[0], keep_blank_values=True))
