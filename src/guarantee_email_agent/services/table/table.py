"""A table whose rows are found by a number that people copy by hand."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

Row = TypeVar("Row")
RowOut = TypeVar("RowOut", covariant=True)

_SEPARATORS: Final = re.compile(r"[\s\u00ad\u2010-\u2015\u2212_-]+")


class TableError(Exception):
    """What is wrong with the table, where, and what to do. Quotes no number."""


@dataclass(frozen=True, slots=True)
class TableLayout(Generic[Row]):
    """What a table looks like.

    server: as error codes begin. name: of the table in an SQLite database. key: the column with the number. number:
    what people call it. required: columns that have to be there; optional: further ones that are used, None for all.
    parse: a row from its values by column, empty where there is nothing; raises TableError without the place.
    """

    server: str
    name: str
    key: str
    number: str
    required: tuple[str, ...]
    optional: tuple[str, ...] | None
    parse: Callable[[Mapping[str, str]], Row]

    def used(self, present: list[str]) -> list[str]:
        """Those of the columns of a table that are used, in its order."""
        known = None if self.optional is None else {*self.required, *self.optional}
        return [column for column in present if column and (known is None or column in known)]


class Table(Protocol[RowOut]):
    def find(self, number: str) -> RowOut | None:
        """Raises ToolError where the table cannot be read."""


def number_key(number: str) -> str:
    """Two ways to write one number have one key: case, spaces, hyphens and underscores do not count.

    Customers copy numbers from labels and leave out or add just these. A letter is never taken for a digit.
    """
    return _SEPARATORS.sub("", unicodedata.normalize("NFKC", number)).casefold()


def parse_key(layout: TableLayout[Row], values: Mapping[str, str]) -> str:
    """Raises TableError where a row has no number."""
    if key := number_key(values.get(layout.key, "")):
        return key
    raise TableError(f"{layout.key} is empty. Fill it in, or remove the line")
