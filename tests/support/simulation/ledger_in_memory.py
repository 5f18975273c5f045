"""The agent's own ledger on a SQLite database in memory, emptied for every history."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from sqlalchemy import Connection, Engine, create_engine, event, select
from sqlalchemy.pool import StaticPool

from guarantee_email_agent.ledger.database import SQLITE_CLOCK_FUNCTION, Database
from guarantee_email_agent.ledger.ledger import Ledger
from guarantee_email_agent.ledger.schema import prepare_schema
from guarantee_email_agent.ledger.tables import locations, mails

KEY: Final = b"a key for simulations"


class _DatabaseInMemory(Database):
    """Every transaction on one open connection: to check one out of a pool takes longer than most statements."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine, "in memory", (), lock_timeout_s=10.0)
        self._connection = engine.connect()

    @contextmanager
    def _transaction(self, engine: Engine) -> Iterator[Connection]:
        with self._connection.begin():
            yield self._connection


class LedgerInMemory:
    """`ledger` is the real one. now: what its clock says, in seconds since 1970; set anew for each history."""

    def __init__(self) -> None:
        self.now: Callable[[], float] = lambda: 0.0
        engine = create_engine("sqlite://", connect_args={"isolation_level": None}, poolclass=StaticPool)

        @event.listens_for(engine, "connect")
        def _configure_connection(connection: Any, _record: object) -> None:
            connection.create_function(SQLITE_CLOCK_FUNCTION, 0, lambda: self.now())
            connection.execute("PRAGMA foreign_keys = ON")

        @event.listens_for(engine, "begin")
        def _begin(connection: Connection) -> None:
            connection.connection.driver_connection.execute("BEGIN")

        self._database = _DatabaseInMemory(engine)
        with self._database.write_transaction() as connection:
            prepare_schema(self._database, connection, KEY)
        self.ledger = Ledger(self._database)

    def reset(self, now: Callable[[], float]) -> None:
        self.now = now
        with self._database.write_transaction() as connection:
            for table in (locations, mails):
                connection.execute(table.delete())

    def mails(self) -> list[Any]:
        """The row of every mail that the ledger knows."""
        with self._database.read_transaction() as connection:
            return list(connection.execute(mails.select()))

    def outcome_of(self, mail_key: str) -> str | None:
        with self._database.read_transaction() as connection:
            return connection.execute(select(mails.c.outcome).where(mails.c.mail_key == mail_key)).scalar_one_or_none()

    def mail_keys(self) -> dict[str, str]:
        """Which mail lies at each location."""
        with self._database.read_transaction() as connection:
            return {row.place: row.mail_key for row in connection.execute(locations.select())}
