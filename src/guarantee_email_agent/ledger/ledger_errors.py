"""What can go wrong with the ledger, in one line each: what, where, and what to do."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any, Final

from guarantee_email_agent.utils.errors import AgentError
from guarantee_email_agent.utils.printable import printable

_MAX_REMARK = 200

_LOCKED = ("ledger_locked", "is locked: somebody else has been writing for too long. End what holds it")
_FULL = ("ledger_disk_full", "cannot be written: its disk is full. Make room")
_READ_ONLY = ("ledger_read_only", "cannot be written: it is read-only. Give the agent's user write access")
_CORRUPT = (
    "ledger_corrupt",
    "is damaged, or no ledger. Stop every agent and restore it from a backup (docs/ledger.md)",
)
_AUTH = ("ledger_auth", "refuses the login. Check the user and password in LEDGER_URL")
_PERMISSION = ("ledger_permission", "denies the agent's user what it needs. Grant it the rights in docs/ledger.md")
_MISSING = ("ledger_database_missing", "does not exist. Create the database, or correct its name")
_UNREACHABLE = ("ledger_unreachable", "cannot be reached. Check that it runs, and the host and port")
_INVALID = ("ledger_invalid_location", "has a URL that PostgreSQL's client does not understand. Correct it")
_FAILED = ("ledger_failed", "failed")

# Primary result codes, https://sqlite.org/rescode.html
_SQLITE: Final = {
    3: _READ_ONLY,  # PERM
    5: _LOCKED,  # BUSY
    6: _LOCKED,  # LOCKED
    8: _READ_ONLY,  # READONLY
    10: ("ledger_disk_error", "cannot be read or written: the disk reports an error. Check the disk and its space"),
    11: _CORRUPT,  # CORRUPT
    13: _FULL,  # FULL
    14: ("ledger_cannot_open", "cannot be opened. Check that its folder exists and can be written"),
    15: _LOCKED,  # PROTOCOL: lost the race for the write-ahead log's locks too often
    26: _CORRUPT,  # NOTADB
}
# SQLSTATE codes and classes, PostgreSQL documentation, appendix A; the longest that fits counts.
_POSTGRESQL: Final = {
    "08": _UNREACHABLE,
    "25006": _READ_ONLY,  # a standby
    "28": _AUTH,
    "3D": _MISSING,
    "40": _LOCKED,  # deadlock, serialisation
    "42501": _PERMISSION,
    "42": _CORRUPT,  # a table or column that is not as we made it
    "53100": _FULL,
    "53": _UNREACHABLE,  # no connection or memory left
    "55P03": _LOCKED,
    "57014": _LOCKED,  # the statement's time was up
    "57": _UNREACHABLE,  # shutting down or starting
    "XX": _CORRUPT,
}
# A refused connection carries no SQLSTATE, only words.
_POSTGRESQL_WORDS: Final = (
    ("password authentication failed", _AUTH),
    ("no password supplied", _AUTH),
    ("no pg_hba.conf entry", _AUTH),
    ("role ", _AUTH),  # role "x" does not exist, is not permitted to log in
    ("permission denied for database", _PERMISSION),
    ("database ", _MISSING),  # database "x" does not exist
)


class LedgerError(AgentError):
    """The ledger refuses what it was asked (`ledger_wrong_stage`, `ledger_invalid_value`) or cannot answer now.

    `details["outage"]` tells the two apart: an outage is no mail's fault, and what was being written may or may not
    have been. Asking anew is always safe.
    """

    @property
    def outage(self) -> bool:
        return bool(self.details.get("outage", False))


class LeaseLostError(AgentError):
    """Somebody else has claimed the mail since: nothing was written, and nothing more may be done for it."""


def ledger_error(error: BaseException, where: str, secrets: Sequence[str]) -> LedgerError:
    """What a database driver raised (or SQLAlchemy around it), as one line that shows none of `secrets`."""
    cause: Any = getattr(error, "orig", None) or error
    if isinstance(cause, sqlite3.Error):
        code, what = _SQLITE.get(getattr(cause, "sqlite_errorcode", 0) & 0xFF, _FAILED)
        remark = getattr(cause, "sqlite_errorname", "") or str(cause)
    elif hasattr(cause, "sqlstate"):
        code, what = _postgresql_problem(cause)
        remark = str(cause)
    else:
        # No turn, or no connection of the pool, for as long as we wait.
        code, what = _LOCKED if type(error).__name__ == "TimeoutError" else _FAILED
        remark = type(error).__name__
    return LedgerError(f"The ledger {where} {what}{_remark(remark, secrets)}", code, {"outage": True})


def _postgresql_problem(error: Any) -> tuple[str, str]:
    if error.sqlstate is not None:
        return next((_POSTGRESQL[at] for at in (error.sqlstate, error.sqlstate[:2]) if at in _POSTGRESQL), _FAILED)
    if type(error).__name__ == "ProgrammingError":  # an option that there is not; no server was asked
        return _INVALID
    return next((problem for words, problem in _POSTGRESQL_WORDS if f"FATAL:  {words}" in str(error)), _UNREACHABLE)


def _remark(text: str, secrets: Sequence[str]) -> str:
    """The driver's own words in parentheses, or nothing where a password stands in them."""
    if not text or any(secret in text for secret in secrets):
        return ""
    return f" ({printable(text.strip().splitlines()[0])[:_MAX_REMARK]})"
