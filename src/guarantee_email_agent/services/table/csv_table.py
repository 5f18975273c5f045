"""A table in a CSV file, read anew when the file changes."""

from __future__ import annotations

import csv
import errno
import io
import logging
import os
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Generic

from guarantee_email_agent.services.table.table import Row, TableError, TableLayout, number_key, parse_key

logger = logging.getLogger(__name__)

SETTLED_S: Final = 1.0
_DELIMITERS: Final = ",;\t"


class CsvTable(Generic[Row]):
    """The rows of a CSV file. A Table.

    A change is taken over once the file has not been written to for a second: half a file would tell customers that
    they are not in our records. A file that turns bad, or disappears, leaves the last good rows in use.
    """

    def __init__(self, file: Path, layout: TableLayout[Row], now: Callable[[], float]) -> None:
        """now: seconds since 1970. Raises TableError."""
        self._file = file
        self._layout = layout
        self._now = now
        self._lock = threading.Lock()
        self._last_problem = ""
        with _os_errors_as_table_errors(file):
            self._version = _version(file)  # that was read last, were it good or bad
            content = file.read_bytes()
        self._rows, unused = _parse(file, layout, content)
        if unused:
            logger.info("%s: these columns are not used: %s", file, ", ".join(unused))

    def find(self, number: str) -> Row | None:
        with self._lock:
            try:
                self._reload()
            except TableError as error:
                if str(error) != self._last_problem:
                    logger.warning("%s. Until that is done, the list as it was before is used", error)
                self._last_problem = str(error)
            return self._rows.get(number_key(number))

    def _reload(self) -> None:
        with _os_errors_as_table_errors(self._file):
            version = _version(self._file)
            if version == self._version or 0 <= self._now() - version[2] / 1e9 < SETTLED_S:
                return
            content = self._file.read_bytes()
            if _version(self._file) != version:
                return
        self._version = version  # only now: what could not be read is tried again at the next call
        self._rows, _ = _parse(self._file, self._layout, content)
        self._last_problem = ""
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
    """The rows by key, and the columns that are not used. Raises TableError for the first problem."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise TableError(f"{file}:{line}: is not written in UTF-8. Save it as CSV in UTF-8") from None
    head = text.partition("\n")[0]
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=max(_DELIMITERS, key=head.count), strict=True)
    columns = _columns(file, layout, rows)
    used = layout.used(columns)
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
    return found, [column for column in columns if column not in used]


def _columns(file: Path, layout: TableLayout[Row], rows: Iterator[list[str]]) -> list[str]:
    _, head = next(_rows(file, rows), (1, []))
    columns = [name.strip().casefold() for name in head]
    for name in layout.required:
        if name not in columns:
            example = ",".join((*layout.required, *(layout.optional or ("status",))[:1]))
            raise TableError(f"{file}:1: has no column {name}. Begin the file with a line such as {example}")
    for name in layout.used(columns):
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
