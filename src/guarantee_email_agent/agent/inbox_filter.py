"""Which mails of the inbox are not for the agent: those that came before it, and those that waited too long."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Final

from guarantee_email_agent.config.settings import AgentSettings
from guarantee_email_agent.integrations.ports import InboxFilter, Mailbox
from guarantee_email_agent.utils.errors import ConfigurationError, IntegrationError

SECONDS_PER_DAY: Final = 86_400.0
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


async def require_clock(mailbox: Mailbox, now: float) -> None:
    """Raises ConfigurationError `clock_behind` where the inbox has mail of more than a day after now.

    To a first start by such a clock its whole past would come later. now: seconds since 1970. Where the mailbox does
    not say when mails came, nobody can tell.
    """
    try:
        entries = await mailbox.list_unprocessed(inbox_filter=InboxFilter(received_since=now + SECONDS_PER_DAY))
    except IntegrationError:  # the first poll says more
        return
    future = [entry.received for entry in entries if now + SECONDS_PER_DAY < entry.received < _YEAR_10000]
    if future:
        raise ConfigurationError(
            f"The clock says {_day(now)}, but the inbox has mail of {_day(max(future))}. Set the clock, or "
            "agent.answer_since to the date from which on mails are answered",
            "clock_behind",
        )


def _day(moment: float) -> str:
    return f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%d}"
