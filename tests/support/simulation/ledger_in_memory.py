"""The agent's own ledger on a SQLite database in memory, emptied for every history."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, TypeAlias

from sqlalchemy import Engine, create_engine, event
from sqlalchemy.pool import StaticPool

from guarantee_email_agent.ledger.database import SQLITE_CLOCK_FUNCTION, Database
from guarantee_email_agent.ledger.ledger import Ledger
from guarantee_email_agent.ledger.prepared_statements import PreparedConnection
from guarantee_email_agent.ledger.schema import prepare_schema

KEY: Final = b"a key for simulations"
_TABLES: Final = ("ledger_mails", "ledger_places")  # in the order in which rows refer to each other

BackUp: TypeAlias = dict[str, list[tuple[Any, ...]]]
"""The rows of each table."""


class _DatabaseInMemory(Database):
    """Every transaction on one open connection: to check one out of a pool takes longer than most statements."""

    def __init__(self, engine: Engine, clock: Callable[[], float]) -> None:
        super().__init__(engine, "in memory", (), 10.0, clock)
        self._connection = PreparedConnection(engine.connect())

    @contextmanager
    def _transaction(self, *, read_only: bool) -> Iterator[PreparedConnection]:
        driver = self._connection.driver
        driver.execute("BEGIN")
        try:
            yield self._connection
        except BaseException:
            driver.execute("ROLLBACK")
            raise
        driver.execute("COMMIT")


class KnownMail(NamedTuple):
    """What the ledger has of a mail, as far as an invariant or a person asks."""

    mail_key: str
    outcome: str | None
    reason: str


class LedgerInMemory:
    """`ledger` is the real one. now: what its clock says, in seconds since 1970; set anew for each history."""

    def __init__(self) -> None:
        self.now: Callable[[], float] = lambda: 0.0
        engine = create_engine("sqlite://", connect_args={"isolation_level": None}, poolclass=StaticPool)

        @event.listens_for(engine, "connect")
        def _configure_connection(connection: Any, _record: object) -> None:
            self._driver = connection  # what reads along here takes no part in the agents' transactions
            connection.create_function(SQLITE_CLOCK_FUNCTION, 0, lambda: self.now())
            connection.execute("PRAGMA foreign_keys = ON")

        self._database = _DatabaseInMemory(engine, lambda: self.now())
        with self._database.write_transaction() as connection:
            prepare_schema(self._database, connection, KEY)
        self.ledger = Ledger(self._database)

    def reset(self, now: Callable[[], float]) -> None:
        self.now = now
        self._empty()

    def back_up(self) -> BackUp:
        """What it knows of mails, for `restore`."""
        return {table: self._driver.execute(f"SELECT * FROM {table}").fetchall() for table in _TABLES}

    def restore(self, back_up: BackUp) -> None:
        self._empty()
        for table, rows in back_up.items():
            for row in rows:
                self._driver.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)

    def _empty(self) -> None:
        for table in reversed(_TABLES):
            self._driver.execute(f"DELETE FROM {table}")

    def mails(self) -> list[KnownMail]:
        """Every mail that the ledger knows."""
        return [KnownMail(*row) for row in self._driver.execute("SELECT mail_key, outcome, reason FROM ledger_mails")]

    def outcome_of(self, mail_key: str) -> str | None:
        row = self._driver.execute("SELECT outcome FROM ledger_mails WHERE mail_key = ?", (mail_key,)).fetchone()
        return row[0] if row else None

    def mail_keys(self) -> dict[str, str]:
        """Which mail lies at each location."""
        return dict(self._driver.execute("SELECT place, mail_key FROM ledger_places"))
