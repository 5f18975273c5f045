"""A warranty list in a CSV file, read anew when the file changes."""

from __future__ import annotations

import csv
import io
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from guarantee_email_agent.mcp_servers.warranty.warranty_list import (
    COLUMNS,
    REQUIRED,
    Record,
    WarrantyListError,
    record_of,
    serial_key,
)

SETTLED_S: Final = 1.0
_DELIMITERS: Final = ",;\t"


class _Version(NamedTuple):
    """What changes when a file does."""

    inode: int
    size: int
    modified_ns: int


class CsvList:
    """The records of a CSV file.

    A change is taken over once the file has been left alone for a second: half a file would tell customers that they
    are not in our records. A file that turns bad, or disappears, leaves the last good records in use.
    """

    def __init__(self, file: Path, now: Callable[[], float], diagnose: Callable[[str], None]) -> None:
        """now: seconds since 1970. diagnose: takes a line for the operator. Raises WarrantyListError."""
        self._file = file
        self._now = now
        self._diagnose = diagnose
        self._lock = threading.Lock()
        self._complaint = ""
        self._version = _version(file)  # that was read last, were it good or bad
        self._records, unused = _parsed(file, _content(file))
        if unused:
            diagnose(f"{file}: these columns are not used: {', '.join(unused)}")

    def find(self, serial_number: str) -> Record | None:
        with self._lock:
            try:
                self._refresh()
            except WarrantyListError as error:
                self._complain(str(error))
            return self._records.get(serial_key(serial_number))

    def _refresh(self) -> None:
        version = _version(self._file)
        if version == self._version or 0 <= self._now() - version.modified_ns / 1e9 < SETTLED_S:
            return
        content = _content(self._file)
        if _version(self._file) != version:
            return
        self._version = version  # only now: what could not be read is tried again at the next call
        self._records, _ = _parsed(self._file, content)
        self._complaint = ""
        self._diagnose(f"{self._file}: read anew, {len(self._records)} serial numbers")

    def _complain(self, complaint: str) -> None:
        if complaint != self._complaint:
            self._diagnose(f"{complaint}. Until that is done, the list as it was before is used")
        self._complaint = complaint


def _version(file: Path) -> _Version:
    try:
        found = os.stat(file)
    except OSError as error:
        raise WarrantyListError(_unreadable(file, error)) from None
    return _Version(found.st_ino, found.st_size, found.st_mtime_ns)


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise WarrantyListError(_unreadable(file, error)) from None


def _parsed(file: Path, content: bytes) -> tuple[dict[str, Record], list[str]]:
    """The records by key, and the columns that are not used. Raises WarrantyListError for the first problem."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise WarrantyListError(f"{file}:{line}: is not written in UTF-8. Save it as CSV in UTF-8") from None
    head = text.partition("\n")[0]
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=max(_DELIMITERS, key=head.count), strict=True)
    columns = _columns(file, rows)
    records: dict[str, Record] = {}
    lines: dict[str, int] = {}
    for line, row in _rows(file, rows):
        if len(row) != len(columns):
            raise WarrantyListError(f"{file}:{line}: has {len(row)} values for {len(columns)} columns")
        try:
            record = record_of(dict(zip(columns, row, strict=True)))
        except WarrantyListError as error:
            raise WarrantyListError(f"{file}:{line}: {error}") from None
        key = serial_key(record.serial_number)
        if key in records:
            raise WarrantyListError(
                f"{file}:{line}: the same serial number as in line {lines[key]} (case, spaces and hyphens do not "
                "count). Remove one of them"
            )
        records[key], lines[key] = record, line
    return records, [column for column in columns if column not in COLUMNS]


def _columns(file: Path, rows: Iterator[list[str]]) -> list[str]:
    _, head = next(_rows(file, rows), (1, []))
    columns = [name.strip().casefold() for name in head]
    for name in REQUIRED:
        if name not in columns:
            raise WarrantyListError(
                f"{file}:1: has no column {name}. Begin the file with a line such as {','.join(COLUMNS[:3])}"
            )
    for name in COLUMNS:
        if columns.count(name) > 1:
            raise WarrantyListError(f"{file}:1: has the column {name} twice. Remove one of them")
    return columns


def _rows(file: Path, rows: Iterator[list[str]]) -> Iterator[tuple[int, list[str]]]:
    """With the number of the line that each begins in; blank lines left out."""
    while True:
        line = rows.line_num + 1  # type: ignore[attr-defined]  # a csv reader's
        try:
            row = next(rows, None)
        except csv.Error as error:
            raise WarrantyListError(f"{file}:{line}: is no CSV ({error})") from None
        if row is None:
            return
        if any(value.strip() for value in row):
            yield line, row


def _unreadable(file: Path, error: OSError) -> str:
    return f"{file}: cannot be read ({error.strerror or error}). Create it, or name another file"
