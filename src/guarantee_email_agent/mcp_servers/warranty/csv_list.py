"""A warranty list in a CSV file, read anew when the file changes."""

from __future__ import annotations

import csv
import io
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from guarantee_email_agent.mcp_servers.command_line import log_diagnostic
from guarantee_email_agent.mcp_servers.warranty.warranty_list import (
    COLUMNS,
    REQUIRED,
    WarrantyListError,
    WarrantyRecord,
    parse_record,
    serial_key,
)

SETTLED_S: Final = 1.0
_DELIMITERS: Final = ",;\t"


class CsvList:
    """The records of a CSV file.

    A change is taken over once the file has not been written to for a second: half a file would tell customers that
    they are not in our records. A file that turns bad, or disappears, leaves the last good records in use.
    """

    def __init__(self, file: Path, now: Callable[[], float]) -> None:
        """now: seconds since 1970. Raises WarrantyListError."""
        self._file = file
        self._now = now
        self._lock = threading.Lock()
        self._last_problem = ""
        with _os_errors_as_list_errors(file):
            self._version = _version(file)  # that was read last, were it good or bad
            content = file.read_bytes()
        self._records, unused = _parse(file, content)
        if unused:
            log_diagnostic(f"{file}: these columns are not used: {', '.join(unused)}")

    def find(self, serial_number: str) -> WarrantyRecord | None:
        with self._lock:
            try:
                self._reload()
            except WarrantyListError as error:
                if str(error) != self._last_problem:
                    log_diagnostic(f"{error}. Until that is done, the list as it was before is used")
                self._last_problem = str(error)
            return self._records.get(serial_key(serial_number))

    def _reload(self) -> None:
        with _os_errors_as_list_errors(self._file):
            version = _version(self._file)
            if version == self._version or 0 <= self._now() - version[2] / 1e9 < SETTLED_S:
                return
            content = self._file.read_bytes()
            if _version(self._file) != version:
                return
        self._version = version  # only now: what could not be read is tried again at the next call
        self._records, _ = _parse(self._file, content)
        self._last_problem = ""
        log_diagnostic(f"{self._file}: read anew, {len(self._records)} serial numbers")


@contextmanager
def _os_errors_as_list_errors(file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or error
        raise WarrantyListError(f"{file}: cannot be read ({reason}). Create it, or name another file") from None


def _version(file: Path) -> tuple[int, int, int]:
    """What changes when a file does: its inode, its size, and when it was modified (ns)."""
    status = os.stat(file)
    return status.st_ino, status.st_size, status.st_mtime_ns


def _parse(file: Path, content: bytes) -> tuple[dict[str, WarrantyRecord], list[str]]:
    """The records by key, and the columns that are not used. Raises WarrantyListError for the first problem."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise WarrantyListError(f"{file}:{line}: is not written in UTF-8. Save it as CSV in UTF-8") from None
    head = text.partition("\n")[0]
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=max(_DELIMITERS, key=head.count), strict=True)
    columns = _columns(file, rows)
    records: dict[str, WarrantyRecord] = {}
    lines: dict[str, int] = {}
    for line, row in _rows(file, rows):
        if len(row) != len(columns):
            raise WarrantyListError(f"{file}:{line}: has {len(row)} values for {len(columns)} columns")
        try:
            record = parse_record(dict(zip(columns, row, strict=True)))
        except WarrantyListError as error:
            raise WarrantyListError(f"{file}:{line}: {error}") from None
        key = serial_key(record.serial_number)
        if key in records:
            text = f"the same serial number as in line {lines[key]} (case, spaces and hyphens do not count)"
            raise WarrantyListError(f"{file}:{line}: {text}. Remove one of them")
        records[key], lines[key] = record, line
    return records, [column for column in columns if column not in COLUMNS]


def _columns(file: Path, rows: Iterator[list[str]]) -> list[str]:
    _, head = next(_rows(file, rows), (1, []))
    columns = [name.strip().casefold() for name in head]
    for name in REQUIRED:
        if name not in columns:
            example = ",".join(COLUMNS[:3])
            raise WarrantyListError(f"{file}:1: has no column {name}. Begin the file with a line such as {example}")
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
