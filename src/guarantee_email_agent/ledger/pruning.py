"""Forgetting mails that ended long ago, by a clock that has been steady for as long.

A machine without a battery starts years in the past, and a clock may be years ahead for one start. Either would make
mails look old that are not. So each look at the clock is compared with the one before; where it was set, ages mean
nothing until as much time has passed again.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, bindparam, delete, select

from guarantee_email_agent.ledger.database import Database
from guarantee_email_agent.ledger.facts import read_fact, write_fact
from guarantee_email_agent.ledger.tables import LOCATIONS_OF_MAIL, current_time, locations, mails

BATCH_SIZE: Final = 1000

CLOCK_SEEN_AT: Final = "clock_seen_at"
"""A fact (seconds since 1970): the last look at the clock."""

CLOCK_STEADY_SINCE: Final = "clock_steady_since"
"""A fact (seconds since 1970): the first look after which the clock was not set."""

_DAY_S: Final = 86_400.0
_LONGEST_PAUSE_S: Final = 60 * _DAY_S  # between two looks: no agent may have run meanwhile
_LONGEST_STEP_BACK_S: Final = _DAY_S  # a clock is corrected by seconds, or restored from the last shutdown

_PRUNE: Final = delete(mails).where(  # before
    mails.c.mail_key.in_(
        select(mails.c.mail_key)
        .where(
            mails.c.outcome.in_(("answered", "drafted", "handed_over", "not_answered")),
            mails.c.changed_at < bindparam("before"),
            LOCATIONS_OF_MAIL.exists(),
            ~LOCATIONS_OF_MAIL.where(locations.c.marked_at.is_(None)).exists(),
        )
        .limit(BATCH_SIZE)
    )
)


def prune(database: Database, older_than_days: int) -> int:
    """Forget mails that ended so long ago; returns how many.

    Only mails answered, drafted, handed over or deliberately not answered whose every known location carries the mark,
    since from then on the mark alone keeps the mail from being answered again. Parked and observed mails stay. Nothing
    is forgotten before the clock has been steady for as long, so it has to be called every few weeks at least.
    """
    with database.write_transaction() as connection:
        database.lock(connection)
        now = current_time(connection)
        before = now - older_than_days * _DAY_S
        if _steady_since(connection, now) > before:
            return 0
    total, count = 0, 1
    while count:  # in batches: everybody else waits for each
        with database.write_transaction() as connection:
            count = connection.execute(_PRUNE, {"before": before}).rowcount
        total += count
    return total


def _steady_since(connection: Connection, now: float) -> float:
    """When the clock was set last, as far as looks at it can tell; this one is written down."""
    seen_at, since = _moment(connection, CLOCK_SEEN_AT), _moment(connection, CLOCK_STEADY_SINCE)
    if seen_at is None or since is None or not -_LONGEST_STEP_BACK_S <= now - seen_at <= _LONGEST_PAUSE_S:
        since = now
        write_fact(connection, CLOCK_STEADY_SINCE, repr(now))
    write_fact(connection, CLOCK_SEEN_AT, repr(now))
    return since


def _moment(connection: Connection, name: str) -> float | None:
    """None also for what is no number: it is written anew, and nothing is forgotten too early."""
    try:
        return float(read_fact(connection, name) or "")
    except ValueError:
        return None
