"""A table in an SQLite database, which others may write at the same time."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final, Generic

from guarantee_email_agent.services.table.table import Row, TableError, TableLayout, number_key, parse_key
from guarantee_email_agent.services.tool_error import ToolError, format_sqlite_error, sqlite_tool_error

MAGIC: Final = b"SQLite format 3\0"
BUSY_S: Final = 5.0


class SqliteTable(Generic[Row]):
    """Nothing is kept in memory: each call asks the database, which is never written. A Table."""

    def __init__(self, file: Path, layout: TableLayout[Row]) -> None:
        """Raises TableError."""
        self._file = file
        self._layout = layout
        try:
            with self._connect() as connection:
                self._columns = _columns(file, layout, connection)
                self._check_rows(connection)
        except sqlite3.Error as error:
            raise TableError(format_sqlite_error(file, error)) from None

    def find(self, number: str) -> Row | None:
        layout, key = self._layout, _quoted(self._layout.key)
        try:
            with self._connect() as connection:
                # As it was written first: that may use an index, and the other has to look at every line.
                rows = self._select(connection, f"{key} = ?", number) or self._select(
                    connection, f"number_key({key}) = ?", number_key(number)
                )
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

    def _select(self, connection: sqlite3.Connection, where: str, *values: str) -> list[dict[str, str]]:
        # Names of tables and columns are quoted; values are bound.
        names = ", ".join(map(_quoted, self._columns))
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
    if not file.is_file():
        return False
    with suppress(OSError), file.open("rb") as opened:
        return opened.read(len(MAGIC)) == MAGIC
    return False


def _columns(file: Path, layout: TableLayout[Row], connection: sqlite3.Connection) -> list[str]:
    query = "SELECT name FROM pragma_table_info(?)"
    present = [str(row[0]) for row in connection.execute(query, (layout.name,))]
    if not present:
        raise TableError(f"{file}: has no table {layout.name}. Create it, or name another file")
    folded = [name.casefold() for name in present]
    for name in layout.required:
        if name not in folded:
            raise TableError(f"{file}: the table {layout.name} has no column {name}. Add it")
    used = layout.used(folded)
    return [name for name in present if name.casefold() in used]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
