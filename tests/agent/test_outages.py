"""Which services count as down, by what mails came to and what answered, and what the log says of it."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mailbox_in_memory import integration_error

from guarantee_email_agent.agent.mail_model import OVER_COST_LIMIT
from guarantee_email_agent.agent.mail_outcome import Disposition, WorkResult
from guarantee_email_agent.agent.outages import (
    ERROR_AFTER_S,
    INBOX,
    LEDGER,
    MAILS,
    MODEL,
    REMINDER_S,
    SAME_OUTAGE_S,
    SENDING,
    TICKETING,
    WARRANTY_SYSTEM,
    CurrentOutages,
    service_addresses,
)
from guarantee_email_agent.config.loader import load_config
from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.ledger.database import LedgerError
from guarantee_email_agent.utils.circuit_breaker import CircuitOpenError
from guarantee_email_agent.utils.errors import LLMError


class Desk:
    """What is down, on a clock that tests set, and what the log says of it."""

    def __init__(self, caplog: pytest.LogCaptureFixture, *, templates: bool = False) -> None:
        caplog.set_level(logging.INFO)
        self.began = self.now = 1_800_000_000.0
        addresses = {MAILS: "imap.example.com:993", SENDING: "smtp.example.com:465", "orders": "orders.csv"}
        self.outages = CurrentOutages(addresses, templates=templates, now=lambda: self.now)
        self._caplog = caplog

    def fail(
        self,
        code: str,
        at: float = 0.0,
        *,
        sending: bool = False,
        listing: bool = False,
        waits: bool = True,
        tool: str = "",
    ) -> None:
        error = integration_error(code)
        error.sending, error.details = sending, {"tool": tool}
        self.now = self.began + at if at else self.now
        self.outages.failed(error, listing=listing, waits=waits)

    def work(self, disposition: Disposition, *waited_for: str, **result: Any) -> frozenset[str]:
        return self.outages.mail_worked(WorkResult(disposition, **result), frozenset(waited_for))

    def down(self) -> list[tuple[str, str]]:
        return [(outage.service, outage.code) for outage in self.outages.current]

    def lines(self, level: int = logging.ERROR) -> list[str]:
        return [record.getMessage() for record in self._caplog.records if record.levelno == level]


@pytest.fixture
def desk(caplog: pytest.LogCaptureFixture) -> Desk:
    return Desk(caplog)


def test_an_outage_says_what_where_why_and_since_when(desk: Desk) -> None:
    desk.fail("mail_unavailable", sending=True, tool="send_email")
    (outage,) = desk.outages.current
    assert (outage.service, outage.address, outage.tool) == ("mail", "smtp.example.com:465", "send_email")
    assert outage.reason == "cannot be reached, or refuses to work"
    assert outage.since == desk.now


def test_a_look_up_is_a_service_by_its_own_name(desk: Desk) -> None:
    desk.fail("orders_timeout")
    desk.fail("warranty_api_timeout")
    assert desk.down() == [("orders", "orders_timeout"), (WARRANTY_SYSTEM, "warranty_api_timeout")]


def test_the_words_of_a_service_are_not_repeated(desk: Desk) -> None:
    desk.outages.failed(LLMError("HTTP 500: my name is Eve", "llm_unavailable"))
    desk.outages.failed(LedgerError("the login of postgres at db", "ledger_auth"))
    assert "Eve" not in repr(desk.outages.current)
    assert "postgres" not in repr(desk.outages.current)


def test_it_is_over_once_the_service_did_its_part_for_another_mail(desk: Desk) -> None:
    desk.fail("warranty_api_unavailable")
    desk.work("answered", succeeded=True)
    assert desk.down()
    desk.work("failed", answered_by=frozenset({WARRANTY_SYSTEM}))
    assert desk.down() == []
    assert desk.lines(logging.INFO)[-1].startswith("warranty_api is back again, after ")


def test_it_is_over_once_a_mail_that_waited_for_it_came_to_an_end(desk: Desk) -> None:
    desk.fail("ticketing_unavailable")
    assert desk.work("answered", TICKETING, succeeded=True) == frozenset()
    assert desk.down() == []


def test_a_mail_waits_for_what_it_found_down(desk: Desk) -> None:
    error = integration_error("ticketing_unavailable", outage=True)
    assert desk.work("outage", MAILS, error=error, outage=True) == {MAILS, TICKETING}
    assert desk.work("waiting", TICKETING) == {TICKETING}
    assert desk.work("failed", TICKETING, error=error) == frozenset()


def test_nobody_says_that_one_is_back_that_no_mail_waits_for_any_more(desk: Desk) -> None:
    desk.fail("ticketing_unavailable")
    assert desk.work("quarantined", TICKETING) == frozenset()
    desk.outages.keep({TICKETING})
    assert desk.down()
    desk.now += 60
    desk.outages.keep(())
    assert desk.down() == []
    assert desk.lines(logging.INFO) == ["ticketing was down, and nothing shows that it still is, after 1 min"]


def test_what_no_mail_waited_for_is_down_until_it_answers(desk: Desk) -> None:
    desk.fail("mail_unavailable", listing=True, waits=False)
    desk.outages.keep(())
    assert desk.down()
    desk.outages.inbox_answered((), desk.now)
    assert desk.down() == []


def test_the_cost_limit_is_over_at_midnight_and_begins_anew_soon_after_it(desk: Desk) -> None:
    midnight = (desk.now // 86_400 + 1) * 86_400
    desk.now = midnight - 60
    desk.fail(OVER_COST_LIMIT, waits=False)
    assert len(desk.lines()) == 1  # at once
    desk.now = midnight - 1
    desk.outages.inbox_answered((), desk.now)
    assert desk.down()
    desk.now = midnight
    desk.outages.inbox_answered((), desk.now)
    assert desk.down() == []
    assert " was down, and nothing shows that it still is" in desk.lines(logging.INFO)[-1]
    desk.now = midnight + 60
    desk.fail(OVER_COST_LIMIT, waits=False)
    desk.now = midnight + 120
    desk.outages.inbox_answered((), desk.now)
    assert desk.down() == [("llm", OVER_COST_LIMIT)]


def test_a_model_that_cannot_be_reached_stays_down_over_midnight(desk: Desk) -> None:
    desk.fail("llm_unreachable", waits=False)
    desk.outages.inbox_answered((), desk.now + 86_400)
    assert desk.down()


def test_an_answer_by_template_does_not_bring_the_model_back(desk: Desk) -> None:
    error = LLMError("down", "llm_unreachable", outage=True)
    assert desk.work("answered", MODEL, succeeded=True, error=error, outage=True) == frozenset()
    assert desk.down()
    desk.outages.answered((MODEL,))
    assert desk.down() == []


def test_a_list_of_the_inbox_does_not_prove_that_replies_can_be_sent_or_mails_marked(desk: Desk) -> None:
    desk.fail("mail_unavailable", sending=True)
    desk.fail("mail_unavailable")
    desk.fail("ledger_disk_full")
    desk.outages.answered((INBOX,))
    assert len(desk.down()) == 3
    desk.outages.answered((MAILS, LEDGER))
    assert [outage.address for outage in desk.outages.current] == ["smtp.example.com:465"]


def test_one_that_flaps_has_been_down_since_the_beginning_and_is_no_error_with_every_flap(desk: Desk) -> None:
    began = desk.now
    for _ in range(5):
        desk.fail("warranty_api_unavailable")
        desk.outages.answered((WARRANTY_SYSTEM,))
        desk.now += SAME_OUTAGE_S - 1
    desk.fail("warranty_api_unavailable")
    assert [outage.since for outage in desk.outages.current] == [began]
    assert len(desk.lines()) == 1
    desk.outages.answered((WARRANTY_SYSTEM,))
    desk.now += SAME_OUTAGE_S + 1
    desk.fail("warranty_api_unavailable")
    assert [outage.since for outage in desk.outages.current] == [desk.now]


@pytest.mark.parametrize("is_known", [True, False])
def test_a_circuit_that_is_open_tells_what_opened_it(desk: Desk, is_known: bool) -> None:
    if is_known:
        desk.fail("ticketing_auth", tool="create_ticket")
    desk.outages.failed(CircuitOpenError("ticketing", "ticketing_timeout", 30.0))
    (outage,) = desk.outages.current
    expected = ("ticketing_auth", "create_ticket") if is_known else ("ticketing_timeout", "")
    assert (outage.code, outage.tool) == expected


def test_a_short_outage_is_no_error_and_a_long_one_is_told_once_an_hour(desk: Desk) -> None:
    desk.outages.waiting = 12
    desk.fail("mail_unavailable", tool="list_emails")
    desk.fail("mail_unavailable", ERROR_AFTER_S - 1)
    assert desk.lines() == []
    desk.fail("mail_unavailable", ERROR_AFTER_S)
    (line,) = desk.lines()
    assert line.startswith("mail (imap.example.com:993) is down since 20")
    told = "cannot be reached, or refuses to work (mail_unavailable, list_emails)"
    assert line.endswith(f"(5 min): it {told}. 12 mails wait")
    for minute in range(6, 130):
        desk.fail("mail_unavailable", 60.0 * minute)
    assert len(desk.lines()) == 3


def test_a_new_outage_is_told_however_lately_the_last_one_was(desk: Desk) -> None:
    desk.fail("mail_unavailable")
    desk.fail("mail_unavailable", ERROR_AFTER_S)
    desk.outages.answered((MAILS,))
    desk.fail("mail_unavailable", 1200)
    desk.fail("mail_unavailable", 1200 + ERROR_AFTER_S)
    assert 1200 + ERROR_AFTER_S < REMINDER_S
    assert len(desk.lines()) == 2


def test_two_services_have_a_line_each_and_the_parts_of_one_have_one(desk: Desk) -> None:
    for at in (0, ERROR_AFTER_S):
        desk.fail("mail_unavailable", at, listing=True)
        desk.fail("mail_unavailable", at)
        desk.fail("llm_overloaded", at)
    desk.outages.answered((INBOX,))
    assert [line.split(" is down")[0] for line in desk.lines()] == ["mail (imap.example.com:993)", "llm"]
    assert [service for service, _ in desk.down()] == ["mail", "llm"]


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
        (
            1,
            {"code": OVER_COST_LIMIT},
            "Mails are handed over until 0:00 UTC, or until llm.max_cost_per_day is raised",
        ),
    ],
)
def test_what_follows_from_it(
    caplog: pytest.LogCaptureFixture, waiting: int | None, failure: dict[str, Any], says: str
) -> None:
    desk = Desk(caplog, templates=True)
    desk.outages.waiting = waiting
    for at in (0, ERROR_AFTER_S):
        desk.fail(**failure, at=at)
    (line,) = desk.lines()
    assert line.endswith(says)


@pytest.mark.parametrize(("once", "level"), [(True, logging.ERROR), (False, logging.WARNING)])
def test_what_is_still_down_when_the_agent_stops_is_told(desk: Desk, once: bool, level: int) -> None:
    desk.fail("mail_unavailable")
    desk.outages.stopped(once=once)
    (line,) = desk.lines(level)
    assert "is still down as the agent stops since" in line


def test_what_is_still_down_was_an_error_once(desk: Desk) -> None:
    desk.fail("mail_unavailable")
    desk.fail("mail_unavailable", ERROR_AFTER_S)
    desk.outages.stopped(once=True)
    assert len(desk.lines()) == 1
    assert len(desk.lines(logging.WARNING)) == 1


def config(folder: Path, text: str, **environ: str) -> Config:
    (folder / "config.yaml").write_text(text)
    return load_config(None, environ, folder)


def test_files_and_mail_servers(tmp_path: Path) -> None:
    found = service_addresses(
        config(
            tmp_path, "mailbox: {imap: {host: imap.example.com, user: eve}, smtp: {host: smtp.example.com, port: 587}}"
        )
    )
    assert found == {
        MAILS: "imap.example.com:993",
        SENDING: "smtp.example.com:587",
        WARRANTY_SYSTEM: str(tmp_path / "warranties.csv"),
        TICKETING: str(tmp_path / "tickets.db"),
        LEDGER: str(tmp_path / "ledger.db"),
    }


def test_a_maildir_is_for_all_mail(tmp_path: Path) -> None:
    found = service_addresses(config(tmp_path, ""))
    assert found[MAILS] == str(tmp_path / "mailbox")
    assert SENDING not in found


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://eve:hush@api.example.com:8443/mcp?token=hush", "api.example.com:8443/mcp"),
        ("https://eve:hush@[::1]/mcp#hush", "[::1]/mcp"),
        ("postgresql://eve:hush@db.example.com/agent", "db.example.com/agent"),
        ("http://eve:hush@example.com:99999999/", "example.com"),
    ],
)
def test_a_url_is_shown_without_user_password_and_query(tmp_path: Path, url: str, shown: str) -> None:
    given = config(tmp_path, "mcp: {warranty_api: {url: https://api.example.com}}", LEDGER_URL=url)
    server = replace(given.mcp.warranty_api, url=url)
    found = service_addresses(replace(given, mcp=replace(given.mcp, warranty_api=server)))
    assert (found[WARRANTY_SYSTEM], found[LEDGER]) == (shown, shown)


def test_a_program_is_shown_without_its_arguments(tmp_path: Path) -> None:
    text = "mcp: {ticketing_system: {command: tickets-server, args: [--token, hush]}}"
    assert service_addresses(config(tmp_path, text))[TICKETING] == "tickets-server"


def test_a_model_has_the_address_of_the_environment(tmp_path: Path) -> None:
    text = "llm: {provider: anthropic}"
    assert service_addresses(config(tmp_path, text))[MODEL] == "api.anthropic.com"
    own = config(tmp_path, text, ANTHROPIC_BASE_URL="http://key:hush@127.0.0.1:8080")
    assert service_addresses(own)[MODEL] == "127.0.0.1:8080"
