"""Which mails of the inbox are for the agent, and how many there are of each kind."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from guarantee_email_agent.config.settings import AgentSettings
from guarantee_email_agent.ledger.ledger import Ledger
from guarantee_email_agent.services.ports import InboxFilter, Mailbox
from guarantee_email_agent.utils.errors import ConfigurationError, IntegrationError

SECONDS_PER_DAY: Final = 86_400.0
MAX_LISTED: Final = 100_000
"""Mails in one list. Only where mails are observed, which stay in the inbox as they are, do so many come together."""
_YEAR_10000: Final = 253_402_300_800.0  # a server that tells milliseconds does not know when a mail came


def answer_since(settings: AgentSettings, first_start: float) -> float:
    """The moment of `agent.answer_since`, in seconds since 1970; 0 for `all`. first_start: of the agent."""
    if settings.answer_since == "all":
        return 0.0
    if settings.answer_since == "first-start":
        return math.floor(first_start)  # IMAP tells times of delivery in whole seconds (RFC 3501 §2.3.3)
    return datetime.fromisoformat(settings.answer_since).replace(tzinfo=UTC).timestamp()


def inbox_filter(settings: AgentSettings, since: float, now: float) -> InboxFilter:
    """since: as `answer_since` gives it. now: seconds since 1970."""
    if settings.max_age_days is not None:
        since = max(since, now - settings.max_age_days * SECONDS_PER_DAY)
    return InboxFilter(received_since=since, skip_seen=settings.skip_seen)


async def require_clock(mailbox: Mailbox, now: float) -> float | None:
    """Raises ConfigurationError `clock_behind` where the inbox has mail of more than a day after now.

    To a first start by such a clock its whole past would come later. now: seconds since 1970. Where the mailbox does
    not say when mails came, nobody can tell.

    The earliest moment that a first start can be at, however far the clock is ahead: after all that is there already,
    of which a day is looked at. None where nobody can tell.
    """
    day_before, day_after = now - SECONDS_PER_DAY, now + SECONDS_PER_DAY
    try:
        entries = await mailbox.list_unprocessed(MAX_LISTED, InboxFilter(received_since=day_before))
    except IntegrationError:  # the first poll says more
        return None
    future = [entry.received for entry in entries if day_after < entry.received < _YEAR_10000]
    if future:
        raise ConfigurationError(
            f"The clock says {_day(now)}, but the inbox has mail of {_day(max(future))}. Set the clock, or "
            "agent.answer_since to the date from which on mails are answered",
            "clock_behind",
        )
    if len(entries) >= MAX_LISTED or not all(0 < entry.received <= day_after for entry in entries):
        return None
    return max((entry.received + 1.0 for entry in entries), default=day_before)  # servers tell whole seconds


def _day(moment: float) -> str:
    return f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%d}"


async def count_inbox(
    mailbox: Mailbox, ledger: Ledger | None, inbox_filter: InboxFilter, location_key: Callable[[str], str]
) -> dict[str, int]:
    """As the mailbox counts them, with those that were only observed told from those to answer.

    ledger: None before there is one. location_key: what the ledger knows the place of a mail by, from the mail's id.
    """
    counts = await mailbox.count_by_outcome(inbox_filter)
    waiting = counts.pop("unprocessed", 0)
    if ledger is None or not waiting:
        return {"unprocessed": waiting, "observed": 0, **counts}
    entries = await mailbox.list_unprocessed(MAX_LISTED, inbox_filter)
    known = await asyncio.to_thread(ledger.inbox, [location_key(entry.id) for entry in entries])
    return {"unprocessed": max(waiting - len(known.observed), 0), "observed": len(known.observed), **counts}
