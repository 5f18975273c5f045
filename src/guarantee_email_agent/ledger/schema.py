"""Who may open the ledger, and the way of its tables from an earlier version to today's."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import Final

from sqlalchemy import CheckConstraint, Connection, inspect, select, update
from sqlalchemy.schema import CreateColumn

from guarantee_email_agent.ledger.database import Database, LedgerError
from guarantee_email_agent.ledger.facts import OF_NO_MAILBOX, read_fact
from guarantee_email_agent.ledger.tables import agents, facts, locations, mails, metadata
from guarantee_email_agent.utils.errors import ConfigurationError

SCHEMA_VERSION: Final = 6  # of 3 and 4 the tables in use are the same

LEDGER_ID: Final = "ledger_id"
"""A fact: what a mailbox is marked with that is served with this ledger."""

KEY_FINGERPRINT: Final = "key_fingerprint"
"""A fact: by which the key is known that the hashes are keyed with."""

_ADDED: Final = {  # in which version
    2: ("delivery", "replied_at", "thread_key", "admitted_at", "sender_key", "text_key"),
    3: ("released_at", "worked_s", "cost_usd"),
    5: ("copy_key",),
    6: ("crashes", "mailbox_key"),
}
_ADDED_SINCE_1: Final = tuple(name for names in _ADDED.values() for name in names)
_CHECKS_OF_2: Final = ("ledger_mails_outcome", "ledger_mails_delivery")


def prepare_schema(database: Database, connection: Connection, key: bytes) -> None:
    """Create the tables, or check that the existing ones are a ledger made with `key`, and bring them up to date."""
    database.lock_for_creation(connection)
    version = read_schema_version(database, connection, key)
    if version is None:
        metadata.create_all(connection)
        known = {"schema_version": str(SCHEMA_VERSION), KEY_FINGERPRINT: _fingerprint(key), LEDGER_ID: _new_id()}
        connection.execute(facts.insert(), [{"name": name, "value": value} for name, value in known.items()])
        return
    if version == 1:
        _add_conversations(database, connection)
    elif version < SCHEMA_VERSION:
        _add_columns(connection, tuple(name for since, names in _ADDED.items() if since > version for name in names))
    agents.create(connection, checkfirst=True)
    if read_fact(connection, LEDGER_ID) is None:
        # made before mailboxes bore a mark of their ledger
        connection.execute(facts.insert(), {"name": LEDGER_ID, "value": _new_id()})
    # A disk without room and a user without rights show here, and not with the first mail.
    connection.execute(update(facts).where(facts.c.name == "schema_version").values(value=str(SCHEMA_VERSION)))


def read_schema_version(database: Database, connection: Connection, key: bytes) -> int | None:
    """Of a ledger made with `key`, SCHEMA_VERSION at most; None where there are no tables yet. Nothing is written.

    Raises ConfigurationError for another program's file, another key or a newer version, LedgerError for damage.
    """
    tables = set(inspect(connection).get_table_names())
    if facts.name not in tables:
        if database.dialect == "sqlite" and tables:
            raise ConfigurationError(
                f"{database.name} is another program's database ({', '.join(sorted(tables)[:3])}). "
                "Name a file of its own in agent.ledger",
                "ledger_not_ours",
            )
        return None
    known = {row.name: row.value for row in connection.execute(select(facts))}
    version = known.get("schema_version", "")
    if not version.isdecimal() or int(version) < 1 or KEY_FINGERPRINT not in known:
        raise LedgerError(f"The ledger {database.name} is damaged. Restore it from a backup", "ledger_corrupt")
    if int(version) > SCHEMA_VERSION:
        raise newer_schema(database.name, int(version))
    require_key(database.name, known[KEY_FINGERPRINT], key)
    return int(version)


def require_key(name: str, fingerprint: str, key: bytes) -> None:
    """Raises ConfigurationError where the ledger of this fingerprint was made with another key."""
    if not hmac.compare_digest(fingerprint, _fingerprint(key)):
        raise ConfigurationError(
            f"The ledger {name} was begun with another key. Use that one (LEDGER_KEY, or the .key file beside it): "
            "with a new key every mail would look new and be answered again",
            "ledger_wrong_key",
        )


def newer_schema(name: str, version: int) -> ConfigurationError:
    """Of a ledger that this version cannot read."""
    return ConfigurationError(
        f"The ledger {name} was written by a newer version of the agent (schema {version}; this one knows "
        f"{SCHEMA_VERSION}). Update this agent",
        "ledger_newer_schema",
    )


def older_schema(name: str, version: int) -> ConfigurationError:
    """What those who only read say of a ledger that `run` would bring up to date."""
    return ConfigurationError(
        f"The ledger {name} was written by an earlier version of the agent (schema {version}). 'run' brings it up to "
        "date",
        "ledger_older_schema",
    )


def _fingerprint(key: bytes) -> str:
    return hmac.new(key, b"guarantee-email-agent ledger", hashlib.sha256).hexdigest()


def _new_id() -> str:
    """Neither secret nor personal: it stands in the mailbox."""
    return secrets.token_hex(8)


def _add_conversations(database: Database, connection: Connection) -> None:
    """From version 1. In the transaction that holds others off; where anything fails, version 1 is what remains."""
    if database.dialect == "sqlite":
        _rebuild_sqlite_tables(connection)
    else:
        _alter_postgresql_tables(connection)
    # It was to answer whatever had no mark: what waits, or was begun, is no mail from before its first start.
    if connection.execute(select(mails.c.mail_key).limit(1)).first() is not None:
        connection.execute(facts.insert(), {"name": OF_NO_MAILBOX, "value": "0"})


def _rebuild_sqlite_tables(connection: Connection) -> None:
    """SQLite cannot change a check. Both tables: one that is dropped takes along the rows that refer to it."""
    for index in (*mails.indexes, *locations.indexes):
        connection.exec_driver_sql(f"DROP INDEX IF EXISTS {index.name}")
    for table in (locations, mails):  # a reference follows the table that is renamed
        connection.exec_driver_sql(f"ALTER TABLE {table.name} RENAME TO {table.name}_1")
    metadata.create_all(connection)
    for table in (mails, locations):
        columns = ", ".join(column.name for column in table.columns if column.name not in _ADDED_SINCE_1)
        copy = f"INSERT INTO {table.name} ({columns}) SELECT {columns} FROM {table.name}_1"  # noqa: S608 - our names
        connection.exec_driver_sql(copy)
    for table in (locations, mails):
        connection.exec_driver_sql(f"DROP TABLE {table.name}_1")


def _alter_postgresql_tables(connection: Connection) -> None:
    _add_columns(connection, _ADDED_SINCE_1)
    checks = [check for check in mails.constraints if isinstance(check, CheckConstraint) and check.name in _CHECKS_OF_2]
    added = [f"ADD CONSTRAINT {check.name} CHECK ({check.sqltext})" for check in checks]
    connection.exec_driver_sql(
        f"ALTER TABLE {mails.name} DROP CONSTRAINT IF EXISTS ledger_mails_outcome, {', '.join(added)}"
    )
    # Without figures for the new columns the planner takes parallel workers, and 20 ms, for what takes one.
    connection.exec_driver_sql(f"ANALYZE {mails.name}")


def _add_columns(connection: Connection, names: tuple[str, ...]) -> None:
    """Columns without a value, and their indexes, on either database."""
    for table in (mails, locations):
        for name in names:
            if name in table.c:
                column = CreateColumn(table.c[name]).compile(connection)
                connection.exec_driver_sql(f"ALTER TABLE {table.name} ADD COLUMN {column}")
    for index in mails.indexes:
        index.create(connection, checkfirst=True)
