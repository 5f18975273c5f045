"""How what people sent compares with what the agent drafted or would have sent: a word and a percentage for each mail.

A reply that waits for a person's is kept as hashes, and forgotten once it was compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sqlalchemy import func, literal_column, or_, select, update

from guarantee_email_agent.ledger.database import Database
from guarantee_email_agent.ledger.tables import NOW, locations, mails
from guarantee_email_agent.services.ports import Comparison, Outcome

AWAITED_S: Final = 14 * 86_400.0
"""How long a person's answer is waited for."""


@dataclass(frozen=True, slots=True)
class AwaitedAnswer:
    """A reply of the agent's that is to be compared."""

    mail_key: str
    message_key: str
    reply_words: str


@dataclass(frozen=True, slots=True)
class ComparisonCount:
    """How many drafts, or replies that would have been sent (`observed`). alike_percent: on average."""

    outcome: Outcome
    comparison: Comparison
    mails: int
    alike_percent: float | None


# A literal: two parameters of one value are two expressions to PostgreSQL.
_COMPARISON: Final = func.coalesce(mails.c.comparison, literal_column("'unknown'"))
COUNTS: Final = (
    select(mails.c.outcome, _COMPARISON, func.count(), func.avg(mails.c.alike_percent))
    .where(mails.c.outcome.in_(("drafted", "observed")))
    .where(or_(mails.c.outcome == "drafted", mails.c.comparison.is_not(None)))
    .group_by(mails.c.outcome, _COMPARISON)
)
_FORGOTTEN: Final = {"message_key": None, "reply_words": None}
_AWAITED: Final = mails.c.message_key.is_not(None)


class Comparisons:
    """The agents' side. Raises LedgerError where the database fails."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def awaited(self, mailbox_key: str) -> list[AwaitedAnswer]:
        """Of the mails in this mailbox. Those that waited long enough stay what they are found to be."""
        there = select(locations.c.mail_key).where(locations.c.mailbox_key == mailbox_key)
        with self._database.write_transaction() as connection:
            connection.execute(update(mails).where(_AWAITED, mails.c.changed_at < NOW - AWAITED_S).values(**_FORGOTTEN))
            wanted = select(mails.c.mail_key, mails.c.message_key, mails.c.reply_words)
            found = connection.execute(wanted.where(_AWAITED, mails.c.mail_key.in_(there)))
            return [AwaitedAnswer(*row) for row in found]

    def save(self, mail_key: str, comparison: Comparison, alike_percent: int | None) -> None:
        """What came of an awaited answer. Of two agents the first counts."""
        known = update(mails).where(_AWAITED, mails.c.mail_key == mail_key)
        with self._database.write_transaction() as connection:
            connection.execute(known.values(comparison=comparison, alike_percent=alike_percent, **_FORGOTTEN))

    def not_answered(self, mail_key: str) -> None:
        """Nobody has answered this one so far."""
        known = update(mails).where(_AWAITED, mails.c.mail_key == mail_key, mails.c.comparison == "unknown")
        with self._database.write_transaction() as connection:
            connection.execute(known.values(comparison="not_answered"))
