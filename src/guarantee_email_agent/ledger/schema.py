"""Who may open the ledger: its tables are made, or are those of this version and of this key."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import Final

from sqlalchemy import Connection, inspect, select, update

from guarantee_email_agent.ledger.database import Database, LedgerError
from guarantee_email_agent.ledger.tables import facts, metadata
from guarantee_email_agent.utils.errors import ConfigurationError

SCHEMA_VERSION: Final = 6

LEDGER_ID: Final = "ledger_id"
"""A fact: what a mailbox is marked with that is served with this ledger."""

KEY_FINGERPRINT: Final = "key_fingerprint"
"""A fact: by which the key is known that the hashes are keyed with."""


def prepare_schema(database: Database, connection: Connection, key: bytes) -> None:
    """Create the tables, or check that the existing ones are a ledger of this version made with `key`."""
    database.lock_for_creation(connection)
    if not has_schema(database, connection, key):
        metadata.create_all(connection)
        ledger_id = secrets.token_hex(8)  # neither secret nor personal: it stands in the mailbox
        known = {"schema_version": str(SCHEMA_VERSION), KEY_FINGERPRINT: _fingerprint(key), LEDGER_ID: ledger_id}
        connection.execute(facts.insert(), [{"name": name, "value": value} for name, value in known.items()])
        return
    # A disk without room and a user without rights show here, and not with the first mail.
    connection.execute(update(facts).where(facts.c.name == "schema_version").values(value=str(SCHEMA_VERSION)))


def has_schema(database: Database, connection: Connection, key: bytes) -> bool:
    """Whether there is a ledger made with `key`; False where there are no tables yet. Nothing is written.

    Raises ConfigurationError for another program's file, another key or another version, LedgerError for damage.
    """
    tables = set(inspect(connection).get_table_names())
    if facts.name not in tables:
        if database.dialect == "sqlite" and tables:
            raise ConfigurationError(
                f"{database.name} is another program's database ({', '.join(sorted(tables)[:3])}). "
                "Name a file of its own in agent.ledger",
                "ledger_not_ours",
            )
        return False
    known = {row.name: row.value for row in connection.execute(select(facts))}
    require_version(database.name, known.get("schema_version") if KEY_FINGERPRINT in known else None)
    require_key(database.name, known[KEY_FINGERPRINT], key)
    return True


def require_version(name: str, version: str | None) -> None:
    """Raises ConfigurationError for the ledger of another version, LedgerError for none at all."""
    if version is None or not version.isdecimal() or int(version) < 1:
        raise LedgerError(f"The ledger {name} is damaged. Restore it from a backup", "ledger_corrupt")
    if int(version) > SCHEMA_VERSION:
        raise ConfigurationError(
            f"The ledger {name} was written by a newer version of the agent (schema {version}; this one knows "
            f"{SCHEMA_VERSION}). Update this agent",
            "ledger_newer_schema",
        )
    if int(version) < SCHEMA_VERSION:
        raise ConfigurationError(
            f"The ledger {name} was written by an earlier version of the agent (schema {version}). Let that one finish "
            "its mails, then name another ledger and start once with 'run --take-over' (docs/upgrade.md)",
            "ledger_older_schema",
        )


def require_key(name: str, fingerprint: str, key: bytes) -> None:
    """Raises ConfigurationError where the ledger of this fingerprint was made with another key."""
    if not hmac.compare_digest(fingerprint, _fingerprint(key)):
        raise ConfigurationError(
            f"The ledger {name} was begun with another key. Use that one (LEDGER_KEY, or the .key file beside it): "
            "with a new key every mail would look new and be answered again",
            "ledger_wrong_key",
        )


def _fingerprint(key: bytes) -> str:
    return hmac.new(key, b"guarantee-email-agent ledger", hashlib.sha256).hexdigest()
