"""Tickets and the notes on them in an SQLite database that several processes may write at once."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from guarantee_email_agent.services.blocking import BlockingService
from guarantee_email_agent.services.call_errors import ToolError, format_sqlite_error, sqlite_tool_error
from guarantee_email_agent.services.clients import TicketingClient
from guarantee_email_agent.utils.clock import Clock
from guarantee_email_agent.utils.sqlite_errors import enable_wal

FIELDS: Final = (
    "serial_number", "warranty_status", "customer_email", "priority", "category", "idempotency_key", "details"
)  # fmt: skip
_NAMED_FIELDS: Final = frozenset(FIELDS) - {"details"}
SERVER: Final = "ticketing"  # as its error codes begin
INVALID: Final = f"{SERVER}_invalid_database"
BUSY_S: Final = 5.0  # that one call waits, for those before it and for other programs together
FORMAT: Final = 3  # of the tables, kept as SQLite's user_version

_TICKETS: Final = """
CREATE TABLE tickets (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    ticket_id TEXT GENERATED ALWAYS AS (printf('TICKET-%06d', number)) VIRTUAL,
    created_at TEXT NOT NULL,
    serial_number TEXT NOT NULL,
    warranty_status TEXT NOT NULL,
    customer_email TEXT NOT NULL,
    priority TEXT NOT NULL,
    category TEXT NOT NULL,
    idempotency_key TEXT NOT NULL UNIQUE,
    details TEXT NOT NULL DEFAULT '{}'
)
"""
_DETAILS: Final = "ALTER TABLE tickets ADD COLUMN details TEXT NOT NULL DEFAULT '{}'"
_NOTES: Final = """
CREATE TABLE notes (
    ticket INTEGER NOT NULL REFERENCES tickets (number),
    created_at TEXT NOT NULL,
    note TEXT NOT NULL,
    idempotency_key TEXT NOT NULL UNIQUE
)
"""
_NOTES_BY_TICKET: Final = "CREATE INDEX notes_by_ticket ON notes (ticket)"
_TICKET_ID: Final = re.compile(r"TICKET-([0-9]{6,18})")


class TicketStore:
    """One connection, used by one thread at a time."""

    def __init__(self, file: Path) -> None:
        """The file is made where it is missing, readable by its owner alone. Raises ToolError."""
        self._file = file
        self._lock = threading.Lock()
        try:
            if not file.parent.is_dir():
                raise self._unusable(f"the folder {file.parent} does not exist. Create it, or name another file")
            # It holds addresses of customers.
            os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))
            self._inode = os.stat(file).st_ino
        except OSError as error:
            problem = f"cannot be written ({error.strerror}). Name a file in a folder that can be written"
            raise self._unusable(problem) from None
        self._connection = sqlite3.connect(file, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
        try:
            self._prepare()
        except BaseException as error:
            self._connection.close()
            if isinstance(error, sqlite3.Error):
                raise ToolError(INVALID, format_sqlite_error(file, error)) from None
            raise

    def create(self, ticket: Mapping[str, str], created_at: str) -> tuple[str, bool]:
        """The ticket's id, and whether it is new: the same key gives the ticket that there is. Raises ToolError.

        ticket: of the FIELDS those that there are. created_at: UTC, ISO 8601.
        """
        names = ("created_at", *FIELDS)
        complete = {**dict.fromkeys(FIELDS, ""), "details": "{}", **ticket, "created_at": created_at}
        insert = (
            f"INSERT INTO tickets ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"  # noqa: S608 - our names
            " ON CONFLICT (idempotency_key) DO NOTHING"
        )
        with self._transaction("BEGIN IMMEDIATE") as connection:
            made = connection.execute(insert, [complete[name] for name in names]).rowcount == 1
            found = _find_id(connection, ticket["idempotency_key"])
        assert found is not None
        return found, made

    def find(self, idempotency_key: str) -> str | None:
        """Raises ToolError."""
        with self._transaction() as connection:
            return _find_id(connection, idempotency_key)

    def add_note(self, ticket_id: str, note: str, idempotency_key: str, created_at: str) -> bool:
        """Whether the note is new: the same key adds nothing twice, and leaves the note as it is.

        created_at: UTC, ISO 8601. Raises ToolError, `ticketing_unknown_ticket` where there is no such ticket.
        """
        known = "SELECT 1 FROM notes WHERE idempotency_key = ?"
        # Not by ticket_id alone, which has no index: it is made from the number.
        insert = (
            "INSERT INTO notes (ticket, created_at, note, idempotency_key) "
            "SELECT number, ?, ?, ? FROM tickets WHERE number = ? AND ticket_id = ?"
        )
        number = _TICKET_ID.fullmatch(ticket_id)
        with self._transaction("BEGIN IMMEDIATE") as connection:
            if connection.execute(known, (idempotency_key,)).fetchone():
                return False
            values = (created_at, note, idempotency_key, number and int(number[1]), ticket_id)
            added = connection.execute(insert, values).rowcount == 1
        if not added:
            raise ToolError(
                f"{SERVER}_unknown_ticket", "there is no ticket of this id. Use one that create_ticket gave"
            )
        return True

    def latest(self, limit: int) -> tuple[list[dict[str, Any]], int]:
        """The newest first, each with the number of its `notes`, and how many there are. Raises ToolError."""
        names = ("ticket_id", "created_at", *FIELDS, "notes")
        notes = "(SELECT count(*) FROM notes WHERE ticket = number) AS notes"
        columns = ", ".join((*names[:-1], notes))
        query = f"SELECT {columns} FROM tickets ORDER BY number DESC LIMIT ?"  # noqa: S608 - our names
        with self._transaction() as connection:
            rows = connection.execute(query, (limit,)).fetchall()
            (total,) = connection.execute("SELECT count(*) FROM tickets").fetchone()
        return [dict(zip(names, row, strict=True)) for row in rows], total

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def _prepare(self) -> None:
        enable_wal(self._connection, BUSY_S)
        self._connection.execute("PRAGMA synchronous = FULL")  # a ticket that was answered for is on the disk
        self._connection.execute("BEGIN IMMEDIATE")
        (found,) = self._connection.execute("PRAGMA user_version").fetchone()
        (tables,) = self._connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        if found > FORMAT:
            raise self._unusable("was made by a newer version of this server. Update this one")
        if found < 1 and tables:
            raise self._unusable("is a database for something else. Name another file")
        if found < 1:
            self._connection.execute(_TICKETS)
        elif found < FORMAT:  # 2 had no details
            self._connection.execute(_DETAILS)
        if found < 2:  # 1 had no notes
            self._connection.execute(_NOTES)
            self._connection.execute(_NOTES_BY_TICKET)
        if found < FORMAT:
            self._connection.execute(f"PRAGMA user_version = {FORMAT}")
        self._connection.execute("COMMIT")

    @contextmanager
    def _transaction(self, begin: str = "BEGIN") -> Iterator[sqlite3.Connection]:
        deadline = time.monotonic() + BUSY_S
        if not self._lock.acquire(timeout=BUSY_S):
            raise self._unavailable("other calls wait for it already", retryable=True)
        committing = False
        try:
            self._check_not_replaced()
            left_ms = max(round((deadline - time.monotonic()) * 1000), 0)
            self._connection.execute(f"PRAGMA busy_timeout = {left_ms}")
            self._connection.execute(begin)
            yield self._connection
            committing = True
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
                committing = False
            raise sqlite_tool_error(SERVER, self._file, error, uncertain=committing) from None
        finally:
            self._lock.release()

    def _check_not_replaced(self) -> None:
        """A file deleted or exchanged under an open database would take tickets that nobody sees again."""
        with suppress(OSError):
            if os.stat(self._file).st_ino == self._inode:
                return
        raise self._unavailable("was moved, deleted or exchanged while in use. Put it back, or restart the server")

    def _unusable(self, problem: str) -> ToolError:
        return ToolError(INVALID, f"{self._file}: {problem}")

    def _unavailable(self, problem: str, *, retryable: bool = False) -> ToolError:
        return ToolError(f"{SERVER}_unavailable", f"{self._file.name}: {problem}", retryable)


def _find_id(connection: sqlite3.Connection, idempotency_key: str) -> str | None:
    row = connection.execute("SELECT ticket_id FROM tickets WHERE idempotency_key = ?", (idempotency_key,)).fetchone()
    return row[0] if row else None


class LocalTickets(TicketingClient):
    """The tickets in this process."""

    def __init__(self, database: Path, timeout_s: float, clock: Clock) -> None:
        super().__init__(SERVER, "create_ticket", clock)
        self._service = BlockingService(SERVER, "tickets.database", lambda: TicketStore(database), timeout_s)

    async def _create(self, ticket_data: Mapping[str, Any]) -> dict[str, Any]:
        """`{"ticket_id", "status": "created"|"existing"}`. Fields beside the store's own become its `details`."""
        further = {name: value for name, value in ticket_data.items() if name not in _NAMED_FIELDS}
        ticket = {name: value for name, value in ticket_data.items() if name in _NAMED_FIELDS}
        if further:
            ticket["details"] = json.dumps(further, ensure_ascii=False)
        number, is_new = await self._service.call(self.tool, lambda store: store.create(ticket, now()))
        return {"ticket_id": number, "status": "created" if is_new else "existing"}

    async def _add_note(self, ticket_id: str, note: str, idempotency_key: str) -> bool:
        await self._service.call("add_note", lambda store: store.add_note(ticket_id, note, idempotency_key, now()))
        return True

    async def test_connection(self) -> bool:
        await self._service.call("find_ticket", lambda store: store.find("connection-test"))
        return True

    async def close(self) -> None:
        await self._service.close()


def now() -> str:
    """UTC, ISO 8601."""
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
