"""Which mails of the inbox are not for the agent: those that came before it, and those that waited too long."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Final

from guarantee_email_agent.config.settings import AgentSettings
from guarantee_email_agent.integrations.ports import InboxFilter

SECONDS_PER_DAY: Final = 86_400.0


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
