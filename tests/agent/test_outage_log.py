"""What the log says of an outage, at which level, and how often."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from guarantee_email_agent.agent.outage_log import ERROR_AFTER_S, REMINDER_S, OutageLog
from guarantee_email_agent.agent.outages import Outage

NOW = 1_800_000_000.0
MAIL_DOWN = Outage("mail", "imap.example.com:993", "list_emails", "mail_unavailable", "cannot be reached", NOW)
MODEL_DOWN = Outage("llm", "api.example.com", "", "llm_overloaded", "is overloaded", NOW)


class Desk:
    """An outage log on a clock that tests set, and what it said at ERROR and of a service that is back."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO)
        self.now = NOW
        self.log = OutageLog(lambda: self.now)
        self._caplog = caplog

    def at(self, seconds: float, *outages: Outage) -> None:
        self.now = NOW + seconds
        self.log.outages_changed(outages)

    def lines(self, level: int = logging.ERROR) -> list[str]:
        return [record.getMessage() for record in self._caplog.records if record.levelno == level]


@pytest.fixture
def desk(caplog: pytest.LogCaptureFixture) -> Desk:
    return Desk(caplog)


def test_a_short_outage_is_no_error(desk: Desk) -> None:
    desk.at(0, MAIL_DOWN)
    desk.at(ERROR_AFTER_S - 1, MAIL_DOWN)
    desk.at(ERROR_AFTER_S)
    assert desk.lines() == []


def test_one_that_lasts_is_told_with_service_address_reason_time_and_mails(desk: Desk) -> None:
    desk.log.inbox_listed(12, None)
    desk.at(ERROR_AFTER_S, MAIL_DOWN)
    (line,) = desk.lines()
    assert line.startswith("mail (imap.example.com:993) is down since 20")
    assert line.endswith("(5 min): it cannot be reached (mail_unavailable, list_emails). 12 mails wait")


def test_it_is_told_again_once_an_hour(desk: Desk) -> None:
    for minute in range(5, 130):
        desk.at(60.0 * minute, MAIL_DOWN)
    assert len(desk.lines()) == 3


def test_that_it_is_back_is_told_too(desk: Desk) -> None:
    desk.at(0, MAIL_DOWN)
    desk.at(ERROR_AFTER_S + 60)
    assert desk.lines(logging.INFO) == ["mail (imap.example.com:993) is back again, after 6 min"]


def test_nobody_says_that_it_is_back_where_nobody_knows(desk: Desk) -> None:
    desk.log.is_proved_back = lambda _: False
    desk.at(0, MAIL_DOWN)
    desk.at(60)
    (line,) = desk.lines(logging.INFO)
    assert line.endswith(" was down, and nothing shows that it still is, after 1 min")


def test_one_that_flaps_is_no_error_with_every_flap(desk: Desk) -> None:
    for minute in range(5, 60):
        desk.at(60.0 * minute, MAIL_DOWN)
        desk.at(60.0 * minute + 30)
    assert len(desk.lines()) == 1


def test_a_new_outage_is_told_however_lately_the_last_one_was(desk: Desk) -> None:
    desk.at(ERROR_AFTER_S, MAIL_DOWN)
    desk.at(ERROR_AFTER_S + 1)
    later = replace(MAIL_DOWN, since=NOW + 1200)
    desk.at(1200 + ERROR_AFTER_S, later)
    assert 1200 + ERROR_AFTER_S < REMINDER_S
    assert len(desk.lines()) == 2


def test_two_services_have_a_line_each_and_the_parts_of_one_have_one(desk: Desk) -> None:
    marks = Outage("mail", "imap.example.com:993", "mark_email", "mail_unavailable", "cannot be reached", NOW + 1)
    desk.at(ERROR_AFTER_S + 1, MAIL_DOWN, marks, MODEL_DOWN)
    assert [line.split(" is down")[0] for line in desk.lines()] == [
        "llm (api.example.com)",
        "mail (imap.example.com:993)",
    ]


def test_a_part_that_fails_longer_than_the_one_that_was_told_is_no_news(desk: Desk) -> None:
    desk.at(ERROR_AFTER_S, MAIL_DOWN)
    marks = Outage("mail", "imap.example.com:993", "mark_email", "mail_unavailable", "cannot be reached", NOW + 1)
    desk.at(ERROR_AFTER_S + 2, marks)
    assert len(desk.lines()) == 1


def test_of_a_model_that_templates_stand_in_for(desk: Desk) -> None:
    desk.log.templates = lambda: True
    desk.log.inbox_listed(0, None)
    desk.at(ERROR_AFTER_S, MODEL_DOWN)
    assert desk.lines()[0].endswith("The instructions' own templates answer meanwhile")


def test_the_cost_limit_of_the_day_is_told_at_once_and_once(desk: Desk) -> None:
    reached = Outage("llm", "api.example.com", "", "llm_cost_limit", "has cost what it may cost in a day", NOW)
    for second in range(5):
        desk.at(second, reached)
    (line,) = desk.lines()
    assert line.endswith("Mails are handed over until 0:00 UTC, or until llm.max_cost_per_day is raised")


def test_an_inbox_that_was_never_listed_has_no_known_number_of_mails(desk: Desk) -> None:
    desk.at(ERROR_AFTER_S, MAIL_DOWN)
    assert desk.lines()[0].endswith("How many mails wait is not known")


def test_while_the_inbox_itself_is_down_nobody_knows_what_came(desk: Desk) -> None:
    desk.log.inbox_listed(1, None)
    desk.at(ERROR_AFTER_S, replace(MAIL_DOWN, part="list"))
    assert desk.lines()[0].endswith("1 mail waited when the inbox was last listed; what came since is not known")


@pytest.mark.parametrize(("once", "level"), [(True, logging.ERROR), (False, logging.WARNING)])
def test_what_is_still_down_when_the_agent_stops_is_told(desk: Desk, once: bool, level: int) -> None:
    desk.at(1, MAIL_DOWN)
    desk.log.stopped(once=once)
    (line,) = desk.lines(level)
    assert "is still down as the agent stops since" in line


def test_what_is_still_down_was_an_error_once(desk: Desk) -> None:
    desk.at(ERROR_AFTER_S, MAIL_DOWN)
    desk.log.stopped(once=True)
    assert len(desk.lines()) == 1
    assert len(desk.lines(logging.WARNING)) == 1
