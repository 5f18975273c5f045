"""The loop over the inbox: what it counts, what it returns, and how soon it stops."""

import asyncio
import logging
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from daemon_in_memory import DownModel, Inbox
from mailbox_in_memory import KEY, MailboxInMemory, integration_error, mail
from shipped_instructions import shipped_interpreter
from waiting import PATIENCE_S

from guarantee_email_agent.agent import startup
from guarantee_email_agent.agent.daemon import MAX_OUTAGES
from guarantee_email_agent.agent.identity_key import key_of_location
from guarantee_email_agent.agent.mail_outcome import WorkResult
from guarantee_email_agent.agent.mail_worker import MailWorker
from guarantee_email_agent.email.identity import content_identity, mail_identity
from guarantee_email_agent.email.parsing.parse import parse_email
from guarantee_email_agent.email.processor_models import AnswerPolicy
from guarantee_email_agent.ledger.ledger import Claim, Ledger
from guarantee_email_agent.ledger.mail_state import Done
from guarantee_email_agent.ledger.opening import open_ledger
from guarantee_email_agent.services.ports import InboxEntry
from guarantee_email_agent.utils.errors import ConfigurationError
from guarantee_email_agent.utils.retry import Backoff


def test_altered_copies_of_a_mail_get_one_reply_and_a_person(ledger: Ledger) -> None:
    inbox = Inbox(ledger, "first")
    first = inbox.mailbox.mails["first"]
    inbox.mailbox.mails["marked"] = first.replace(b"Subject: ", b"Subject: [EXTERNAL] ")
    inbox.mailbox.mails["with a footer"] = first + b"This mail was scanned.\r\n"
    inbox.mailbox.mails["forwarded"] = first.replace(b"customer@example.org", b"forwarder@example.net")
    assert inbox.drain()
    assert inbox.daemon.standing.finished == {"answered": 1, "handed_over": 3}


class TestWithoutTheModel:
    @pytest.mark.parametrize("mails", [1, 2, 5])
    def test_templates_answer_a_drain_too_however_few_mails_there_are(
        self, ledger: Ledger, mails: int, caplog: pytest.LogCaptureFixture
    ) -> None:
        inbox = Inbox(ledger, *(f"mail{number}" for number in range(mails)))
        inbox.use_model(DownModel(), shipped_interpreter())
        with caplog.at_level(logging.INFO):
            assert inbox.drain()
        assert inbox.daemon.standing.finished == {"answered": mails}
        assert caplog.text.count("(valid-warranty, by template, ticket ") == mails

    @pytest.mark.parametrize("mails", [2, 8])
    def test_without_templates_a_drain_gives_up_after_some_outages(self, ledger: Ledger, mails: int) -> None:
        inbox = Inbox(ledger, *(f"mail{number}" for number in range(mails)))
        model = DownModel()
        inbox.use_model(model, None)
        assert not inbox.drain()
        assert set(inbox.daemon.queue.unfinished.values()) == {"outage"}
        assert f"left unprocessed: {mails}, with another" in startup._summary(inbox.daemon)
        assert model.calls == MAX_OUTAGES


