"""Whose fault a failure is, what a mail is known by, and what is left of it: with the real ledger and processor."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from mailbox_in_memory import KEY, MailboxInMemory, Tickets, Warranties, integration_error, worker_on

from guarantee_email_agent.agent import mail_worker
from guarantee_email_agent.agent.mail_worker import WorkResult
from guarantee_email_agent.email import processor
from guarantee_email_agent.email.identity import content_identity
from guarantee_email_agent.email.parsing.email import Email
from guarantee_email_agent.email.parsing.parse import parse_email
from guarantee_email_agent.integrations.ports import InboxEntry
from guarantee_email_agent.ledger.database import LedgerError
from guarantee_email_agent.ledger.ledger import Ledger, open_ledger

MINUTE = 60.0


class Desk:
    """One agent, its mailbox and its ledger, whose time passes when it is told to."""

    def __init__(self, folder: Path) -> None:
        self.now = 1_800_000_000.0
        self.file = folder / "ledger.db"
        self.ledger: Ledger = open_ledger(str(self.file), key=KEY, now=lambda: self.now)
        self.mailbox = MailboxInMemory("first")
        self.warranties, self.tickets = Warranties(), Tickets()
        self.worker = worker_on(self.mailbox, self.ledger, self.warranties, self.tickets)

    def configure(self, **settings: float) -> None:
        self.worker = replace(self.worker, settings=replace(self.worker.settings, **settings))

    def work(self, name: str = "first") -> WorkResult:
        return asyncio.run(self.worker.work(self.entry(name), self.now))

    def entry(self, name: str) -> InboxEntry:
        return InboxEntry(name, len(self.mailbox.mails.get(name, b"")))

    def rows(self) -> list[tuple[str, str | None, int, str]]:
        with closing(sqlite3.connect(self.file)) as ledger:
            return ledger.execute("SELECT stage, outcome, attempts, reason FROM ledger_mails").fetchall()


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(tmp_path)
    yield desk
    desk.ledger.close()


class TestWhoseFault:
    @pytest.mark.parametrize("code", ["warranty_api_timeout", "warranty_api_failed", "warranty_api_malformed"])
    def test_what_may_be_a_services_gets_more_time_with_every_try(self, desk: Desk, code: str) -> None:
        desk.warranties.errors = [integration_error(code)] * 3
        waits = []
        for _ in range(2):
            result = desk.work()
            waits.append(result.retry_s)
            assert result.disposition == "failed"
            desk.now += result.retry_s
        assert waits == [5 * MINUTE, 60 * MINUTE]
        assert desk.work().disposition == "quarantined"

    def test_what_is_the_mails_own_is_known_soon(self, desk: Desk) -> None:
        desk.warranties.errors = [integration_error("warranty_api_invalid_argument")] * 2
        waits = []
        for _ in range(2):
            waits.append(desk.work().retry_s)
            desk.now += waits[-1]
        assert waits == [30, 60]

    def test_an_outage_uses_up_no_try(self, desk: Desk) -> None:
        for _ in range(5):
            desk.warranties.errors = [integration_error("warranty_api_unavailable", outage=True)]
            assert desk.work().disposition == "outage"
        assert desk.work().disposition == "answered"

    def test_a_mail_over_its_time_waits_for_a_service_that_may_be_slow(self, desk: Desk) -> None:
        desk.configure(mail_budget_s=0.05)
        desk.warranties.hangs = True
        result = desk.work()
        assert (result.disposition, result.retry_s) == ("failed", 5 * MINUTE)

    def test_being_stopped_is_no_fault_of_the_mail(self, desk: Desk) -> None:
        desk.warranties.hangs = True

        async def stopped() -> None:
            calls = desk.warranties.calls
            task = asyncio.create_task(desk.worker.work(desk.entry("first"), desk.now))
            while desk.warranties.calls == calls:
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        for _ in range(4):
            asyncio.run(stopped())
            assert desk.rows() == [("claimed", None, 0, "stopped")]
            desk.now += 31
        desk.warranties.hangs = False
        assert desk.work().disposition == "answered"


class TestProof:
    def test_a_mail_that_cannot_be_read_again_is_still_known_as_answered(self, desk: Desk) -> None:
        desk.mailbox.lost_answers = 1
        desk.mailbox.errors["send"] = [integration_error("mail_timeout", uncertain=True)]
        desk.mailbox.errors["find_sent"] = [integration_error("mail_timeout", retryable=True)]
        assert desk.work().disposition == "failed"
        desk.now += 2000
        desk.mailbox.errors["read_raw"] = [integration_error("mail_timeout")]
        assert (desk.work().disposition, desk.mailbox.marks) == ("answered", {"first": "answered"})
        assert len(desk.mailbox.sent) == len(desk.rows()) == 1

    def test_a_proof_that_cannot_be_had_has_nothing_sent_again(self, desk: Desk) -> None:
        desk.mailbox.errors["send"] = [integration_error("mail_unavailable", uncertain=True, outage=True)]
        desk.mailbox.errors["find_sent"] = [integration_error("mail_unavailable", retryable=True, outage=True)]
        assert desk.work() == WorkResult("outage")
        assert desk.rows() == [("sending", None, 0, "mail_unavailable")]

    def test_a_mail_that_breaks_the_parser_counts_its_tries(self, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken(_: bytes) -> None:
            raise RecursionError

        for module in (mail_worker, processor):
            monkeypatch.setattr(module, "parse_email", broken)
        for _ in range(2):
            desk.now += desk.work().retry_s
        assert desk.work().disposition == "quarantined"
        assert desk.rows() == [("claimed", "quarantined", 3, "processing_unexpected")]

    def test_a_mail_is_parsed_once(self, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
        parsed = []

        def parse(raw: bytes) -> Email:
            parsed.append(raw)
            return parse_email(raw)

        for module in (mail_worker, processor):
            monkeypatch.setattr(module, "parse_email", parse)
        for disposition in ("failed", "answered"):
            desk.warranties.errors = [integration_error("warranty_api_invalid_argument")] * (disposition == "failed")
            result = desk.work()
            desk.now += result.retry_s
            assert (result.disposition, len(parsed)) == (disposition, 1)
            parsed.clear()


class TestTheEnd:
    def test_a_mail_left_for_a_person_is_named_even_if_its_mark_fails(
        self, desk: Desk, caplog: pytest.LogCaptureFixture
    ) -> None:
        desk.configure(max_attempts=1)
        desk.warranties.errors = [integration_error("warranty_api_invalid_argument")]
        desk.mailbox.errors["mark"] = [integration_error("mail_unavailable", outage=True)]
        with caplog.at_level(logging.INFO):
            assert desk.work().disposition == "outage"
        assert "Email first failed 1 times (warranty_api_invalid_argument)" in caplog.text
        assert desk.work().disposition == "quarantined"

    def test_a_mail_that_is_taken_away_after_its_reply_counts_as_answered(self, desk: Desk) -> None:
        desk.mailbox.errors["mark"] = [integration_error("mail_not_found")]
        assert desk.work().disposition == "answered"

    def test_a_mail_that_is_taken_away_before_it_is_read_is_gone(self, desk: Desk) -> None:
        entry = desk.entry("first")
        del desk.mailbox.mails["first"]
        assert asyncio.run(desk.worker.work(entry, desk.now)).disposition == "gone"
        assert desk.rows() == []


class TestAlone:
    @pytest.mark.parametrize("large", [False, True])
    def test_what_could_take_others_with_it_is_taken_up_alone(self, desk: Desk, large: bool) -> None:
        """After a crash nobody knows which of the mails in work brought it about."""
        names = ("first", "second", "third")
        for name in names:
            desk.mailbox.mails[name] = b"From: a@example.org\r\n\r\n" + name.encode() * (1 + large * 400_000)
            if not large:
                place = content_identity(f"place {desk.worker.mailbox_name} {name}".encode(), KEY)
                desk.ledger.claim(content_identity(name.encode(), KEY), location_key=place, owner="dead:1", lease_s=1)
        desk.now += 2
        desk.configure(max_mail_bytes=10_000_000)
        desk.mailbox.reading_s = 0.1

        async def all_at_once() -> list[WorkResult]:
            return await asyncio.gather(*(desk.worker.work(desk.entry(name), desk.now) for name in names))

        assert [result.disposition for result in asyncio.run(all_at_once())] == ["answered"] * 3
        assert desk.mailbox.most_read_at_once == 1


def test_a_ledger_that_is_away_costs_nothing_but_time(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object, **__: object) -> None:
        raise LedgerError("gone", "ledger_unreachable", {"outage": True})

    with monkeypatch.context() as patch:
        patch.setattr(desk.ledger, "intend_send", away)
        patch.setattr(desk.ledger, "release", away)
        assert desk.work().disposition == "outage"
    assert desk.mailbox.sent == []
    desk.now += 101
    assert desk.work().disposition == "answered"
    assert len(desk.tickets.created) == len(desk.mailbox.sent) == 1
