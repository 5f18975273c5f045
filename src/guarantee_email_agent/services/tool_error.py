"""A call of a service in this process that failed, and what SQLite's errors mean to its caller."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from guarantee_email_agent.utils.errors import IntegrationError
from guarantee_email_agent.utils.sqlite_errors import SqliteErrorKind, sqlite_error_kind
from guarantee_email_agent.utils.text import printable

if TYPE_CHECKING:
    import sqlite3

MAX_MESSAGE_CHARS: Final = 400

_OUTAGES: Final = (
    "_unavailable", "_auth", "_tls", "_rate_limited", "_disk_full", "_folder_missing", "_unsupported"
)  # fmt: skip

# What is wrong and what to do, and whether another try can heal it.
_SQLITE: Final[dict[SqliteErrorKind, tuple[str, bool]]] = {
    "locked": ("another program keeps it locked", True),
    "disk_full": ("the disk is full. Make room", False),
    "read_only": ("it is read-only. Give the server the right to write it and its folder", False),
    "denied": ("access is denied. Give the server the right to use it", False),
    "cannot_open": ("it cannot be opened. Check that it and its folder exist and may be used", False),
    "not_a_database": ("it is no SQLite database. Name another file", False),
    "corrupt": ("it is damaged. Restore it from a backup", False),
    "io_error": ("reading or writing failed. Check the disk", True),
}


def is_outage(code: str) -> bool:
    """Whether a service is down for every call by this error code: it is unavailable, refuses us, has no more room."""
    return code.endswith(_OUTAGES)


class ToolError(IntegrationError):
    """A call that failed, in words for the caller."""

    def __init__(self, code: str, message: str, retryable: bool = False, uncertain: bool = False) -> None:
        text = printable(message)[:MAX_MESSAGE_CHARS]
        super().__init__(text, code, retryable=retryable, uncertain=uncertain, outage=is_outage(code))


def sqlite_tool_error(server: str, file: Path, error: sqlite3.Error, *, uncertain: bool = False) -> ToolError:
    """server: as its error codes begin. uncertain: whether a change may have been kept all the same."""
    text, retryable = _describe_sqlite_error(error)
    kind = "disk_full" if sqlite_error_kind(error) == "disk_full" else "unavailable"
    return ToolError(f"{server}_{kind}", f"{file.name}: {text}", retryable, uncertain)


def format_sqlite_error(file: Path, error: sqlite3.Error) -> str:
    """One line for a person: what is wrong with the file, and what to do."""
    return f"{file}: {_describe_sqlite_error(error)[0]}"


def _describe_sqlite_error(error: sqlite3.Error) -> tuple[str, bool]:
    """SQLite's own text where we know no better, since it quotes no values."""
    name = getattr(error, "sqlite_errorname", None) or type(error).__name__
    return _SQLITE.get(sqlite_error_kind(error), (f"{name}: {error}", False))
