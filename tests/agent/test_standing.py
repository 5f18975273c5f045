"""Which services count as down, by what mails came to and what answered, and what the log says of it."""

import logging
from typing import Any

import pytest
from mailbox_in_memory import integration_error

from guarantee_email_agent.agent.mail_model import OVER_COST_LIMIT
from guarantee_email_agent.agent.mail_outcome import Disposition, WorkResult
from guarantee_email_agent.agent.monitoring import standing_of
from guarantee_email_agent.agent.standing import (
    ERROR_AFTER_S,
    INBOX,
    LEDGER,
    MAILS,
    MODEL,
    SAME_OUTAGE_S,
    SENDING,
    TICKETING,
    Standing,
)
from guarantee_email_agent.config.settings import AgentSettings, Config, Llm
from guarantee_email_agent.ledger.database import LedgerError
from guarantee_email_agent.services.ports import InboxEntry
from guarantee_email_agent.utils.circuit_breaker import CircuitOpenError
from guarantee_email_agent.utils.errors import LLMError


class Desk:
    """What is down, on a clock that tests set, and what the log says of it."""

    def __init__(self, caplog: pytest.LogCaptureFixture, *, templates: bool = False) -> None:
        caplog.set_level(logging.INFO)
        self.began = self.now = 1_800_000_000.0
        self.standing = Standing(("orders",), templates=templates, now=lambda: self.now)
        self._caplog = caplog

    def fail(self, code: str, at: float = 0.0, *, sending: bool = False, listing: bool = False) -> None:
        error = integration_error(code)
        error.sending = sending
        self.now = self.began + at if at else self.now
        self.standing.failed(error, listing=listing)

    def work(self, disposition: Disposition, **result: Any) -> None:
        self.standing.mail_worked(InboxEntry("first", 1), WorkResult(disposition, **result))

    def down(self) -> list[tuple[str, str]]:
        return [(outage.service, outage.code) for outage in self.standing.outages]

    def lines(self, level: int = logging.ERROR) -> list[str]:
        return [record.getMessage() for record in self._caplog.records if record.levelno == level]


@pytest.fixture
def desk(caplog: pytest.LogCaptureFixture) -> Desk:
    return Desk(caplog)


def test_a_look_up_is_a_service_by_its_own_name(desk: Desk) -> None:
    desk.fail("orders_timeout")
    desk.fail("warranty_api_timeout")
    assert desk.down() == [("orders", "orders_timeout"), ("warranty_api", "warranty_api_timeout")]


def test_the_words_of_a_service_are_not_repeated(desk: Desk) -> None:
    desk.standing.failed(LLMError("HTTP 500: my name is Eve", "llm_unavailable"))
    desk.standing.failed(LedgerError("the login of postgres at db", "ledger_auth"))
    assert "Eve" not in repr(desk.standing.outages)
    assert "postgres" not in repr(desk.standing.outages)


def test_it_is_over_once_the_service_did_its_part_for_another_mail(desk: Desk) -> None:
    desk.fail("warranty_api_unavailable")
    desk.work("answered")
    assert desk.down()
    desk.work("failed", answered_by=frozenset({"warranty_api"}))
    assert desk.down() == []
    assert desk.lines(logging.INFO)[-1].startswith("warranty_api is back again, after ")


def test_nobody_says_that_one_is_back_that_nobody_asks_any_more(desk: Desk) -> None:
    desk.fail("ticketing_unavailable")
    desk.fail("mail_unavailable", listing=True)
    for _ in range(2):
        desk.now += SAME_OUTAGE_S / 2
        desk.fail("mail_unavailable", listing=True)
    assert desk.down() == [(TICKETING, "ticketing_unavailable"), ("mail", "mail_unavailable")]
    desk.standing.inbox_answered(desk.now)
    assert desk.down() == []
    assert desk.lines(logging.INFO) == [
        "mail is back again, after 10 min",
        "ticketing was down, and nothing shows that it still is, after 10 min",
    ]


