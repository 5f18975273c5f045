"""What SQLite's errors mean to the caller of a tool."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

from guarantee_email_agent.mcp_servers.dispatcher import ToolError

# The first part of SQLite's error name, after SQLITE_: kind, what is wrong and what to do, may another try heal it.
_TROUBLE: Final = {
    "BUSY": ("unavailable", "another program keeps it locked", True),
    "LOCKED": ("unavailable", "another program keeps it locked", True),
    "FULL": ("disk_full", "the disk is full. Make room", False),
    "READONLY": ("unavailable", "it is read-only. Give the server the right to write it and its folder", False),
    "PERM": ("unavailable", "access is denied. Give the server the right to use it", False),
    "AUTH": ("unavailable", "access is denied. Give the server the right to use it", False),
    "CANTOPEN": ("unavailable", "it cannot be opened. Check that it and its folder exist and may be used", False),
    "NOTADB": ("unavailable", "it is no SQLite database. Name another file", False),
    "CORRUPT": ("unavailable", "it is damaged. Restore it from a backup", False),
    "IOERR": ("unavailable", "reading or writing failed. Check the disk", True),
}


def trouble_words(file: Path, error: sqlite3.Error) -> str:
    """One line for a person. SQLite's own text is added where we know no better, since it quotes no values."""
    _, says, _ = _trouble(error)
    return f"{file}: {says}"


def tool_error(server: str, file: Path, error: sqlite3.Error, *, uncertain: bool = False) -> ToolError:
    """server: as its error codes begin. uncertain: whether a change may have been kept all the same."""
    kind, says, retryable = _trouble(error)
    return ToolError(f"{server}_{kind}", f"{file.name}: {says}", retryable, uncertain)


def _trouble(error: sqlite3.Error) -> tuple[str, str, bool]:
    name = getattr(error, "sqlite_errorname", None) or ""
    part = name.removeprefix("SQLITE_").partition("_")[0]
    return _TROUBLE.get(part, ("unavailable", f"{name or type(error).__name__}: {error}", False))
