"""A table whose rows are found by a number that people copy by hand: a CSV file, or of an SQLite database."""

from __future__ import annotations

import csv
import errno
import io
import logging
import os
import re
import sqlite3
import stat
import threading
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Generic, TypeVar

from guarantee_email_agent.files.text_file import read_start
from guarantee_email_agent.services.call_errors import ToolError, format_sqlite_error, sqlite_tool_error

Row = TypeVar("Row")

_NO_ROWS: Final = "has no rows, as a failed export leaves it: no number would be known. Fill it in"
_SEPARATORS: Final = re.compile(r"[\s\u00ad\u2010-\u2015\u2212_-]+")
_SPOILT: Final = re.compile(r"[#=']|\d[.,]?\d*e\+\d+$|\d{5,}\.0$")


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

    def used(self, file: Path, present: list[str]) -> list[str]:
        """Those of a table's columns that are used. Raises TableError for `owner e-mail`: unread, all would be told."""
        names = {number_key(name): name for name in (*self.required, *(self.optional or ("status", "owner_email")))}
        for name in present:
            if (wanted := names.get(number_key(name), name)) not in present:
                raise TableError(f"{file}: has a column {name!r}. Call it {wanted}")
        known = None if self.optional is None else {*self.required, *self.optional}
        return [column for column in present if column and (known is None or column in known)]


class Table(ABC, Generic[Row]):
    @abstractmethod
    def find(self, number: str) -> Row | None:
        """Raises ToolError where the table cannot be read."""

    def close(self) -> None:
        """It holds nothing open between two calls."""


def number_key(number: str) -> str:
    """Two ways to write one number have one key: case, spaces, hyphens and underscores do not count.

    Customers copy numbers from labels and leave out or add just these. A letter is never taken for a digit.
    """
    return _SEPARATORS.sub("", unicodedata.normalize("NFKC", number)).casefold()


def parse_key(layout: TableLayout[Row], values: Mapping[str, str]) -> str:
    """Raises TableError where a row has no number, or what a spreadsheet made of one: nobody would be found by it."""
    key = number_key(values.get(layout.key, ""))
    if _SPOILT.match(key):
        spoilt = "is like 1E+15 or 1.0, or begins with '#', '=' or an apostrophe: a spreadsheet's form, not the number"
        raise TableError(f"{layout.key} {spoilt}. Correct it")
    if key:
        return key
    raise TableError(f"{layout.key} is empty. Fill it in, or remove the line")


logger = logging.getLogger(__name__)

SETTLED_S: Final = 1.0
_DELIMITERS: Final = ",;\t"


class CsvTable(Table[Row]):
    """The rows of a CSV file.

    A change is taken over once the file has not been written to for a second: half a file would tell customers that
    they are not in our records. While it is bad, or gone, nothing is looked up: the rows before it may be wrong by now.
    """

    def __init__(self, file: Path, layout: TableLayout[Row], now: Callable[[], float]) -> None:
        """now: seconds since 1970. Raises TableError."""
        self._file = file
        self._now = now
        self._lock = threading.Lock()
        self._problem = ""
        with _os_errors_as_table_errors(file):
            self._version = _version(file)
            content = file.read_bytes()
        self._layout = layout
        columns = self._take(content)
        if unused := [column for column in columns if column not in layout.used(file, columns)]:
            logger.info("%s: these columns are not used: %s", file, ", ".join(unused))

    def find(self, number: str) -> Row | None:
        with self._lock:
            try:
                self._reload()
            except TableError as error:
                if str(error) != self._problem:
                    logger.warning("%s. Until that is done, nothing is looked up", error)
                self._problem = str(error)
            if self._problem:
                raise ToolError(f"{self._layout.server}_unavailable", self._problem, retryable=True)
            return self._rows.get(number_key(number))

    def _take(self, content: bytes) -> list[str]:
        """The columns. That of owners may not go again: without it anybody would be told."""
        layout = self._layout
        self._rows, columns = _parse(self._file, layout, content)
        owners = {"owner_email"}.intersection(columns)
        self._layout = replace(layout, required=tuple(dict.fromkeys((*layout.required, *owners))))
        return columns

    def _reload(self) -> None:
        with _os_errors_as_table_errors(self._file):
            version = _version(self._file)
            is_same = version == self._version and not self._problem
            if is_same or 0 <= self._now() - version[2] / 1e9 < SETTLED_S:
                return
            content = self._file.read_bytes()
            if _version(self._file) != version:
                return
        self._take(content)
        self._version, self._problem = version, ""
        logger.info("%s: read anew, %d %ss", self._file, len(self._rows), self._layout.number)


