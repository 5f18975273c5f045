"""The agent's own ledger on a SQLite database in memory, emptied for every history."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias

from sqlalchemy import create_engine, event
from sqlalchemy.pool import StaticPool

from guarantee_email_agent.ledger.database import SQLITE_CLOCK_FUNCTION, Database
from guarantee_email_agent.ledger.ledger import Ledger
from guarantee_email_agent.ledger.opening import prepare_schema

KEY: Final = b"a key for simulations"
_TABLES: Final = ("ledger_mails", "ledger_places")  # in the order in which rows refer to each other

BackUp: TypeAlias = dict[str, list[tuple[Any, ...]]]
"""The rows of each table."""


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

        database = Database(engine, "in memory", (), 10.0, lambda: self.now())
        with database.write_transaction() as connection:
            prepare_schema(database, connection, KEY)
        self.ledger = Ledger(database)

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

    def unmarked(self) -> set[str]:
        """The mails that bear no mark somewhere, as far as the ledger knows."""
        rows = self._driver.execute("SELECT mail_key FROM ledger_places WHERE marked_at IS NULL")
        return {key for (key,) in rows}
