"""Who may open the ledger, and the way of its tables from an earlier version to today's."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import Final

from sqlalchemy import Connection, inspect, select, update
from sqlalchemy.schema import CreateColumn

from guarantee_email_agent.ledger.database import Database, LedgerError
from guarantee_email_agent.ledger.tables import facts, locations, mails, metadata
from guarantee_email_agent.utils.errors import ConfigurationError

SCHEMA_VERSION: Final = 6
OLDEST_VERSION: Final = 3
"""That can be brought up to date: the tables in use are those of 4, and lack columns."""

LEDGER_ID: Final = "ledger_id"
"""A fact: what a mailbox is marked with that is served with this ledger."""

KEY_FINGERPRINT: Final = "key_fingerprint"
"""A fact: by which the key is known that the hashes are keyed with."""

_ADDED: Final = ((5, mails.c.copy_key), (6, mails.c.crashes), (6, locations.c.mailbox_key))  # in which version


def prepare_schema(database: Database, connection: Connection, key: bytes) -> None:
    """Create the tables, or check that the existing ones are a ledger made with `key`, and bring them up to date."""
    database.lock_for_creation(connection)
    version = read_schema_version(database, connection, key)
    if version is None:
        metadata.create_all(connection)
        ledger_id = secrets.token_hex(8)  # neither secret nor personal: it stands in the mailbox
        known = {"schema_version": str(SCHEMA_VERSION), KEY_FINGERPRINT: _fingerprint(key), LEDGER_ID: ledger_id}
        connection.execute(facts.insert(), [{"name": name, "value": value} for name, value in known.items()])
        return
    for column in [column for since, column in _ADDED if since > version]:
        added = CreateColumn(column).compile(connection)
        connection.exec_driver_sql(f"ALTER TABLE {column.table.name} ADD COLUMN {added}")
    for index in mails.indexes:
        index.create(connection, checkfirst=True)
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
    if int(version) < OLDEST_VERSION:
        raise older_schema(database.name, int(version))
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
    """Of a ledger that is to be brought up to date first, by `run` or by an earlier version of the agent."""
    remedy = "'run' brings it up to date" if version >= OLDEST_VERSION else "Start one that writes schema 3 or 4 first"
    return ConfigurationError(
        f"The ledger {name} was written by an earlier version of the agent (schema {version}). {remedy}",
        "ledger_older_schema",
    )


def _fingerprint(key: bytes) -> str:
    return hmac.new(key, b"guarantee-email-agent ledger", hashlib.sha256).hexdigest()
