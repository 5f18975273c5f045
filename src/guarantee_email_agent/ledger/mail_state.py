"""What can be said of a mail that nobody holds a claim on here: free, claimed by another, waiting, or done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import TypeAlias

from guarantee_email_agent.ledger.tables import RELEASED, AnyRow
from guarantee_email_agent.services.ports import Outcome


@dataclass(frozen=True, slots=True)
class Free:
    """Not finished, and not claimed: it can be claimed.

    first_seen: when it was claimed first. to_unmark: an agent is to take its mark off.
    """

    mail_key: str
    attempts: int
    first_seen: float = field(default=inf, compare=False)
    to_unmark: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Busy:
    """`owner` holds a lease that ends in `retry_in_s` seconds, unless it is renewed."""

    mail_key: str
    retry_in_s: float
    owner: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """Failed with `reason`, and is to be tried again in `retry_in_s` seconds."""

    mail_key: str
    retry_in_s: float
    attempts: int
    reason: str


@dataclass(frozen=True, slots=True)
class Done:
    """It has ended. `marked`: the mailbox is known to carry the mark at the location that was asked for.

    first_seen: when it was claimed first. fence: of its last claim, or of what a person did to it since.
    """

    mail_key: str
    outcome: Outcome
    reason: str
    marked: bool
    ticket_id: str | None
    reply_message_id: str | None
    first_seen: float = field(default=inf, compare=False)
    fence: int = field(default=0, compare=False)


MailState: TypeAlias = Free | Busy | Waiting | Done


@dataclass(frozen=True, slots=True)
class InboxState:
    """What the ledger says of an inbox that was just listed, as location keys.

    seen: those of the list that the ledger has seen before. observed: of these, where a mail lies that was only
    observed. released: wherever a mail lies that a person gave back to the agents, and that can be claimed. crashed:
    those that an agent works on, or died over, and since when. unlisted: where one lies of the OpenMails, or that is to
    be unmarked, and that is not in the list.
    """

    seen: frozenset[str]
    observed: frozenset[str]
    released: frozenset[str]
    crashed: Mapping[str, float]
    unlisted: frozenset[str] = frozenset()


def left_s(since: float, span_s: float, now: float) -> float:
    """Seconds of a lease or wait; none or fewer once it is over. now: seconds since 1970 on the ledger's clock."""
    return min(since + span_s - now, span_s)


def ended(row: AnyRow) -> Done:
    marked = row.marked_at is not None
    kept = row.ticket_id, row.reply_message_id, row.created_at, row.fence
    return Done(row.mail_key, row.outcome, row.reason, marked, *kept)


def mail_state(row: AnyRow) -> MailState:
    if row.outcome is not None:
        return ended(row)
    remaining_s = left_s(row.since, row.span_s, row.now)
    if remaining_s <= 0:
        return Free(row.mail_key, row.attempts, row.created_at, row.marked_at is not None or row.reason == RELEASED)
    if row.owner is not None:
        return Busy(row.mail_key, remaining_s, row.owner)
    return Waiting(row.mail_key, remaining_s, row.attempts, row.reason)


def starts_in_future(row: AnyRow) -> bool:
    """Whether the clock went back since its lease or wait began."""
    return row.outcome is None and bool(row.since > row.now)
