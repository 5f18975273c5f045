"""A warranty list in the table `warranties` of an SQLite database, which others may write at the same time."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final

from guarantee_email_agent.mcp_servers.tool_error import ToolError, format_sqlite_error, sqlite_tool_error
from guarantee_email_agent.mcp_servers.warranty.warranty_list import (
    COLUMNS,
    REQUIRED,
    SERVER,
    WarrantyListError,
    WarrantyRecord,
    parse_record,
    serial_key,
)

MAGIC: Final = b"SQLite format 3\0"
BUSY_S: Final = 5.0


class SqliteList:
    """Nothing is kept in memory: each call asks the database, which is never written."""

    def __init__(self, file: Path) -> None:
        """Raises WarrantyListError."""
        self._file = file
        try:
            with self._connect() as connection:
                self._columns = _columns(file, connection)
                self._check_records(connection)
        except sqlite3.Error as error:
            raise WarrantyListError(format_sqlite_error(file, error)) from None

    def find(self, serial_number: str) -> WarrantyRecord | None:
        try:
            with self._connect() as connection:
                # As it was written first: that may use an index, and the other has to look at every line.
                rows = self._select(connection, "serial_number = ?", serial_number) or self._select(
                    connection, "serial_key(serial_number) = ?", serial_key(serial_number)
                )
        except sqlite3.Error as error:
            raise sqlite_tool_error(SERVER, self._file, error) from None
        try:
            if len(rows) > 1:
                text = "holds this serial number more than once (case, spaces and hyphens do not count)"
                raise WarrantyListError(text)
            return parse_record(rows[0]) if rows else None
        except WarrantyListError as error:
            raise ToolError(f"{SERVER}_bad_record", f"{self._file.name}: table warranties: {error}") from None

    def _check_records(self, connection: sqlite3.Connection) -> None:
        seen: set[str] = set()
        for number, row in enumerate(self._select(connection, "1"), 1):
            try:
                key = serial_key(parse_record(row).serial_number)
            except WarrantyListError as error:
                raise WarrantyListError(f"{self._file}: table warranties, row {number}: {error}") from None
            if key in seen:
                text = "the same serial number as in a row before (case, spaces and hyphens do not count)"
                raise WarrantyListError(f"{self._file}: table warranties, row {number}: {text}. Remove one of them")
            seen.add(key)

    def _select(self, connection: sqlite3.Connection, where: str, *values: str) -> list[dict[str, str]]:
        # Names of columns are ours; values are bound.
        query = f"SELECT {', '.join(self._columns)} FROM warranties WHERE {where}"  # noqa: S608
        return [
            {column: "" if value is None else str(value) for column, value in zip(self._columns, row, strict=True)}
            for row in connection.execute(query, values)
        ]

    @contextmanager
    def _connect(self) -> Iterator[sqlite3.Connection]:
        uri = f"{self._file.absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True, timeout=BUSY_S)) as connection:
            connection.create_function("serial_key", 1, lambda value: serial_key(str(value)), deterministic=True)
            yield connection


def is_sqlite(file: Path) -> bool:
    """By its first bytes, whatever its name; a file that cannot be read is none."""
    with suppress(OSError), file.open("rb") as opened:
        return opened.read(len(MAGIC)) == MAGIC
    return False


def _columns(file: Path, connection: sqlite3.Connection) -> list[str]:
    present = {str(row[0]) for row in connection.execute("SELECT name FROM pragma_table_info('warranties')")}
    if not present:
        raise WarrantyListError(f"{file}: has no table warranties. Create it, or name another file")
    for name in REQUIRED:
        if name not in present:
            raise WarrantyListError(f"{file}: the table warranties has no column {name}. Add it")
    return [name for name in COLUMNS if name in present]
