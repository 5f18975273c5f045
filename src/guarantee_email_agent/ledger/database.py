"""The database under the ledger: a SQLite file for one machine, PostgreSQL for several.

What both have to give: a committed write survives a power cut, one write after the other on each mail, one clock
(`ledger_clock`) for all who share the ledger, and an end to every wait.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from guarantee_email_agent.ledger.database_clock import SQLITE_FUNCTION
from guarantee_email_agent.ledger.fair_lock import Turns
from guarantee_email_agent.ledger.ledger_errors import ledger_error
from guarantee_email_agent.utils.errors import ConfigurationError

if TYPE_CHECKING:
    import psycopg

Result = TypeVar("Result")

_READS: Final = "ledger_reads"
_LOCK_FOR_CREATION: Final = 4711_2026  # any number that every agent takes


class Database:
    """Transactions on the ledger's tables; whatever fails in one comes out as a LedgerError."""

    def __init__(self, engine: Engine, where: str, secrets: Sequence[str], patience_s: float) -> None:
        self.where = where
        self.dialect = engine.dialect.name
        self._engine = engine
        self._reader = engine.execution_options(**{_READS: True})
        self._secrets = secrets
        self._patience_s = patience_s
        self._turns = Turns() if self.dialect == "sqlite" else None
        # A listener that fails while it connects raises the driver's own error.
        self._errors: tuple[type[Exception], ...] = (SQLAlchemyError, engine.dialect.loaded_dbapi.Error)

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """One transaction that writes; it is durable when the block is left."""
        with self._turn(), self._transaction(self._engine) as connection:
            yield connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """One transaction that only reads, and does not wait for the writes of other processes."""
        with self._turn(), self._transaction(self._reader) as connection:
            yield connection

    @contextmanager
    def _turn(self) -> Iterator[None]:
        if self._turns is None:
            yield
            return
        if not self._turns.take(self._patience_s):
            raise ledger_error(TimeoutError(), self.where, self._secrets)
        try:
            yield
        finally:
            self._turns.give()

    @contextmanager
    def _transaction(self, engine: Engine) -> Iterator[Connection]:
        try:
            with engine.begin() as connection:
                yield connection
        except self._errors as error:
            raise ledger_error(error, self.where, self._secrets) from None

    def lock_for_creation(self, connection: Connection) -> None:
        """Hold off others who would create the tables, until the transaction ends. SQLite's writer is alone anyway."""
        if self.dialect == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": _LOCK_FOR_CREATION})

    def close(self) -> None:
        """Close every connection; the last one out of a SQLite file folds its write-ahead log into it."""
        self._engine.dispose()


def open_database(location: str, now: Callable[[], float], patience_s: float) -> Database:
    """location: a file, or a URL that starts with `sqlite:` or `postgresql:`. now: the wall clock, for SQLite.

    Raises ConfigurationError for a location that can never work. Nothing is connected yet.
    """
    if "://" not in location:
        return _sqlite(Path(location), now, patience_s)
    try:
        url = make_url(location)
    except (ArgumentError, ValueError):  # their words may hold the password
        raise _unusable("is no database URL. Write it like postgresql://user:password@host:5432/database") from None
    if url.get_backend_name() == "sqlite":
        if not url.database or url.database == ":memory:" or url.database.startswith("file:"):
            raise _unusable("names no file. Write it like ledger.db; a ledger in memory would not survive a crash")
        return _sqlite(Path(url.database), now, patience_s)
    if url.get_backend_name() not in ("postgresql", "postgres"):
        raise _unusable(f"asks for {url.get_backend_name()!r}. Use a file (SQLite) or a postgresql:// URL")
    return _postgresql(url.set(drivername="postgresql+psycopg"), patience_s)