class TestDrain:
    @pytest.mark.slow
    def test_many_mails_are_listed_in_pages(self, ledger: Ledger) -> None:
        inbox = Inbox(ledger, *(f"mail{number:04d}" for number in range(600)))
        for name in inbox.mailbox.mails:
            inbox.mailbox.mails[name] = mail(name).replace(b"\r\n\r\n", b"\r\nAuto-Submitted: auto-replied\r\n\r\n")
        assert inbox.drain()
        assert inbox.daemon.standing.finished == {"not_answered": 600}
        assert max(inbox.mailbox.limits) < 510

    def test_mails_that_cannot_be_read_hold_up_no_other(self, ledger: Ledger) -> None:
        inbox = Inbox(ledger, *(f"bad{number}" for number in range(10)), "good0", "good1")
        inbox.mailbox.withheld = {name for name in inbox.mailbox.mails if name.startswith("bad")}
        inbox.configure(concurrency=1)
        assert not inbox.drain()
        assert (inbox.daemon.standing.finished, len(inbox.daemon.queue.unfinished)) == ({"answered": 2}, 10)
        assert len(inbox.observer.results) == 12
        assert inbox.observer.down[-1] == []  # since others could be read

    def test_mails_that_an_agent_without_memory_died_over_are_good(self, ledger: Ledger) -> None:
        inbox = Inbox(ledger, "first", "second", "third")
        for _ in range(5):
            for name in inbox.mailbox.mails:
                key = mail_identity(parse_email(inbox.mailbox.mails[name]), KEY)
                place = content_identity(f"place the inbox {name}".encode(), KEY)
                ledger.claim(key, location_key=place, owner="gone:1", lease_s=0)
        assert inbox.drain()
        assert inbox.daemon.standing.finished == {"answered": 3}

    def test_the_mail_that_an_agent_died_over_last_is_tried_last(self, ledger: Ledger) -> None:
        inbox = Inbox(ledger, "first", "second", "third")
        keys = {name: content_identity(f"place the inbox {name}".encode(), KEY) for name in inbox.mailbox.mails}
        for name in ("second", "first"):
            ledger.claim(keys[name], location_key=keys[name], owner="gone:1", lease_s=0)
        inbox.configure(concurrency=1)
        assert inbox.drain()
        assert list(inbox.mailbox.marks) == ["third", "second", "first"]

    @pytest.mark.parametrize("stage", ["claimed", "sent", "not sent", "elsewhere"])
    def test_a_mail_that_a_person_took_while_no_agent_ran_is_settled(
        self, ledger: Ledger, location: str, stage: str
    ) -> None:
        inbox = Inbox(ledger)
        key = content_identity(b"mailbox elsewhere" if stage == "elsewhere" else b"mailbox the inbox", KEY)
        claim = ledger.claim("a1" * 16, location_key="b2" * 16, owner="gone:1", lease_s=0, mailbox_key=key)
        assert isinstance(claim, Claim)
        if "sent" in stage:
            ledger.intend_send(claim, "<reply@example.com>")
        inbox.mailbox.sent = ["<reply@example.com>"] if stage == "sent" else []
        assert inbox.drain()
        with closing(sqlite3.connect(location)) as file:
            ((outcome, reason),) = file.execute("SELECT outcome, reason FROM ledger_mails").fetchall()
        expected = {"sent": ("answered", "proved"), "elsewhere": (None, "")}
        assert (outcome, reason) == expected.get(stage, (None, "mail_not_waiting"))

    def test_a_mail_claimed_by_another_agent_does_not_count_as_finished(self, ledger: Ledger) -> None:
        inbox = Inbox(ledger, "first", "second")
        place = content_identity(b"place the inbox first", KEY)
        ledger.claim(content_identity(b"first", KEY), location_key=place, owner="other:1", lease_s=100)
        assert not inbox.drain()
        assert (inbox.daemon.standing.finished, inbox.daemon.queue.unfinished) == ({"answered": 1}, {"first": "busy"})

    def test_ctrl_c_waits_for_no_mail(self, ledger: Ledger) -> None:
        inbox = Inbox(ledger, "first")
        inbox.warranties.hangs = True

        async def interrupted() -> None:
            draining = asyncio.create_task(inbox.daemon.drain())
            await asyncio.sleep(0.3)
            draining.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asyncio.wait_for(draining, 10)

        asyncio.run(interrupted())
        assert inbox.mailbox.marks == {}


class TestObservedMails:
    """They bear no mark, so that each list of the inbox holds them again."""

    @pytest.mark.slow
    def test_twelve_thousand_of_them_hide_no_new_mail(self, ledger: Ledger, tmp_path: Path) -> None:
        names = [f"mail{number:05d}" for number in range(12_000)]
        inbox = Inbox(ledger, *names, "new")
        keys = [(content_identity(f"place the inbox {name}".encode(), KEY),) for name in names]
        with closing(sqlite3.connect(tmp_path / "ledger.db")) as file, file:
            file.executemany(
                "INSERT INTO ledger_mails (mail_key, stage, attempts, fence, since, span_s, outcome, reason, "
                "created_at, changed_at) VALUES (?, 'claimed', 1, 1, 0, 0, 'observed', '', 0, 0)",
                keys,
            )
            file.executemany("INSERT INTO ledger_places VALUES (?1, ?1, NULL, NULL)", keys)
        assert inbox.drain()
        assert inbox.daemon.standing.finished == {"answered": 1}
        assert asyncio.run(inbox.daemon.count_inbox())["observed"] == 12_000

    def test_one_that_a_person_gave_back_is_looked_at_anew(self, ledger: Ledger) -> None:
        inbox = Inbox(ledger, "first")
        worker = inbox.daemon.worker
        processor = replace(worker.processor, policy=AnswerPolicy("observe"))
        inbox.daemon.worker = replace(worker, processor=processor)
        inbox.configure(mode="observe", poll_interval_s=0.05)
        mail_key = mail_identity(parse_email(inbox.mailbox.mails["first"]), KEY)
        location_key = key_of_location(worker.mailbox_name, "first", KEY)
        ledger.claim(mail_key, location_key=location_key, owner="another:1", lease_s=60.0)
        ledger.interventions.hand_over(mail_key)

        def outcome() -> str | None:
            state = ledger.state(location_key)
            return state.outcome if isinstance(state, Done) else None

        async def observed() -> None:
            while not inbox.observer.results:
                await asyncio.sleep(0.02)
            assert outcome() == "handed_over"
            ledger.interventions.release(mail_key, lambda _: False)
            while outcome() != "observed":
                await asyncio.sleep(0.02)

        inbox.run_until(observed())


