"""The agent's own ledger on a SQLite database in memory, emptied for every history."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from sqlalchemy import Engine, bindparam, create_engine, event, select
from sqlalchemy.pool import StaticPool

from guarantee_email_agent.ledger.database import SQLITE_CLOCK_FUNCTION, Database
from guarantee_email_agent.ledger.ledger import Ledger
from guarantee_email_agent.ledger.prepared_statements import PreparedConnection
from guarantee_email_agent.ledger.schema import prepare_schema
from guarantee_email_agent.ledger.tables import locations, mails

KEY: Final = b"a key for simulations"
_EMPTY: Final = locations.delete(), mails.delete()
_MAILS: Final = mails.select()
_LOCATIONS: Final = locations.select()
_OUTCOME: Final = select(mails.c.outcome).where(mails.c.mail_key == bindparam("at_mail"))


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


class LedgerInMemory:
    """`ledger` is the real one. now: what its clock says, in seconds since 1970; set anew for each history."""

    def __init__(self) -> None:
        self.now: Callable[[], float] = lambda: 0.0
        engine = create_engine("sqlite://", connect_args={"isolation_level": None}, poolclass=StaticPool)

        @event.listens_for(engine, "connect")
        def _configure_connection(connection: Any, _record: object) -> None:
            connection.create_function(SQLITE_CLOCK_FUNCTION, 0, lambda: self.now())
            connection.execute("PRAGMA foreign_keys = ON")

        self._database = _DatabaseInMemory(engine, lambda: self.now())
        with self._database.write_transaction() as connection:
            prepare_schema(self._database, connection, KEY)
        self.ledger = Ledger(self._database)

    def reset(self, now: Callable[[], float]) -> None:
        self.now = now
        with self._database.write_transaction() as connection:
            for statement in _EMPTY:
                connection.execute(statement)

    def mails(self) -> list[Any]:
        """The row of every mail that the ledger knows."""
        with self._database.read_transaction() as connection:
            return connection.rows(_MAILS)

    def outcome_of(self, mail_key: str) -> str | None:
        with self._database.read_transaction() as connection:
            outcome: str | None = connection.value(_OUTCOME, {"at_mail": mail_key})
        return outcome

    def mail_keys(self) -> dict[str, str]:
        """Which mail lies at each location."""
        with self._database.read_transaction() as connection:
            return {row.place: row.mail_key for row in connection.rows(_LOCATIONS)}
