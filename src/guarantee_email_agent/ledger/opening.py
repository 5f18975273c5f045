"""Opening a ledger: to work with it, which makes it or only to read it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from guarantee_email_agent.ledger.database import Database, LedgerError, check_sqlite_place, open_database, sqlite_file
from guarantee_email_agent.ledger.ledger import Ledger
from guarantee_email_agent.ledger.schema import has_schema, prepare_schema
from guarantee_email_agent.ledger.tables import mails
from guarantee_email_agent.utils.errors import ConfigurationError

LOCK_TIMEOUT_S: Final = 10.0  # how long one call waits for others' writes

# Problems of opening that the user has to correct (exit code 2); others may pass.
_CONFIGURATION: Final = frozenset(
    "ledger_" + problem for problem in ("auth", "cannot_open", "database_missing", "invalid_location", "permission")
)


def open_ledger(
    location: str,
    *,
    key: bytes,
    now: Callable[[], float] = time.time,
    lock_timeout_s: float = LOCK_TIMEOUT_S,
) -> Ledger:
    """Open the ledger; create it where there is none.

    location: a file (SQLite), or a URL that starts with `sqlite:` or `postgresql:`. key: what the hashes are keyed
    with; the ledger keeps a fingerprint of it and refuses another. now: the wall clock, for SQLite only.
    lock_timeout_s: how long a call waits for others' writes; a server silent for twice as long counts as gone.
    Raises ConfigurationError for what the user has to correct, LedgerError for what may pass.
    """
    _require_key(key)
    database = open_database(location, now, lock_timeout_s)
    with _closed_where_it_fails(database), database.write_transaction() as connection:
        prepare_schema(database, connection, key)
    return Ledger(database)


def open_ledger_to_read(
    location: str, *, key: bytes, now: Callable[[], float] = time.time, lock_timeout_s: float = LOCK_TIMEOUT_S
) -> Ledger | None:
    """The ledger for who only looks: nothing is made or locked. None where there is none yet.

    Arguments and errors are those of `open_ledger`; a place where `run` could not write is refused as well.
    """
    _require_key(key)
    file = sqlite_file(location)
    if file is not None:
        check_sqlite_place(file)
        if not file.exists() or file.stat().st_size == 0:
            return None
    database = open_database(location, now, lock_timeout_s, read_only=True)
    with _closed_where_it_fails(database), database.read_transaction() as connection:
        is_there = has_schema(database, connection, key)
        if is_there:
            database.require_write_access(connection, mails.name)
    if not is_there:
        database.close()
        return None
    return Ledger(database)


def _require_key(key: bytes) -> None:
    if not key:
        raise ConfigurationError("LEDGER_KEY is empty. Set it to a secret of its own", "ledger_no_key")


@contextmanager
def _closed_where_it_fails(database: Database) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        database.close()
        if isinstance(error, LedgerError) and _is_lasting(error, database):
            raise ConfigurationError(error.message, error.code) from None
        raise


def _is_lasting(error: LedgerError, database: Database) -> bool:
    # A file stays read-only; a server may be a standby that is about to take over.
    return error.code in _CONFIGURATION or (error.code == "ledger_read_only" and database.dialect == "sqlite")