class TestRun:
    @pytest.mark.parametrize("when", ["while it waits", "before it is read again"])
    def test_a_reply_that_left_before_its_mail_was_deleted_counts(
        self, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, when: str
    ) -> None:
        monkeypatch.setattr("guarantee_email_agent.agent.mail_outcome.AMBIGUOUS_RETRY_BACKOFF", Backoff(0.2))
        inbox = Inbox(ledger, "first")
        inbox.mailbox.lose_proof(sent=True)

        async def deleted() -> None:
            while not inbox.daemon.queue.unfinished:
                await asyncio.sleep(0.02)
            if when == "before it is read again":
                inbox.mailbox.errors["read_raw"] = [integration_error("mail_not_found")]
                while "gone" not in {result.disposition for result in inbox.observer.results}:
                    await asyncio.sleep(0.02)
            del inbox.mailbox.mails["first"]
            while not inbox.daemon.standing.finished:
                await asyncio.sleep(0.02)

        inbox.run_until(deleted())
        assert inbox.daemon.standing.finished == {"answered": 1}
        assert inbox.observer.results[-1].ended == "answered"
        assert len(inbox.mailbox.sent) == 1

    def test_a_mailbox_that_does_not_answer_does_not_keep_it_from_stopping(self, ledger: Ledger) -> None:
        inbox = Inbox(ledger)

        async def stuck() -> None:
            await asyncio.sleep(0.2)
            inbox.mailbox.hangs.clear()
            await asyncio.sleep(0.2)

        inbox.run_until(stuck())

    @pytest.mark.parametrize("goes_back", [True, False])
    def test_a_first_start_in_the_future_is_read_anew_and_told_once(
        self, ledger: Ledger, caplog: pytest.LogCaptureFixture, goes_back: bool
    ) -> None:
        inbox = Inbox(ledger, "first")
        inbox.daemon.answer_since = future = ledger.time() + 7200.0
        inbox.daemon._first_start = lambda: future - 10_800.0 if goes_back else future
        assert [inbox.drain(), inbox.drain()] == [True, True]
        assert inbox.daemon.standing.finished == ({"answered": 1} if goes_back else {})
        assert len([record for record in caplog.records if record.levelname == "ERROR"]) == 1