def _sqlite(path: Path, now: Callable[[], float], patience_s: float) -> Database:
    path = path.absolute()
    _make_private_file(path)
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        connect_args={"timeout": patience_s, "isolation_level": None},
        # Writers take turns in any case: in our own queue they get the file at once, in SQLite's they sleep and poll.
        pool_size=1,
        max_overflow=0,
        hide_parameters=True,
    )

    @event.listens_for(engine, "connect")
    def _connected(connection: Any, _record: object) -> None:
        connection.create_function(SQLITE_FUNCTION, 0, now)
        cursor = connection.cursor()
        mode = _patiently(lambda: cursor.execute("PRAGMA journal_mode = WAL").fetchone()[0], patience_s)
        if mode != "wal":
            raise ConfigurationError(
                f"The ledger {path} lies on a file system without shared memory. Put it on a local disk",
                "ledger_no_wal",
            )
        cursor.execute("PRAGMA synchronous = FULL")
        cursor.execute("PRAGMA fullfsync = ON")  # macOS: past the disk's own cache
        cursor.execute("PRAGMA foreign_keys = ON")
        cursor.close()

    @event.listens_for(engine, "begin")
    def _begun(connection: Connection) -> None:
        # A transaction that turned writer halfway would fail at once where another one writes, without waiting.
        connection.exec_driver_sql("BEGIN" if connection.get_execution_options().get(_READS) else "BEGIN IMMEDIATE")

    return Database(engine, str(path), (), patience_s)


def _make_private_file(path: Path) -> None:
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except FileNotFoundError:
        raise ConfigurationError(
            f"The ledger {path} has no folder to lie in. Make {path.parent}, or correct agent.ledger",
            "ledger_folder_missing",
        ) from None
    except OSError as error:
        raise ConfigurationError(
            f"The ledger {path} cannot be opened for writing ({error.strerror}). Name another file in agent.ledger, "
            "or give the agent's user write access to it and its folder",
            "ledger_cannot_open",
        ) from None


def _patiently(action: Callable[[], Result], patience_s: float) -> Result:
    """The switch to the write-ahead log does not wait for others who switch as well (no busy handler is called)."""
    import sqlite3

    end = time.monotonic() + patience_s
    while True:
        try:
            return action()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
        time.sleep(0.01)


def _postgresql(url: URL, patience_s: float) -> Database:
    try:
        import psycopg
    except ImportError:
        raise ConfigurationError(
            "A ledger on PostgreSQL needs psycopg. Install guarantee-email-agent[postgresql]",
            "ledger_no_driver",
        ) from None

    class PunctualConnection(psycopg.Connection[Any]):
        """Gives up on a server that neither answers nor hangs up: neither TCP nor libpq would, ever."""

        def wait(self, gen: Generator[Any, Any, Any], interval: float = 0.1, timeout: float | None = None) -> Any:
            try:
                return super().wait(gen, interval, 2 * patience_s if timeout is None else timeout)
            except psycopg.OperationalError:
                if self.pgconn.transaction_status == psycopg.pq.TransactionStatus.ACTIVE:
                    self.pgconn.finish()  # what it would still say belongs to nobody any more
                raise

    engine = create_engine(
        url,
        isolation_level="READ COMMITTED",
        pool_pre_ping=True,
        pool_size=5,
        max_overflow=10,
        pool_timeout=patience_s,
        hide_parameters=True,
        use_native_hstore=False,
    )

    @event.listens_for(engine, "do_connect")
    def _connect(_dialect: object, _record: object, args: list[Any], parameters: dict[str, Any]) -> psycopg.Connection:
        ours = {
            "application_name": "guarantee-email-agent",
            "client_encoding": "utf8",  # a database in SQL_ASCII would give bytes
            "connect_timeout": max(2, round(patience_s)),
            "keepalives_idle": 30,
            "keepalives_interval": 10,
            "keepalives_count": 3,
            "tcp_user_timeout": round(2000 * patience_s),
        }
        return PunctualConnection.connect(*args, **{**ours, **parameters})

    @event.listens_for(engine, "connect")
    def _connected(connection: Any, _record: object) -> None:
        milliseconds = str(round(1000 * patience_s))
        settings = {
            "lock_timeout": milliseconds,
            "statement_timeout": str(round(1500 * patience_s)),
            "idle_in_transaction_session_timeout": str(round(3000 * patience_s)),
        }
        for name, value in settings.items():
            connection.execute("SELECT set_config(%s, %s, false)", (name, value))
        # An intent that a crash of the server forgets would be no intent; a stricter setting than ours is left alone.
        connection.execute(
            "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
        )
        connection.commit()

    secrets = [url.password] if url.password else []
    secrets += [value for name, value in url.query.items() if "password" in name and isinstance(value, str)]
    server = f"{url.host or url.query.get('host', 'local socket')}:{url.port or 5432}"
    return Database(engine, f"postgresql://{server}/{url.database or ''}", secrets, patience_s)


def _unusable(what: str) -> ConfigurationError:
    return ConfigurationError(f"agent.ledger (or LEDGER_URL) {what}", "ledger_invalid_location")
