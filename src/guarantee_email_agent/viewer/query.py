"""What a page is asked for after the `?`: read and checked; a person may have typed it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from starlette.datastructures import QueryParams

from guarantee_email_agent.utils.errors import AgentError
from guarantee_email_agent.utils.text import printable, truncate

_MAX_TEXT: Final = 200
_NUMBER: Final = re.compile("[0-9]{1,15}")
_PLACE: Final = re.compile(r"([0-9]{1,15})\.([0-9]{1,15})")


class QueryError(AgentError):
    """The address asks for what there is not."""


class Query:
    """Values that are missing or empty are None. Every method raises QueryError."""

    def __init__(self, values: QueryParams) -> None:
        self._values = values

    def text(self, name: str) -> str | None:
        value = self._values.get(name, "")
        if len(value) > _MAX_TEXT:
            raise _wrong(name, value, f"at most {_MAX_TEXT} characters")
        return value or None

    def choice(self, name: str, choices: Iterable[str]) -> str | None:
        value = self.text(name)
        if value is not None and value not in (known := list(choices)):
            raise _wrong(name, value, f"one of {', '.join(known)}")
        return value

    def number(self, name: str) -> int | None:
        value = self.text(name)
        if value is None:
            return None
        if not _NUMBER.fullmatch(value):
            raise _wrong(name, value, "a whole number")
        return int(value)

    def place(self, name: str) -> tuple[int, int] | None:
        """Of a result in its run: position and repetition, such as `12.1`."""
        value = self.text(name)
        if value is None:
            return None
        if (found := _PLACE.fullmatch(value)) is None:
            raise _wrong(name, value, "a place such as 12.1")
        return int(found[1]), int(found[2])


def _wrong(name: str, value: str, wanted: str) -> QueryError:
    return QueryError(f"{name}='{printable(truncate(value, 60))}' in the address is not {wanted}", "viewer_bad_query")