class TestAnotherLedger:
    """It takes the mailbox over while the agent waits, or works."""

    @pytest.fixture
    def inbox(self, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> Inbox:
        monkeypatch.setattr("guarantee_email_agent.agent.daemon.OWNER_CHECK_S", 0.05)
        inbox = Inbox(ledger)
        inbox.configure(poll_interval_s=3600, concurrency=1)
        return inbox

    def owned_by_another(self, inbox: Inbox, when: Callable[[], bool]) -> None:
        async def require_ours() -> None:
            if when():
                raise ConfigurationError("it is served with another ledger", "mailbox_owner")

        inbox.daemon._require_ours = require_ours
        with pytest.raises(ConfigurationError, match="another ledger"):
            asyncio.run(asyncio.wait_for(inbox.daemon.run(), PATIENCE_S))

    def test_is_noticed_before_the_mails_of_a_list_are_worked_off(self, inbox: Inbox) -> None:
        inbox.mailbox.mails = {name: mail(name) for name in map(str, range(30))}
        inbox.mailbox.reading_s = 0.1
        self.owned_by_another(inbox, lambda: len(inbox.mailbox.sent) > 1)
        assert len(inbox.mailbox.sent) < 30

    def test_while_nobody_can_tell_no_mail_is_started(self, inbox: Inbox) -> None:
        """As where the mail server has no connection left for the question."""
        is_unknown, times_asked = True, 0

        async def require_ours() -> None:
            nonlocal times_asked
            times_asked += 1
            if is_unknown:
                raise integration_error("mail_unavailable", outage=True)

        async def known_again() -> None:
            nonlocal is_unknown
            while times_asked < 2:
                await asyncio.sleep(0.02)
            inbox.mailbox.mails["first"] = mail("first")
            while ["mail_unavailable"] not in inbox.observer.down:
                await asyncio.sleep(0.02)
            assert inbox.mailbox.marks == {}
            is_unknown = False
            await inbox.answered()

        inbox.daemon._require_ours = require_ours
        inbox.configure(poll_interval_s=0.05)
        inbox.run_until(known_again())


def test_a_list_is_as_old_as_the_question_for_it(location: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who set marks while the mailbox took its time may have been too late for it."""
    asked_at = now = 1_800_000_000.0
    listed_at: list[float] = []

    async def list_slowly(self: MailboxInMemory, *arguments: Any) -> list[InboxEntry]:
        nonlocal now
        now += 3600.0
        return await list_at_once(self, *arguments)

    async def work(self: MailWorker, entry: InboxEntry, at: float, **_: Any) -> WorkResult:
        listed_at.append(at)
        return await work_on(self, entry, at)

    list_at_once, work_on = MailboxInMemory.list_unprocessed, MailWorker.work
    monkeypatch.setattr(MailboxInMemory, "list_unprocessed", list_slowly)
    monkeypatch.setattr(MailWorker, "work", work)
    with closing(open_ledger(location, key=KEY, now=lambda: now)) as ledger:
        assert Inbox(ledger, "first").drain()
    assert listed_at == [asked_at]


def test_one_whose_inbox_gives_no_answer_gets_later_and_later(ledger: Ledger) -> None:
    """So that a loop that hangs can be told from one that waits."""
    inbox = Inbox(ledger)
    inbox.mailbox.hangs.clear()

    async def late() -> None:
        while not inbox.daemon.standing.stuck:
            await asyncio.sleep(0.01)
        inbox.mailbox.hangs.set()

    inbox.run_until(late())


class TestObservers:
    def test_see_how_many_mails_wait_and_since_when(self, ledger: Ledger) -> None:
        inbox = Inbox(ledger, "first", "second")
        inbox.mailbox.received = {"first": 1_700_000_002.0, "second": 1_700_000_001.0}
        assert inbox.drain()
        assert inbox.observer.lists[0] == (2, 1_700_000_001.0)
        assert inbox.observer.lists[-1] == (0, None)

    def test_see_all_that_wait_where_more_do_than_are_listed(self, ledger: Ledger) -> None:
        inbox = Inbox(ledger, *(f"mail{number:04d}" for number in range(700)))
        inbox.warranties.errors = [integration_error("warranty_api_unavailable", outage=True)] * 100
        asyncio.run(inbox.daemon.count_inbox())
        assert not inbox.drain()
        assert inbox.observer.lists[0][0] == 700

    def test_see_what_a_mail_came_to_and_what_it_took(self, ledger: Ledger) -> None:
        inbox = Inbox(ledger, "first")
        assert inbox.drain()
        (result,) = inbox.observer.results
        assert (result.disposition, result.scenario, result.ticket_id) == (
            "answered",
            "valid-warranty",
            "TICKET-000001",
        )
        assert result.mail_key == mail_identity(parse_email(inbox.mailbox.mails["first"]), KEY)
        assert list(result.step_ms) == [
            *("parse", "instructions", "may_reply", "triage", "check_warranty", "draft", "create_ticket", "send"),
        ]
        assert sum(result.step_ms.values()) <= result.duration_ms + 1
        assert result.error is None

    def test_see_that_the_day_has_cost_what_it_may(self, ledger: Ledger) -> None:
        inbox = Inbox(ledger, "first", "second")
        inbox.daemon.worker = replace(inbox.daemon.worker, has_live_model=True, max_cost_usd=1.0)
        ledger.costs.add(1.5)
        assert inbox.drain()
        assert inbox.daemon.standing.finished == {"handed_over": 2}
        assert inbox.observer.down[-1] == ["llm_cost_limit"]

    def test_one_that_fails_keeps_no_mail_from_being_answered(
        self, ledger: Ledger, caplog: pytest.LogCaptureFixture
    ) -> None:
        inbox = Inbox(ledger, "first")

        def fail(*_: object) -> None:
            raise KeyError

        inbox.observer.listeners.append(fail)
        assert inbox.drain()
        assert inbox.daemon.standing.finished == {"answered": 1}
        assert "ERROR" in caplog.text
        assert "fail failed: unexpected KeyError" in caplog.text

    def test_see_an_inbox_that_cannot_be_listed(self, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("guarantee_email_agent.agent.daemon.OUTAGE_BACKOFF", Backoff(0.05))
        inbox = Inbox(ledger, "first")
        inbox.mailbox.errors["list_unprocessed"] = [integration_error("mail_unavailable", outage=True)]
        inbox.run_until(inbox.answered())
        assert inbox.observer.down == [["mail_unavailable"], []]
