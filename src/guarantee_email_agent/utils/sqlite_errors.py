"""SQLite's errors by kind, and the switch to its write-ahead log."""

from __future__ import annotations

import sqlite3
import time
from typing import Final, Literal

SqliteErrorKind = Literal[
    "locked", "disk_full", "read_only", "denied", "cannot_open", "not_a_database", "corrupt", "io_error", "other"
]

# Names of primary result codes without SQLITE_, https://sqlite.org/rescode.html
_KINDS: Final[dict[str, SqliteErrorKind]] = {
    "BUSY": "locked",
    "LOCKED": "locked",
    "PROTOCOL": "locked",  # lost the race for the write-ahead log's locks too often
    "FULL": "disk_full",
    "READONLY": "read_only",
    "PERM": "denied",
    "AUTH": "denied",
    "CANTOPEN": "cannot_open",
    "NOTADB": "not_a_database",
    "CORRUPT": "corrupt",
    "IOERR": "io_error",
}


def sqlite_error_kind(error: BaseException) -> SqliteErrorKind:
    """The kind of an error of `sqlite3`, by its primary result code; `other` where it has none."""
    name: str = getattr(error, "sqlite_errorname", None) or ""
    return _KINDS.get(name.removeprefix("SQLITE_").partition("_")[0], "other")


def enable_wal(connection: sqlite3.Connection, timeout_s: float) -> bool:
    """Switch the database to its write-ahead log; False where its file system has no shared memory for that.

    SQLite itself does not wait for others who switch at the same time (it calls no busy handler). Raises sqlite3.Error.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            return bool(connection.execute("PRAGMA journal_mode = WAL").fetchone()[0] == "wal")
        except sqlite3.OperationalError as error:
            if sqlite_error_kind(error) != "locked" or time.monotonic() > deadline:
                raise
        time.sleep(0.01)
