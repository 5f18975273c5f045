from __future__ import annotations

import pytest

from guarantee_email_agent.agent.inbox_filter import SECONDS_PER_DAY, answer_since, inbox_filter
from guarantee_email_agent.config.settings import AgentSettings
from guarantee_email_agent.integrations.ports import InboxFilter

FIRST_START = 1_800_000_000.0


@pytest.mark.parametrize(
    ("setting", "moment"), [("first-start", FIRST_START), ("all", 0.0), ("2026-01-31", 1_769_817_600.0)]
)
def test_since_when_mail_is_answered(setting: str, moment: float) -> None:
    assert answer_since(AgentSettings(answer_since=setting), FIRST_START) == moment


def test_mail_that_comes_in_the_very_second_of_the_first_start_is_answered() -> None:
    """An IMAP server tells that it came at the beginning of that second."""
    assert answer_since(AgentSettings(), FIRST_START + 0.9) == FIRST_START


def test_mail_that_waited_too_long_is_left_alone_as_time_goes_on() -> None:
    settings = AgentSettings(max_age_days=2, skip_seen=True)
    soon, later = FIRST_START + SECONDS_PER_DAY, FIRST_START + 3 * SECONDS_PER_DAY
    assert inbox_filter(settings, FIRST_START, soon) == InboxFilter(FIRST_START, skip_seen=True)
    assert inbox_filter(settings, FIRST_START, later).received_since == FIRST_START + SECONDS_PER_DAY


def test_without_a_limit_age_does_not_count() -> None:
    assert inbox_filter(AgentSettings(), 0.0, FIRST_START) == InboxFilter()
