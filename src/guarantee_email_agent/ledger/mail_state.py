"""What the ledger says of one mail: a closed set of answers, in which nothing stands that a customer wrote."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from guarantee_email_agent.integrations.ports import Outcome

# How far the side effects of a mail may have got. A stage is written before its side effect (`ticketing`, `sending`)
# and after it (`ticketed`, `sent`), and a new claim leaves it alone: what may have happened is not undone by a crash.
Stage: TypeAlias = Literal["claimed", "ticketing", "ticketed", "sending", "sent"]


@dataclass(frozen=True, slots=True)
class Claim:
    """A lease on one mail: whoever holds the latest one may write, and no one else.

    fence: higher at every claim of this mail. attempts: this one included; released outages are not counted.
    previous: where an earlier claim left it. `sending` asks for proof before anything else is done, `sent` only for
    its end. ticket_key, ticket_id, reply_message_id, reason: what earlier claims wrote down.
    """

    mail_key: str
    place: str
    fence: int
    attempts: int
    previous: Literal["new"] | Stage
    ticket_key: str | None
    ticket_id: str | None
    reply_message_id: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class Free:
    """Not finished, and nobody works on it: it can be claimed."""

    mail_key: str
    attempts: int


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
    """It has ended. `marked`: the mailbox is known to carry the mark at the place that was asked for."""

    mail_key: str
    outcome: Outcome
    reason: str
    marked: bool
    ticket_id: str | None
    reply_message_id: str | None


Standing: TypeAlias = Free | Busy | Waiting | Done


@dataclass(frozen=True, slots=True)
class Entry:
    """One row for people to read. outcome: None while it is not finished. changed_at: seconds since 1970, UTC.

    owner: who works on it, or did when it crashed.
    """

    mail_key: str
    stage: Stage
    outcome: Outcome | None
    reason: str
    attempts: int
    owner: str | None
    ticket_id: str | None
    reply_message_id: str | None
    changed_at: float
