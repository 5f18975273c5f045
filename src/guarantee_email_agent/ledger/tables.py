"""The ledger's three tables, and who may open them. docs/ledger.md says what each column means."""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING, Final

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Connection,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    inspect,
    select,
    update,
)

from guarantee_email_agent.ledger.ledger_errors import LedgerError
from guarantee_email_agent.utils.errors import ConfigurationError

if TYPE_CHECKING:
    from guarantee_email_agent.ledger.database import Database

SCHEMA_VERSION: Final = 1

metadata = MetaData()

facts = Table(
    "ledger_facts",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)

mails = Table(
    "ledger_mails",
    metadata,
    Column("mail_key", Text, primary_key=True),
    Column("stage", Text, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("fence", BigInteger, nullable=False),
    Column("owner", Text),
    # A lease, or the wait after a failure. Its length is kept instead of its end, so that a clock that went back can be
    # seen (`since` lies in the future) and can prolong it by no more than that length.
    Column("since", Double, nullable=False),
    Column("span_s", Double, nullable=False),
    Column("ticket_key", Text),
    Column("ticket_id", Text),
    Column("reply_message_id", Text),
    Column("outcome", Text),
    Column("reason", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("changed_at", Double, nullable=False),
    CheckConstraint("stage IN ('claimed', 'ticketing', 'ticketed', 'sending', 'sent')", name="ledger_mails_stage"),
    CheckConstraint(
        "outcome IN ('answered', 'not_answered', 'quarantined', 'unknown')",  # or NULL
        name="ledger_mails_outcome",
    ),
    CheckConstraint("owner IS NULL OR outcome IS NULL", name="ledger_mails_final"),
    CheckConstraint("attempts >= 0 AND fence >= 1 AND span_s >= 0", name="ledger_mails_counts"),
    sqlite_with_rowid=False,
)
Index("ledger_mails_by_outcome", mails.c.outcome)

places = Table(
    "ledger_places",
    metadata,
    Column("place", Text, primary_key=True),
    Column("mail_key", Text, ForeignKey(mails.c.mail_key, ondelete="CASCADE"), nullable=False),
    Column("marked_at", Double),
    sqlite_with_rowid=False,
)
Index("ledger_places_by_mail", places.c.mail_key)


def prepare(database: Database, connection: Connection, key: bytes) -> None:
    """Create the tables where there are none; check that those there are ours, of a schema we know, made with `key`."""
    fingerprint = hmac.new(key, b"guarantee-email-agent ledger", hashlib.sha256).hexdigest()
    database.lock_for_creation(connection)
    tables = set(inspect(connection).get_table_names())
    if facts.name not in tables:
        if database.dialect == "sqlite" and tables:
            raise ConfigurationError(
                f"{database.where} is another program's database ({', '.join(sorted(tables)[:3])}). "
                "Name a file of its own in agent.ledger",
                "ledger_not_ours",
            )
        metadata.create_all(connection)
        known = {"schema_version": str(SCHEMA_VERSION), "key_fingerprint": fingerprint}
        connection.execute(facts.insert(), [{"name": name, "value": value} for name, value in known.items()])
        return
    known = {row.name: row.value for row in connection.execute(select(facts))}
    version = known.get("schema_version", "")
    if not version.isdecimal() or "key_fingerprint" not in known:
        raise LedgerError(f"The ledger {database.where} is damaged. Restore it from a backup", "ledger_corrupt")
    if int(version) > SCHEMA_VERSION:
        raise ConfigurationError(
            f"The ledger {database.where} was written by a newer version of the agent (schema {version}; this one "
            f"knows {SCHEMA_VERSION}). Update this agent",
            "ledger_newer_schema",
        )
    if not hmac.compare_digest(known["key_fingerprint"], fingerprint):
        raise ConfigurationError(
            f"The ledger {database.where} was begun with another key. Use that one (LEDGER_KEY, or the .key file "
            "beside it): with a new key every mail would look new and be answered again",
            "ledger_wrong_key",
        )
    # A disk without room and a user without rights show here, and not with the first mail.
    connection.execute(update(facts).where(facts.c.name == "schema_version").values(value=version))