@contextmanager
def _os_errors_as_table_errors(file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or error
        raise TableError(f"{file}: cannot be read ({reason}). Create it, or name another file") from None


def _version(file: Path) -> tuple[int, int, int]:
    """What changes when a file does: its inode, its size, and when it was modified (ns)."""
    status = os.stat(file)
    if not stat.S_ISREG(status.st_mode):  # a pipe would hold up this call, and with it all others, for ever
        raise OSError(errno.EINVAL, "it is no regular file")
    return status.st_ino, status.st_size, status.st_mtime_ns


def _parse(file: Path, layout: TableLayout[Row], content: bytes) -> tuple[dict[str, Row], list[str]]:
    """The rows by key, and the columns. Raises TableError for the first problem."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise TableError(f"{file}:{line}: is not written in UTF-8. Save it as CSV in UTF-8") from None
    head = text.partition("\n")[0]
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=max(_DELIMITERS, key=head.count), strict=True)
    columns = _columns(file, layout, rows)
    used = layout.used(file, columns)
    found: dict[str, Row] = {}
    lines: dict[str, int] = {}
    for line, row in _rows(file, rows):
        if len(row) != len(columns):
            raise TableError(f"{file}:{line}: has {len(row)} values for {len(columns)} columns")
        values = dict(zip(columns, row, strict=True))
        try:
            key = parse_key(layout, values)
            parsed = layout.parse({column: values[column] for column in used})
        except TableError as error:
            raise TableError(f"{file}:{line}: {error}") from None
        if key in found:
            text = f"the same {layout.number} as in line {lines[key]} (case, spaces and hyphens do not count)"
            raise TableError(f"{file}:{line}: {text}. Remove one of them")
        found[key], lines[key] = parsed, line
    if not found:
        raise TableError(f"{file} {_NO_ROWS}")
    return found, columns


def _columns(file: Path, layout: TableLayout[Row], rows: Iterator[list[str]]) -> list[str]:
    _, head = next(_rows(file, rows), (1, []))
    columns = [name.strip().casefold() for name in head]
    for name in layout.required:
        if name not in columns:
            example = ",".join(dict.fromkeys((*layout.required, *(layout.optional or ("status",))[:1])))
            raise TableError(f"{file}:1: has no column {name}. Begin the file with a line such as {example}")
    for name in layout.used(file, columns):
        if columns.count(name) > 1:
            raise TableError(f"{file}:1: has the column {name} twice. Remove one of them")
    return columns


def _rows(file: Path, rows: Iterator[list[str]]) -> Iterator[tuple[int, list[str]]]:
    """With the number of the line that each begins in; blank lines left out."""
    while True:
        line = rows.line_num + 1  # type: ignore[attr-defined]  # a csv reader's
        try:
            row = next(rows, None)
        except csv.Error as error:
            raise TableError(f"{file}:{line}: is no CSV ({error})") from None
        if row is None:
            return
        if any(value.strip() for value in row):
            yield line, row


MAGIC: Final = b"SQLite format 3\0"
BUSY_S: Final = 5.0


class SqliteTable(Table[Row]):
    """Nothing is kept in memory: each call asks the database, which is never written."""

    def __init__(self, file: Path, layout: TableLayout[Row]) -> None:
        """Raises TableError."""
        self._file = file
        self._layout = layout
        try:
            with self._connect() as connection:
                self._columns = _columns_of(file, layout, connection)
                self._check_rows(connection)
        except sqlite3.Error as error:
            raise TableError(format_sqlite_error(file, error)) from None

    def find(self, number: str) -> Row | None:
        layout, key = self._layout, _quoted(self._layout.key)
        try:
            with self._connect() as connection:
                # As it was written first: that may use an index, and the other has to look at every line.
                rows = self._select(connection, f"{key} = ?", number) or self._select(
                    connection, f"number_key(CAST({key} AS TEXT)) = ?", number_key(number)
                )
                if not rows and not self._select(connection, "1 LIMIT 1"):
                    raise ToolError(f"{layout.server}_unavailable", f"{self._file.name} {_NO_ROWS}", True)
        except sqlite3.Error as error:
            raise sqlite_tool_error(layout.server, self._file, error) from None
        try:
            if len(rows) > 1:
                raise TableError(f"holds this {layout.number} more than once (case, spaces and hyphens do not count)")
            return layout.parse(rows[0]) if rows else None
        except TableError as error:
            message = f"{self._file.name}: table {layout.name}: {error}"
            raise ToolError(f"{layout.server}_bad_record", message) from None

    def _check_rows(self, connection: sqlite3.Connection) -> None:
        layout, seen = self._layout, set[str]()
        for number, row in enumerate(self._select(connection, "1"), 1):
            place = f"{self._file}: table {layout.name}, row {number}"
            try:
                key = parse_key(layout, row)
                layout.parse(row)
            except TableError as error:
                raise TableError(f"{place}: {error}") from None
            if key in seen:
                text = f"the same {layout.number} as in a row before (case, spaces and hyphens do not count)"
                raise TableError(f"{place}: {text}. Remove one of them")
            seen.add(key)
        if not seen:
            raise TableError(f"{self._file} {_NO_ROWS}")

    def _select(self, connection: sqlite3.Connection, where: str, *values: str) -> list[dict[str, str]]:
        # Names of tables and columns are quoted; values are bound.
        names = ", ".join(f"CAST({_quoted(column)} AS TEXT)" for column in self._columns)  # of bytes, too
        query = f"SELECT {names} FROM {_quoted(self._layout.name)} WHERE {where}"  # noqa: S608
        return [
            {
                column.casefold(): "" if value is None else str(value)
                for column, value in zip(self._columns, row, strict=True)
            }
            for row in connection.execute(query, values)
        ]

    @contextmanager
    def _connect(self) -> Iterator[sqlite3.Connection]:
        uri = f"{self._file.absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True, timeout=BUSY_S)) as connection:
            connection.create_function("number_key", 1, lambda value: number_key(str(value)), deterministic=True)
            yield connection


def is_sqlite(file: Path) -> bool:
    """By its first bytes, whatever its name; a file that cannot be read is none."""
    with suppress(OSError):
        return read_start(file, len(MAGIC)) == MAGIC
    return False


def _columns_of(file: Path, layout: TableLayout[Row], connection: sqlite3.Connection) -> list[str]:
    query = "SELECT name FROM pragma_table_info(?)"
    present = [str(row[0]) for row in connection.execute(query, (layout.name,))]
    if not present:
        raise TableError(f"{file}: has no table {layout.name}. Create it, or name another file")
    folded = [name.casefold() for name in present]
    for name in layout.required:
        if name not in folded:
            raise TableError(f"{file}: the table {layout.name} has no column {name}. Add it")
    used = layout.used(file, folded)
    return [name for name in present if name.casefold() in used]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