def test_the_cost_limit_is_over_at_midnight_and_begins_anew_soon_after_it(desk: Desk) -> None:
    midnight = (desk.now // 86_400 + 1) * 86_400
    desk.now = midnight - 60
    desk.fail(OVER_COST_LIMIT)
    assert len(desk.lines()) == 1  # at once
    desk.now = midnight - 1
    desk.standing.inbox_answered(desk.now)
    assert desk.down()
    desk.now = midnight
    desk.standing.inbox_answered(desk.now)
    assert desk.down() == []
    assert " was down, and nothing shows that it still is" in desk.lines(logging.INFO)[-1]
    desk.now = midnight + 60
    desk.fail(OVER_COST_LIMIT)
    desk.now = midnight + 120
    desk.standing.inbox_answered(desk.now)
    assert desk.down() == [("llm", OVER_COST_LIMIT)]


def test_an_answer_by_template_does_not_bring_the_model_back(desk: Desk) -> None:
    error = LLMError("down", "llm_unreachable", outage=True)
    desk.work("answered", error=error, outage=True)
    assert desk.down()
    desk.standing.answered((MODEL,))
    assert desk.down() == []


def test_a_list_of_the_inbox_does_not_prove_that_replies_can_be_sent_or_mails_marked(desk: Desk) -> None:
    desk.fail("mail_unavailable", sending=True)
    desk.fail("mail_unavailable")
    desk.fail("ledger_disk_full")
    desk.standing.answered((INBOX,))
    assert len(desk.down()) == 2
    desk.standing.answered((MAILS, LEDGER))
    assert desk.down() == [("mail", "mail_unavailable")]
    desk.standing.answered((SENDING,))
    assert desk.down() == []


def test_one_that_flaps_has_been_down_since_the_beginning_and_is_no_error_with_every_flap(desk: Desk) -> None:
    began = desk.now
    for _ in range(5):
        desk.fail("warranty_api_unavailable")
        desk.standing.answered(("warranty_api",))
        desk.now += SAME_OUTAGE_S - 1
    desk.fail("warranty_api_unavailable")
    assert [outage.since for outage in desk.standing.outages] == [began]
    assert len(desk.lines()) == 1
    desk.standing.answered(("warranty_api",))
    desk.now += SAME_OUTAGE_S + 1
    desk.fail("warranty_api_unavailable")
    assert [outage.since for outage in desk.standing.outages] == [desk.now]


@pytest.mark.parametrize("is_known", [True, False])
def test_a_circuit_that_is_open_tells_what_opened_it(desk: Desk, is_known: bool) -> None:
    if is_known:
        desk.fail("ticketing_auth")
    desk.standing.failed(CircuitOpenError("ticketing", "ticketing_timeout", 30.0))
    assert desk.down() == [(TICKETING, "ticketing_auth" if is_known else "ticketing_timeout")]


def test_a_short_outage_is_no_error_and_a_long_one_is_told_once_an_hour(desk: Desk) -> None:
    desk.standing.waiting = 12
    desk.fail("mail_unavailable")
    desk.fail("mail_unavailable", ERROR_AFTER_S - 1)
    assert desk.lines() == []
    desk.fail("mail_unavailable", ERROR_AFTER_S)
    (line,) = desk.lines()
    assert line.startswith("mail is down since 20")
    assert line.endswith(" (5 min): mail_unavailable. 12 mails wait")
    for minute in range(6, 130):
        desk.fail("mail_unavailable", 60.0 * minute)
    assert len(desk.lines()) == 3


@pytest.mark.parametrize(
    ("waiting", "failure", "says"),
    [
        (0, {"code": "llm_overloaded"}, "The instructions' own templates answer meanwhile"),
        (None, {"code": "mail_unavailable"}, "How many mails wait is not known"),
        (
            1,
            {"code": "mail_unavailable", "listing": True},
            "1 mail waited when the inbox was last listed; what came since is not known",
        ),
        (1, {"code": OVER_COST_LIMIT}, "Mails are handed over until 0:00 UTC, or until llm.max_cost_per_day is raised"),
    ],
)
def test_what_follows_from_it(
    caplog: pytest.LogCaptureFixture, waiting: int | None, failure: dict[str, Any], says: str
) -> None:
    desk = Desk(caplog, templates=True)
    desk.standing.waiting = waiting
    for at in (0, ERROR_AFTER_S):
        desk.fail(**failure, at=at)
    (line,) = desk.lines()
    assert line.endswith(says)


class Health:
    """Of an agent as it is configured, which lists its inbox, and then for so long does not."""

    def __init__(self, config: Config | None = None, *, stops: bool = False) -> None:
        self.now = 0.0
        self.standing = standing_of(config or Config(), lambda: self.now, lambda: stops)

    def problems_after(self, seconds: float, *down: str) -> list[str]:
        self.standing.inbox_listed(3, 1.0)
        self.now += seconds
        self.standing.beat()
        for service in down:
            self.standing.failed(integration_error(f"{service}_unavailable"))
        return self.standing.problems


@pytest.mark.parametrize(
    ("seconds", "down", "when_down", "problems"),
    [
        (200, (), "wait", []),
        (300, (), "wait", ["the inbox was last listed 300 s ago"]),
        (1, ("mail", "warranty_api"), "wait", ["mail is down", "warranty_api is down"]),
        (1, ("llm",), "wait", ["llm is down"]),
        (1, ("llm",), "template", []),
    ],
)
def test_an_agent_is_ready_while_it_lists_its_inbox_and_nothing_is_down(
    seconds: float, down: tuple[str, ...], when_down: Any, problems: list[str]
) -> None:
    assert Health(Config(llm=Llm(when_down=when_down))).problems_after(seconds, *down) == problems


def test_it_is_not_ready_before_the_inbox_was_listed_and_while_it_stops() -> None:
    assert Health().standing.problems == ["the inbox has not been listed yet"]
    assert Health(stops=True).problems_after(0) == ["the agent is being stopped"]


@pytest.mark.parametrize(
    ("seconds", "waits_s", "call_timeout_s", "stuck"),
    [
        (360, 0, 10, None),
        (400, 0, 10, "the main loop has not got round for 400 s"),
        (1000, 650, 10, None),
        (1200, 0, 200, None),  # whoever lets a call take ten minutes must not have the agent killed in one
    ],
)
def test_it_lives_as_long_as_its_main_loop_gets_round(
    seconds: float, waits_s: float, call_timeout_s: float, stuck: str | None
) -> None:
    health = Health(Config(agent=AgentSettings(call_timeout_s=call_timeout_s)))
    health.standing.beat(waits_s)
    health.now += seconds
    assert health.standing.stuck == stuck
