"""Opening a ledger: to work with it, which makes it or only to read it."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from sqlalchemy import Connection, inspect, select, text, update

from guarantee_email_agent.ledger.database import Database, LedgerError, check_sqlite_place, open_database, sqlite_file
from guarantee_email_agent.ledger.facts import LEDGER_ID
from guarantee_email_agent.ledger.ledger import Ledger
from guarantee_email_agent.ledger.tables import facts, mails, metadata
from guarantee_email_agent.utils.errors import ConfigurationError

SCHEMA_VERSION: Final = 6
KEY_FINGERPRINT: Final = "key_fingerprint"
"""A fact: by which the key is known that the hashes are keyed with."""

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
    database = open_database(location, now, lock_timeout_s, read_only=True)
    if (file := sqlite_file(location)) is not None:
        check_sqlite_place(file)
        if not file.exists() or file.stat().st_size == 0:
            return None
    with _closed_where_it_fails(database), database.read_transaction() as connection:
        is_there = has_schema(database, connection, key)
        if is_there:
            database.require_write_access(connection, mails.name)
    if not is_there:
        database.close()
        return None
    return Ledger(database)


@contextmanager
def _closed_where_it_fails(database: Database) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        database.close()
        # A file stays read-only; a server may be a standby that is about to take over.
        lasting = _CONFIGURATION | ({"ledger_read_only"} if database.dialect == "sqlite" else set())
        if isinstance(error, LedgerError) and error.code in lasting:
            raise ConfigurationError(error.message, error.code) from None
        raise


def prepare_schema(database: Database, connection: Connection, key: bytes) -> None:
    """Create the tables, or check that the existing ones are a ledger of this version made with `key`."""
    database.lock(connection)
    if not has_schema(database, connection, key):
        metadata.create_all(connection)
        ledger_id = secrets.token_hex(8)  # neither secret nor personal: it stands in the mailbox
        known = {"schema_version": str(SCHEMA_VERSION), KEY_FINGERPRINT: _fingerprint(key), LEDGER_ID: ledger_id}
        connection.execute(facts.insert(), [{"name": name, "value": value} for name, value in known.items()])
        return
    for column in missing_columns(connection):
        kind = mails.c[column].type.compile(connection.dialect)
        connection.execute(text(f"ALTER TABLE {mails.name} ADD COLUMN {column} {kind}"))
    for index in mails.indexes:
        index.create(connection, checkfirst=True)
    # A disk without room and a user without rights show here, and not with the first mail.
    connection.execute(update(facts).where(facts.c.name == "schema_version").values(value=str(SCHEMA_VERSION)))


def missing_columns(connection: Connection) -> list[str]:
    """Of mails, in a ledger that no agent of this version has opened; those of before leave them empty."""
    there = {column["name"] for column in inspect(connection).get_columns(mails.name)}
    return [column.name for column in mails.columns if column.name not in there]


def has_schema(database: Database, connection: Connection, key: bytes | None = None) -> bool:
    """Whether there is a ledger, made with `key` where one is given; False without any table. Nothing is written.

    Raises ConfigurationError for another program's file, another key or another version, LedgerError for damage.
    """
    name, tables = database.name, set(inspect(connection).get_table_names())
    if facts.name not in tables:
        if database.dialect == "sqlite" and tables:
            raise ConfigurationError(
                f"{name} is another program's database ({', '.join(sorted(tables)[:3])}). "
                "Name a file of its own in agent.ledger",
                "ledger_not_ours",
            )
        return False
    known = {row.name: row.value for row in connection.execute(select(facts))}
    written = known.get("schema_version", "") if known.keys() >= {KEY_FINGERPRINT, LEDGER_ID} else ""
    version = int(written) if written.isdecimal() else 0
    if version < 1 or (version == SCHEMA_VERSION and not tables.issuperset(metadata.tables)):
        raise LedgerError(f"The ledger {name} is damaged. Restore it from a backup", "ledger_corrupt")
    if version > SCHEMA_VERSION:
        raise ConfigurationError(
            f"The ledger {name} was written by a newer version of the agent (schema {version}; this one knows "
            f"{SCHEMA_VERSION}). Update this agent",
            "ledger_newer_schema",
        )
    if version < SCHEMA_VERSION:
        raise ConfigurationError(
            f"The ledger {name} was written by an earlier version of the agent (schema {version}). Let that one finish "
            "its mails, then name another ledger and start once with 'run --take-over' (docs/upgrade.md)",
            "ledger_older_schema",
        )
    if key is not None and not hmac.compare_digest(known[KEY_FINGERPRINT], _fingerprint(key)):
        raise ConfigurationError(
            f"The ledger {name} was begun with another key. Use that one (LEDGER_KEY, or the .key file beside it): "
            "with a new key every mail would look new and be answered again",
            "ledger_wrong_key",
        )
    return True


def _fingerprint(key: bytes) -> str:
    if not key:
        raise ConfigurationError("LEDGER_KEY is empty. Set it to a secret of its own", "ledger_no_key")
    return hmac.new(key, b"guarantee-email-agent ledger", hashlib.sha256).hexdigest()
