"""The database under the ledger: a SQLite file for one machine, PostgreSQL for several.

What both have to give: a committed write survives a power cut, one write after the other on each mail, one clock for
all who share the ledger (`tables.NOW`), and an end to every wait.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Connection, Engine, create_engine, event, exc, func, make_url, select, text
from sqlalchemy.engine import URL

from guarantee_email_agent.files.text_file import kind_of_file
from guarantee_email_agent.utils.distribution import require_extra
from guarantee_email_agent.utils.errors import ConfigurationError, ServiceError
from guarantee_email_agent.utils.sqlite_errors import enable_wal, sqlite_error_kind
from guarantee_email_agent.utils.text import printable

if TYPE_CHECKING:
    import psycopg

SQLITE_CLOCK_FUNCTION: Final = "ledger_now"

_LOCK: Final = 4711_2027  # any number that every agent takes
_MAX_DETAIL_CHARS = 200

_LOCKED = ("ledger_locked", "is locked: another program has been writing for too long. End what holds it")
_FULL = ("ledger_disk_full", "cannot be written: its disk is full. Make room")
_READ_ONLY = ("ledger_read_only", "cannot be written: it is read-only. Give the agent's user write access")
_STANDBY = (
    "ledger_read_only",
    "takes no writes: its server is a standby or set to read-only. Wait for the fail-over, or name the primary",
)
_CORRUPT = (
    "ledger_corrupt",
    "is damaged, or no ledger. Stop every agent and restore it from a backup (docs/ledger.md)",
)
_AUTH = ("ledger_auth", "refuses the login. Check the user and password in LEDGER_URL")
_PERMISSION = ("ledger_permission", "denies the agent's user what it needs. Grant it the rights in docs/ledger.md")
_MISSING = ("ledger_database_missing", "does not exist. Create the database, or correct its name")
_UNREACHABLE = ("ledger_unreachable", "cannot be reached. Check that it runs, and the host and port")
_INVALID_URL = ("ledger_invalid_location", "has a URL that PostgreSQL's client does not understand. Correct it")
_CANNOT_OPEN = ("ledger_cannot_open", "cannot be opened. Check that its folder exists and can be written")
_DISK_ERROR = (
    "ledger_disk_error",
    "cannot be read or written: the disk reports an error. Check the disk and its space",
)
_FAILED = ("ledger_failed", "failed")

_SQLITE: Final = {
    "locked": _LOCKED,
    "disk_full": _FULL,
    "read_only": _READ_ONLY,
    "denied": _READ_ONLY,
    "cannot_open": _CANNOT_OPEN,
    "not_a_database": _CORRUPT,
    "corrupt": _CORRUPT,
    "io_error": _DISK_ERROR,
    "other": _FAILED,
}
# SQLSTATE codes and classes, PostgreSQL documentation, appendix A; the longest that fits counts.
_POSTGRESQL: Final = {
    "08": _UNREACHABLE,
    "25006": _STANDBY,
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
# A refused connection carries no SQLSTATE, only a message.
_POSTGRESQL_MESSAGES: Final = (
    ("password authentication failed", _AUTH),
    ("no password supplied", _AUTH),
    ("no pg_hba.conf entry", _AUTH),
    ("role ", _AUTH),  # role "x" does not exist, is not permitted to log in
    ("permission denied for database", _PERMISSION),
    ("database ", _MISSING),  # database "x" does not exist
)


class LedgerError(ServiceError):
    """The ledger refuses a call (`ledger_wrong_stage`, `ledger_invalid_value`) or cannot answer now.

    `outage` tells the two apart: an outage is no mail's fault, and what was being written may or may not have been.
    Repeating the call is always safe.
    """


class Database:
    """Transactions on the ledger's tables; whatever fails in one comes out as a LedgerError."""

    def __init__(
        self,
        engine: Engine,
        name: str,
        secrets: Sequence[str],
        lock_timeout_s: float,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """clock: the one of all who share the ledger, where it is this machine's, as it is for SQLite."""
        self.name = name
        self.dialect = engine.dialect.name
        self.clock = clock
        self._engine = engine
        self._secrets = secrets
        self._lock_timeout_s = lock_timeout_s
        self._open = 0
        self._ended = threading.Condition()
        # A listener that fails while it connects raises the driver's own error.
        self._errors = exc.DBAPIError, exc.TimeoutError, engine.dialect.loaded_dbapi.Error

    def write_transaction(self) -> AbstractContextManager[Connection]:
        """One transaction that writes; it is durable when the block is left. What fails in it leaves no trace."""
        # A transaction that turned writer halfway would fail at once where another one writes, without waiting.
        return self._transaction("BEGIN IMMEDIATE")

    def read_transaction(self) -> AbstractContextManager[Connection]:
        """One transaction that only reads, and does not wait for those that write."""
        return self._transaction("BEGIN")

    @contextmanager
    def _transaction(self, sqlite_begin: str) -> Iterator[Connection]:
        with self._ended:
            self._open += 1
        try:
            with self._engine.connect() as connection:
                if self.dialect == "sqlite":  # its driver leaves it to us
                    connection.exec_driver_sql(sqlite_begin)
                yield connection
                connection.commit()
        except self._errors as error:
            raise self._ledger_error(error) from None
        finally:
            with self._ended:
                self._open -= 1
                self._ended.notify_all()

    def _ledger_error(self, error: Exception) -> LedgerError:
        """What a database driver raised (or SQLAlchemy around it), as one line that contains no password."""
        cause: Any = getattr(error, "orig", None) or error
        if isinstance(cause, sqlite3.Error):
            code, problem = _SQLITE[sqlite_error_kind(cause)]
            detail = getattr(cause, "sqlite_errorname", "") or str(cause)
        elif hasattr(cause, "sqlstate"):
            code, problem = _postgresql_problem(cause)
            detail = str(cause)
        else:  # no connection of the pool became free
            code, problem = _LOCKED
            detail = type(error).__name__
        if detail and not any(secret in detail for secret in self._secrets):
            problem += f" ({printable(detail.strip().splitlines()[0])[:_MAX_DETAIL_CHARS]})"
        return LedgerError(f"The ledger {self.name} {problem}", code, outage=True)

    def lock(self, connection: Connection) -> None:
        """Hold off others who would create the tables, or read the clock or count mails and write by it, until the
        transaction ends.
        """
        if self.dialect == "postgresql":  # SQLite's writer is alone anyway
            connection.execute(select(func.pg_advisory_xact_lock(_LOCK)))

    def require_write_access(self, connection: Connection, table: str) -> None:
        """Raises LedgerError where this server or user may only read. A file is looked at by `check_sqlite_place`."""
        if self.dialect != "postgresql":
            return
        if connection.execute(text("SELECT current_setting('transaction_read_only')")).scalar_one() == "on":
            code, problem = _STANDBY
        elif not connection.execute(text("SELECT has_table_privilege(:name, 'UPDATE')"), {"name": table}).scalar_one():
            code, problem = _PERMISSION
        else:
            return
        raise LedgerError(f"The ledger {self.name} {problem}", code, outage=True)

    def close(self) -> None:
        """Close every connection, once what was begun has ended or takes too long.

        A thread goes on for a while after the task that waits for it was cancelled. The last connection out of a SQLite
        file folds its write-ahead log into it.
        """
        with self._ended:
            self._ended.wait_for(lambda: self._open == 0, self._lock_timeout_s)
        self._engine.dispose()


def open_database(
    location: str, now: Callable[[], float], lock_timeout_s: float, *, read_only: bool = False
) -> Database:
    """location: a file, or a URL that starts with `sqlite:` or `postgresql:`. now: the wall clock, for SQLite.

    read_only: a file is neither made nor changed; only `read_transaction` may be used.
    Raises ConfigurationError for a location that can never work. Nothing is connected yet.
    """
    place = _place(location)
    if isinstance(place, Path):
        return _open_sqlite(place, now, lock_timeout_s, read_only)
    return _open_postgresql(place.set(drivername="postgresql+psycopg"), lock_timeout_s)


def sqlite_file(location: str) -> Path | None:
    """The file of a location; None where it is none. Raises as `open_database` does."""
    place = _place(location)
    return place if isinstance(place, Path) else None


def check_sqlite_place(file: Path) -> None:
    """Raises ConfigurationError where no ledger can be made, in the words of `open_database`. Nothing is made."""
    file = file.absolute()
    try:
        if not file.parent.is_dir():
            raise _folder_missing(file)
        may_write = os.access(file if file.exists() else file.parent, os.W_OK)
    except PermissionError:
        may_write = False
    if not may_write:
        raise _cannot_open(file, os.strerror(errno.EACCES))


def _place(location: str) -> Path | URL:
    if "://" not in location:
        return Path(location)
    try:
        url = make_url(location)
    except (exc.ArgumentError, ValueError):  # their messages may hold the password
        raise _invalid_location(
            "is no database URL. Write it like postgresql://user:password@host:5432/database"
        ) from None
    if url.get_backend_name() == "sqlite":
        if not url.database or url.database == ":memory:" or url.database.startswith("file:"):
            raise _invalid_location(
                "names no file. Write it like ledger.db; a ledger in memory would not survive a crash"
            )
        return Path(url.database)
    if url.get_backend_name() not in ("postgresql", "postgres"):
        raise _invalid_location(f"asks for {url.get_backend_name()!r}. Use a file (SQLite) or a postgresql:// URL")
    return url


def _open_sqlite(path: Path, now: Callable[[], float], lock_timeout_s: float, read_only: bool) -> Database:
    path = path.absolute()
    if os.path.exists(path) and (kind := kind_of_file(path)) is not None:  # a pipe would hang
        raise _cannot_open(path, f"this is {kind}")
    if read_only:
        place = URL.create("sqlite", database=f"{path.as_uri()}?mode=ro", query={"uri": "true"})
    else:
        _create_private_file(path)
        place = URL.create("sqlite", database=str(path))
    opened = os.stat(path) if os.path.exists(path) else None
    engine = create_engine(
        place,
        connect_args={"timeout": lock_timeout_s, "isolation_level": None},
        pool_timeout=lock_timeout_s,
        hide_parameters=True,
    )

    @event.listens_for(engine, "connect")
    def _configure_connection(connection: Any, _record: object) -> None:
        connection.create_function(SQLITE_CLOCK_FUNCTION, 0, now)
        if read_only:
            return
        if not enable_wal(connection, lock_timeout_s):
            raise ConfigurationError(
                f"The ledger {path} lies on a file system without shared memory. Put it on a local disk",
                "ledger_no_wal",
            )
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA fullfsync = ON")  # macOS: past the disk's own cache
        connection.execute("PRAGMA foreign_keys = ON")

    @event.listens_for(engine, "do_connect")
    @event.listens_for(engine, "checkout")
    def _require_same_file(*_: object) -> None:  # what is written to a file that was removed is lost at its end
        if opened is not None and not (os.path.exists(path) and os.path.samestat(os.stat(path), opened)):
            text = "was taken away or replaced while it is used. Put it back, or stop every agent and start it anew"
            raise LedgerError(f"The ledger {path} {text}", "ledger_replaced", outage=True)

    return Database(engine, str(path), (), lock_timeout_s, now)


def _create_private_file(path: Path) -> None:
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except FileNotFoundError:
        raise _folder_missing(path) from None
    except OSError as error:
        raise _cannot_open(path, error.strerror) from None


def _folder_missing(path: Path) -> ConfigurationError:
    return ConfigurationError(
        f"The ledger {path} has no folder to lie in. Make {path.parent}, or correct agent.ledger",
        "ledger_folder_missing",
    )


def _cannot_open(path: Path, reason: str | None) -> ConfigurationError:
    return ConfigurationError(
        f"The ledger {path} cannot be opened for writing ({reason}). Name another file in agent.ledger, or give the "
        "agent's user write access to it and its folder",
        "ledger_cannot_open",
    )


def _open_postgresql(url: URL, lock_timeout_s: float) -> Database:
    require_extra("postgresql", "a ledger on PostgreSQL", "psycopg")
    import psycopg

    class TimedConnection(psycopg.Connection[Any]):
        """Gives up on a server that neither answers nor hangs up: neither TCP nor libpq would, ever."""

        def wait(self, gen: Generator[Any, Any, Any], interval: float = 0.1, timeout: float | None = None) -> Any:
            try:
                return super().wait(gen, interval, 2 * lock_timeout_s if timeout is None else timeout)
            except psycopg.OperationalError:
                if self.pgconn.transaction_status == psycopg.pq.TransactionStatus.ACTIVE:
                    self.pgconn.finish()  # a late answer would be taken for that of the next statement
                raise

    engine = create_engine(
        url,
        isolation_level="READ COMMITTED",
        pool_pre_ping=True,
        pool_size=5,
        max_overflow=10,
        pool_timeout=lock_timeout_s,
        hide_parameters=True,
        use_native_hstore=False,
    )

    @event.listens_for(engine, "do_connect")
    def _connect(_dialect: object, _record: object, args: list[Any], parameters: dict[str, Any]) -> psycopg.Connection:
        defaults = {
            "application_name": "guarantee-email-agent",
            "client_encoding": "utf8",  # a database in SQL_ASCII would give bytes
            "connect_timeout": max(2, round(lock_timeout_s)),
            "keepalives_idle": 30,
            "keepalives_interval": 10,
            "keepalives_count": 3,
            "tcp_user_timeout": round(2000 * lock_timeout_s),
        }
        return TimedConnection.connect(*args, **{**defaults, **parameters})

    @event.listens_for(engine, "connect")
    def _configure_connection(connection: Any, _record: object) -> None:
        timeouts_ms = {
            "lock_timeout": 1000 * lock_timeout_s,
            "statement_timeout": 1500 * lock_timeout_s,
            "idle_in_transaction_session_timeout": 3000 * lock_timeout_s,
        }
        for name, milliseconds in timeouts_ms.items():
            connection.execute("SELECT set_config(%s, %s, false)", (name, str(round(milliseconds))))
        # An intent that a crash of the server forgets would be no intent; a stricter setting than ours is left alone.
        connection.execute(
            "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
        )
        connection.commit()

    secrets = [url.password] if url.password else []
    secrets += [value for name, value in url.query.items() if "password" in name and isinstance(value, str)]
    server = f"{url.host or url.query.get('host', 'local socket')}:{url.port or 5432}"
    return Database(engine, f"postgresql://{server}/{url.database or ''}", secrets, lock_timeout_s)


def _postgresql_problem(error: Any) -> tuple[str, str]:
    if error.sqlstate is not None:
        return next((_POSTGRESQL[key] for key in (error.sqlstate, error.sqlstate[:2]) if key in _POSTGRESQL), _FAILED)
    if type(error).__name__ == "ProgrammingError":  # an option that there is not; no server was asked
        return _INVALID_URL
    return next((problem for start, problem in _POSTGRESQL_MESSAGES if f"FATAL:  {start}" in str(error)), _UNREACHABLE)


def _invalid_location(problem: str) -> ConfigurationError:
    return ConfigurationError(f"agent.ledger (or LEDGER_URL) {problem}", "ledger_invalid_location")
