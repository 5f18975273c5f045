"""Which services count as down, by what mails came to and what answered."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from mailbox_in_memory import integration_error

from guarantee_email_agent.agent.mail_model import OVER_COST_LIMIT
from guarantee_email_agent.agent.outages import (
    INBOX,
    LEDGER,
    MAILS,
    MODEL,
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
    """What is down, on a clock that tests set."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0
        addresses = {MAILS: "imap.example.com:993", SENDING: "smtp.example.com:465", "orders": "orders.csv"}
        self.outages = CurrentOutages(addresses, lambda: self.now)

    def fail(
        self, code: str, mail_id: str | None = None, *, sending: bool = False, listing: bool = False, **details: object
    ) -> None:
        error = integration_error(code)
        error.sending = sending
        error.details |= details
        self.outages.failed(error, mail_id, listing=listing)

    def down(self) -> list[tuple[str, str]]:
        return [(outage.service, outage.code) for outage in self.outages.current]


def test_an_outage_says_what_where_why_and_since_when() -> None:
    desk = Desk()
    desk.fail("mail_unavailable", "first", sending=True, tool="send_email")
    (outage,) = desk.outages.current
    assert (outage.service, outage.address, outage.tool) == ("mail", "smtp.example.com:465", "send_email")
    assert outage.reason == "cannot be reached, or refuses to work"
    assert outage.since == desk.now


def test_a_look_up_is_a_service_by_its_own_name() -> None:
    desk = Desk()
    desk.fail("orders_timeout", "first")
    desk.fail("warranty_api_timeout", "second")
    assert desk.down() == [("orders", "orders_timeout"), (WARRANTY_SYSTEM, "warranty_api_timeout")]


def test_the_words_of_a_service_are_not_repeated() -> None:
    desk = Desk()
    desk.outages.failed(LLMError("HTTP 500: my name is Eve", "llm_unavailable"), "first")
    desk.outages.failed(LedgerError("the login of postgres at db", "ledger_auth"), "first")
    assert "Eve" not in repr(desk.outages.current)
    assert "postgres" not in repr(desk.outages.current)


def test_it_is_over_once_the_service_did_its_part_for_another_mail() -> None:
    desk = Desk()
    desk.fail("warranty_api_unavailable", "first")
    desk.outages.finished("second")
    assert desk.down()
    desk.outages.answered((WARRANTY_SYSTEM,))
    assert desk.down() == []


def test_it_is_over_once_a_mail_that_waited_for_it_came_to_an_end() -> None:
    desk = Desk()
    desk.fail("ticketing_unavailable", "first")
    desk.fail("ticketing_unavailable", "second")
    desk.outages.finished("second")
    assert desk.down() == []


def test_a_mail_that_was_given_up_proves_nothing() -> None:
    desk = Desk()
    desk.fail("ticketing_unavailable", "first")
    desk.fail("ticketing_unavailable", "second")
    (outage,) = desk.outages.current
    desk.outages.given_up("first")
    assert desk.down()
    desk.outages.given_up("second")
    assert desk.down() == []
    assert not desk.outages.is_proved_back(outage)


def test_the_cost_limit_is_over_at_midnight_and_begins_anew_soon_after_it() -> None:
    desk = Desk()
    midnight = (desk.now // 86_400 + 1) * 86_400
    desk.now = midnight - 60
    desk.fail(OVER_COST_LIMIT)
    desk.now = midnight - 1
    desk.outages.forget_cost_limit(desk.now)
    (outage,) = desk.outages.current
    desk.now = midnight
    desk.outages.forget_cost_limit(desk.now)
    assert desk.down() == []
    assert not desk.outages.is_proved_back(outage)
    desk.now = midnight + 60
    desk.fail(OVER_COST_LIMIT)
    desk.now = midnight + 120
    desk.outages.forget_cost_limit(desk.now)
    assert desk.down() == [("llm", OVER_COST_LIMIT)]


def test_a_model_that_cannot_be_reached_stays_down_over_midnight() -> None:
    desk = Desk()
    desk.fail("llm_unreachable")
    desk.outages.forget_cost_limit(desk.now + 86_400)
    assert desk.down()


def test_a_circuit_that_is_open_already_tells_what_opened_it() -> None:
    desk = Desk()
    desk.outages.failed(CircuitOpenError("ticketing", "ticketing_timeout", 30.0), "first")
    assert desk.down() == [(TICKETING, "ticketing_timeout")]


def test_an_answer_by_template_does_not_bring_the_model_back() -> None:
    desk = Desk()
    desk.fail("llm_unreachable", "first")
    desk.outages.finished("first", without=(MODEL,))
    assert desk.down()
    desk.outages.answered((MODEL,))
    assert desk.down() == []


def test_nobody_knows_of_a_service_that_no_mail_waits_for() -> None:
    desk = Desk()
    desk.fail("warranty_api_unavailable", "first")
    desk.fail("mail_unavailable", listing=True)
    (outage, _) = desk.outages.current
    desk.outages.keep_waiting({"second"})
    assert desk.down() == [("mail", "mail_unavailable")]
    assert not desk.outages.is_proved_back(outage)
    desk.outages.answered((WARRANTY_SYSTEM,))
    assert desk.outages.is_proved_back(outage)


def test_a_list_of_the_inbox_does_not_prove_that_replies_can_be_sent_or_mails_marked() -> None:
    desk = Desk()
    desk.fail("mail_unavailable", "first", sending=True)
    desk.fail("mail_unavailable", "first")
    desk.fail("ledger_disk_full", "first")
    desk.outages.answered((INBOX,))
    assert len(desk.down()) == 3
    desk.outages.answered((MAILS, LEDGER))
    assert [outage.address for outage in desk.outages.current] == ["smtp.example.com:465"]


def test_two_services_may_be_down_at_once_and_one_comes_back() -> None:
    desk = Desk()
    desk.fail("warranty_api_unavailable", "first")
    desk.now += 1
    desk.fail("ticketing_timeout", "second")
    desk.outages.answered((WARRANTY_SYSTEM,))
    assert desk.down() == [(TICKETING, "ticketing_timeout")]


def test_one_that_flaps_has_been_down_since_the_beginning() -> None:
    desk = Desk()
    began = desk.now
    for _ in range(5):
        desk.fail("warranty_api_unavailable", "first")
        desk.outages.answered((WARRANTY_SYSTEM,))
        desk.now += SAME_OUTAGE_S - 1
    desk.fail("warranty_api_unavailable", "first")
    assert [outage.since for outage in desk.outages.current] == [began]
    desk.outages.answered((WARRANTY_SYSTEM,))
    desk.now += SAME_OUTAGE_S + 1
    desk.fail("warranty_api_unavailable", "first")
    assert [outage.since for outage in desk.outages.current] == [desk.now]


def test_an_open_circuit_keeps_the_reason_that_opened_it() -> None:
    desk = Desk()
    desk.fail("ticketing_auth", "first", tool="create_ticket")
    desk.outages.failed(CircuitOpenError("ticketing", "ticketing_timeout", 30.0), "first")
    (outage,) = desk.outages.current
    assert (outage.code, outage.tool) == ("ticketing_auth", "create_ticket")


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
