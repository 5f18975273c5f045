"""How one mail ends, after which failures it is retried, and what the ledger keeps: the real ledger and processor."""

from __future__ import annotations

import asyncio
import json
import logging
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mailbox_in_memory import KEY, MailboxInMemory, Tickets, Warranties, integration_error, mail, worker_on

from guarantee_email_agent.agent import mail_worker
from guarantee_email_agent.agent.identity_key import key_of_location
from guarantee_email_agent.agent.mail_outcome import WorkResult
from guarantee_email_agent.agent.process_identity import process_name
from guarantee_email_agent.config.settings import Mode, ReplyLimits
from guarantee_email_agent.email import processor
from guarantee_email_agent.email.identity import content_identity, mail_identity
from guarantee_email_agent.email.parsing.email import Email
from guarantee_email_agent.email.parsing.parse import parse_email
from guarantee_email_agent.integrations.ports import InboxEntry
from guarantee_email_agent.ledger.database import LedgerError
from guarantee_email_agent.ledger.ledger import Claim, Ledger
from guarantee_email_agent.ledger.opening import open_ledger
from guarantee_email_agent.utils.logging import configure_logging

MINUTE = 60.0


class AgentInMemory:
    """One worker, its mailbox, and its ledger on a clock that tests set."""

    def __init__(self, folder: Path) -> None:
        self.now = 1_800_000_000.0
        self.file = folder / "ledger.db"
        self.ledger: Ledger = open_ledger(str(self.file), key=KEY, now=lambda: self.now)
        self.mailbox = MailboxInMemory("first")
        self.warranties, self.tickets = Warranties(), Tickets()
        self.worker = worker_on(self.mailbox, self.ledger, self.warranties, self.tickets)

    def configure(self, **settings: Any) -> None:
        self.worker = replace(self.worker, settings=replace(self.worker.settings, **settings))

    def configure_policy(self, mode: Mode) -> None:
        self.configure(mode=mode)
        policy = replace(self.worker.processor.policy, mode=mode)
        self.worker = replace(self.worker, processor=replace(self.worker.processor, policy=policy))

    def work(self, name: str = "first") -> WorkResult:
        return asyncio.run(self.worker.work(self.entry(name), self.now))

    def entry(self, name: str) -> InboxEntry:
        return InboxEntry(name, len(self.mailbox.mails.get(name, b"")))

    def rows(self) -> list[tuple[str, str | None, int, str]]:
        with closing(sqlite3.connect(self.file)) as ledger:
            return ledger.execute("SELECT stage, outcome, attempts, reason FROM ledger_mails").fetchall()


def outcome(result: WorkResult) -> tuple[str, str]:
    return result.disposition, result.reason


def retry(result: WorkResult) -> tuple[str, float]:
    return result.disposition, result.retry_s


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[AgentInMemory]:
    agent = AgentInMemory(tmp_path)
    yield agent
    agent.ledger.close()


class TestRetries:
    @pytest.mark.parametrize("code", ["warranty_api_timeout", "warranty_api_failed", "warranty_api_malformed"])
    def test_what_may_be_a_services_gets_more_time_with_every_try(self, agent: AgentInMemory, code: str) -> None:
        agent.warranties.errors = [integration_error(code)] * 3
        for retry_s in (5 * MINUTE, 60 * MINUTE):
            result = agent.work()
            assert (result.disposition, result.retry_s) == ("failed", retry_s)
            agent.now += result.retry_s
        assert agent.work().disposition == "quarantined"

    def test_what_is_the_mails_own_is_known_soon(self, agent: AgentInMemory) -> None:
        agent.warranties.errors = [integration_error("warranty_api_invalid_argument")] * 2
        for retry_s in (30, 60):
            assert agent.work().retry_s == retry_s
            agent.now += retry_s

    def test_an_outage_uses_up_no_try(self, agent: AgentInMemory) -> None:
        for _ in range(5):
            agent.warranties.errors = [integration_error("warranty_api_unavailable", outage=True)]
            assert agent.work().disposition == "outage"
        assert agent.work().disposition == "answered"

    def test_a_mail_over_its_time_waits_for_a_service_that_may_be_slow(self, agent: AgentInMemory) -> None:
        agent.configure(mail_budget_s=0.05)
        agent.warranties.hangs = True
        result = agent.work()
        assert (result.disposition, result.retry_s) == ("failed", 5 * MINUTE)

    @pytest.mark.parametrize(("held_back_s", "disposition"), [(0.02, "failed"), (0.04, "outage")])
    def test_a_mail_is_not_to_blame_for_the_time_that_a_rate_limit_took(
        self, agent: AgentInMemory, held_back_s: float, disposition: str
    ) -> None:
        agent.configure(mail_budget_s=0.05)
        agent.warranties.hangs, agent.warranties.held_back_s = True, held_back_s
        assert agent.work().disposition == disposition

    def test_being_stopped_is_no_fault_of_the_mail(self, agent: AgentInMemory) -> None:
        agent.warranties.hangs = True

        async def stopped() -> None:
            calls = agent.warranties.calls
            task = asyncio.create_task(agent.worker.work(agent.entry("first"), agent.now))
            while agent.warranties.calls == calls:
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        for _ in range(4):
            asyncio.run(stopped())
            assert agent.rows() == [("claimed", None, 0, "stopped")]
            agent.now += 31
        agent.warranties.hangs = False
        assert agent.work().disposition == "answered"


class TestRepeatedWork:
    def test_a_mail_that_cannot_be_read_again_is_still_known_as_answered(self, agent: AgentInMemory) -> None:
        agent.mailbox.lost_answers = 1
        agent.mailbox.errors["send"] = [integration_error("mail_timeout", uncertain=True)]
        agent.mailbox.errors["find_sent"] = [integration_error("mail_timeout", retryable=True)]
        assert agent.work().disposition == "failed"
        agent.now += 2000
        agent.mailbox.errors["read_raw"] = [integration_error("mail_timeout")]
        assert (agent.work().disposition, agent.mailbox.marks) == ("answered", {"first": "answered"})
        assert len(agent.mailbox.sent) == len(agent.rows()) == 1

    def test_a_ticket_that_an_earlier_version_began_to_open_keeps_its_key(self, agent: AgentInMemory) -> None:
        location_key = key_of_location(agent.worker.mailbox_name, "first", KEY)
        claim = agent.ledger.claim("ab" * 16, location_key=location_key, owner="earlier", lease_s=MINUTE)
        assert isinstance(claim, Claim)
        agent.ledger.intend_ticket(claim, "mail-earlier")
        agent.now += 2 * MINUTE
        assert agent.work().disposition == "answered"
        assert agent.tickets.created == ["mail-earlier"]

    def test_a_mail_without_a_message_id_that_comes_twice_is_answered_once(self, agent: AgentInMemory) -> None:
        raw = mail("first").replace(b"Message-ID: <first@example.org>\r\n", b"")
        agent.mailbox.mails = {name: f"Delivered-To: {name}@example.com\r\n".encode() + raw for name in ("one", "two")}
        assert [agent.work(name).disposition for name in ("one", "two")] == ["answered"] * 2
        assert (len(agent.mailbox.sent), len(agent.tickets.created)) == (1, 1)

    def test_a_proof_that_cannot_be_had_has_nothing_sent_again(self, agent: AgentInMemory) -> None:
        agent.mailbox.errors["send"] = [integration_error("mail_unavailable", uncertain=True, outage=True)]
        agent.mailbox.errors["find_sent"] = [integration_error("mail_unavailable", retryable=True, outage=True)]
        result = agent.work()
        assert (result.disposition, len(result.mail_key)) == ("outage", 32)
        assert agent.rows() == [("sending", None, 0, "mail_unavailable")]

    def test_a_mail_that_breaks_the_parser_counts_its_tries(
        self, agent: AgentInMemory, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def broken(_: bytes) -> None:
            raise RecursionError

        for module in (mail_worker, processor):
            monkeypatch.setattr(module, "parse_email", broken)
        for _ in range(2):
            agent.now += agent.work().retry_s
        assert agent.work().disposition == "quarantined"
        assert agent.rows() == [("claimed", "quarantined", 3, "processing_unexpected")]

    def test_a_mail_is_parsed_once(self, agent: AgentInMemory, monkeypatch: pytest.MonkeyPatch) -> None:
        parsed = []

        def parse(raw: bytes) -> Email:
            parsed.append(raw)
            return parse_email(raw)

        for module in (mail_worker, processor):
            monkeypatch.setattr(module, "parse_email", parse)
        for disposition in ("failed", "answered"):
            agent.warranties.errors = [integration_error("warranty_api_invalid_argument")] * (disposition == "failed")
            result = agent.work()
            agent.now += result.retry_s
            assert (result.disposition, len(parsed)) == (disposition, 1)
            parsed.clear()


class TestKilledAgents:
    """Leases of agents that no longer run; see test_process_identity.py for how that is known."""

    def claimed_by(self, agent: AgentInMemory, owner: str, *, sending: bool = False) -> None:
        place = content_identity(f"place {agent.worker.mailbox_name} first".encode(), KEY)
        key = mail_identity(parse_email(agent.mailbox.mails["first"]), KEY)
        claim = agent.ledger.claim(key, location_key=place, owner=owner, lease_s=100)
        assert isinstance(claim, Claim)
        if sending:
            agent.ledger.intend_send(claim, "<reply@example.com>")

    @staticmethod
    def ended() -> str:
        """Of a process of this machine that was started at another time."""
        return process_name().rpartition(":")[0] + ":1"

    @pytest.mark.parametrize("sending", [False, True])
    def test_on_this_machine_their_mails_are_free_at_once(
        self, agent: AgentInMemory, caplog: pytest.LogCaptureFixture, sending: bool
    ) -> None:
        self.claimed_by(agent, self.ended(), sending=sending)
        assert agent.work().disposition == "answered"
        assert "Email first is free again: the agent that claimed it, " in caplog.text

    def test_a_reply_whose_proof_may_come_late_is_waited_for(self, agent: AgentInMemory) -> None:
        agent.worker = replace(agent.worker, copy_wait_s=1.0)
        self.claimed_by(agent, self.ended(), sending=True)
        assert agent.work().disposition == "busy"
        agent.now += 101
        assert agent.work().disposition == "answered"

    def test_an_agent_that_runs_here_is_looked_after_and_one_elsewhere_waited_for(self, agent: AgentInMemory) -> None:
        self.claimed_by(agent, process_name())
        assert retry(agent.work()) == ("busy", mail_worker.NEIGHBOUR_CHECK_S)
        agent.now += 101
        self.claimed_by(agent, "elsewhere:1:00000000:1:1")
        assert retry(agent.work()) == ("busy", 100)


class TestOutcome:
    def test_a_mail_left_for_a_person_is_named_even_if_its_mark_fails(
        self, agent: AgentInMemory, caplog: pytest.LogCaptureFixture
    ) -> None:
        agent.configure(max_attempts=1)
        agent.warranties.errors = [integration_error("warranty_api_invalid_argument")]
        agent.mailbox.errors["mark"] = [integration_error("mail_unavailable", outage=True)]
        with caplog.at_level(logging.INFO):
            assert agent.work().disposition == "outage"
        assert "Email first failed 1 times (warranty_api_invalid_argument)" in caplog.text
        assert agent.work().disposition == "quarantined"

    def test_a_mail_that_is_taken_away_after_its_reply_counts_as_answered(self, agent: AgentInMemory) -> None:
        agent.mailbox.errors["mark"] = [integration_error("mail_not_found")]
        assert agent.work().disposition == "answered"

    def test_a_mail_that_is_taken_away_before_it_is_read_is_gone(self, agent: AgentInMemory) -> None:
        entry = agent.entry("first")
        del agent.mailbox.mails["first"]
        assert asyncio.run(agent.worker.work(entry, agent.now)).disposition == "gone"
        assert agent.rows() == []


class TestExclusive:
    @pytest.mark.parametrize("large", [False, True])
    def test_what_could_crash_the_agent_is_processed_alone(self, agent: AgentInMemory, large: bool) -> None:
        """After a crash nobody knows which of the mails in progress caused it."""
        names = ("first", "second", "third")
        for name in names:
            agent.mailbox.mails[name] = b"From: a@example.org\r\n\r\n" + name.encode() * (1 + large * 400_000)
            if not large:
                place = content_identity(f"place {agent.worker.mailbox_name} {name}".encode(), KEY)
                agent.ledger.claim(content_identity(name.encode(), KEY), location_key=place, owner="dead:1", lease_s=1)
        agent.now += 2
        agent.configure(max_mail_bytes=10_000_000)
        agent.mailbox.reading_s = 0.1

        async def all_at_once() -> list[WorkResult]:
            return await asyncio.gather(*(agent.worker.work(agent.entry(name), agent.now) for name in names))

        assert [result.disposition for result in asyncio.run(all_at_once())] == ["answered"] * 3
        assert agent.mailbox.most_read_at_once == 1


def test_a_ledger_that_is_away_costs_nothing_but_time(agent: AgentInMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object, **__: object) -> None:
        raise LedgerError("gone", "ledger_unreachable", {"outage": True})

    with monkeypatch.context() as patch:
        patch.setattr(agent.ledger, "intend_send", away)
        patch.setattr(agent.ledger, "release", away)
        assert agent.work().disposition == "outage"
    assert agent.mailbox.sent == []
    agent.now += 101
    assert agent.work().disposition == "answered"
    assert len(agent.tickets.created) == len(agent.mailbox.sent) == 1


def test_outages_of_the_ledger_use_up_no_try_and_no_time(agent: AgentInMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The claim that could not be given back then is given back as soon as that can be written."""

    def away(*_: object, **__: object) -> None:
        raise LedgerError("gone", "ledger_unreachable", {"outage": True})

    for _ in range(4):
        with monkeypatch.context() as patch:
            for write in ("intend_ticket", "release", "finish"):
                patch.setattr(agent.ledger, write, away)
            assert agent.work().disposition == "outage"
    assert agent.work().disposition == "answered"
    assert agent.worker.unreleased == {}


def test_two_copies_of_a_mail_find_an_outage_of_the_ledger_over_at_once(
    agent: AgentInMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object, **__: object) -> None:
        raise LedgerError("gone", "ledger_unreachable", {"outage": True})

    with monkeypatch.context() as patch:
        for write in ("intend_ticket", "release", "finish"):
            patch.setattr(agent.ledger, write, away)
        agent.work()
    (claim,) = agent.worker.unreleased.values()

    async def at_once() -> None:
        await asyncio.gather(*(agent.worker._release_late(claim) for _ in range(2)))

    asyncio.run(at_once())
    assert agent.worker.unreleased == {}


class TestIdsThatAreGivenAnew:
    """By a mailbox that was restored, or by whoever names files."""

    def work(self, agent: AgentInMemory, came_s: float = 10.0) -> WorkResult:
        entry = replace(agent.entry("first"), received=agent.now + came_s)
        agent.now += 100 * MINUTE
        return asyncio.run(agent.worker.work(entry, agent.now))

    def test_another_customers_mail_is_answered(self, agent: AgentInMemory) -> None:
        assert self.work(agent).disposition == "answered"
        agent.mailbox.marks.clear()
        agent.mailbox.mails["first"] = mail("another")
        assert self.work(agent).disposition == "answered"
        assert (len(agent.mailbox.sent), len(agent.tickets.created)) == (2, 2)

    def test_another_customers_mail_does_not_go_on_where_the_one_before_was_left(self, agent: AgentInMemory) -> None:
        agent.warranties.errors = [integration_error("warranty_api_unavailable", outage=True)]
        assert self.work(agent).disposition == "outage"
        agent.mailbox.mails["first"] = raw = mail("another")
        result = self.work(agent)
        assert (result.disposition, result.mail_key) == ("answered", mail_identity(parse_email(raw), KEY))

    def test_the_same_mail_is_not_answered_again(self, agent: AgentInMemory) -> None:
        self.work(agent)
        agent.mailbox.marks.clear()
        assert self.work(agent).disposition == "answered"
        assert (len(agent.mailbox.sent), agent.mailbox.marks) == (1, {"first": "answered"})

    def test_a_mail_that_was_there_before_is_the_one_that_an_earlier_version_saw(
        self, agent: AgentInMemory, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(mail_worker, "mail_identity", lambda *_: "e5" * 16)
            self.work(agent, came_s=-10.0)
        agent.mailbox.marks.clear()
        agent.now -= 100 * MINUTE
        assert self.work(agent, came_s=-10.0).disposition == "answered"
        assert len(agent.mailbox.sent) == 1


class TestModes:
    def test_a_draft_is_stored_once_and_the_mail_bears_its_mark(self, agent: AgentInMemory) -> None:
        agent.configure_policy(mode="drafts")
        assert outcome(agent.work()) == ("drafted", "valid-warranty")
        assert (len(agent.mailbox.drafts), agent.mailbox.sent, agent.tickets.created) == (1, [], [])
        assert agent.mailbox.marks == {"first": "drafted"}

    def test_a_draft_that_may_be_stored_is_looked_for_after_a_crash(self, agent: AgentInMemory) -> None:
        agent.configure_policy(mode="drafts")
        agent.mailbox.lost_answers = 1
        agent.mailbox.errors["save_draft"] = [integration_error("mail_timeout", uncertain=True)]
        assert agent.work().disposition == "failed"
        agent.now += 2000
        assert outcome(agent.work()) == ("drafted", "proved")
        assert len(agent.mailbox.drafts) == 1

    def test_a_draft_that_was_not_stored_is_stored_by_the_next_try(self, agent: AgentInMemory) -> None:
        agent.configure_policy(mode="drafts")
        agent.mailbox.errors["save_draft"] = [integration_error("mail_timeout", uncertain=True)]
        agent.work()
        agent.now += 2000
        assert agent.work().disposition == "drafted"
        assert len(agent.mailbox.drafts) == 1

    def test_a_drafts_folder_that_cannot_be_written_leaves_the_mail_as_it_was(self, agent: AgentInMemory) -> None:
        agent.configure_policy(mode="drafts")
        agent.mailbox.errors["save_draft"] = [integration_error("mail_permission", outage=True)]
        assert agent.work().disposition == "outage"
        assert (agent.mailbox.marks, agent.mailbox.drafts, agent.mailbox.sent) == ({}, [], [])

    def test_a_draft_begun_before_a_change_of_the_mode_is_not_sent_as_well(self, agent: AgentInMemory) -> None:
        agent.configure_policy(mode="drafts")
        agent.mailbox.lost_answers = 1
        agent.mailbox.errors["save_draft"] = [integration_error("mail_timeout", uncertain=True)]
        agent.work()
        agent.now += 2000
        agent.configure_policy(mode="answer")
        assert (agent.work().disposition, agent.mailbox.sent) == ("drafted", [])

    def test_observing_writes_to_the_ledger_alone(self, agent: AgentInMemory) -> None:
        agent.configure_policy(mode="observe")
        assert outcome(agent.work()) == ("observed", "valid-warranty")
        assert agent.mailbox.marks == {}
        assert agent.mailbox.sent == agent.mailbox.drafts == agent.tickets.created == []
        asked = agent.warranties.calls
        assert (agent.work().disposition, agent.warranties.calls) == ("observed", asked)

    def test_what_was_observed_is_left_to_people_after_the_change_to_answering(self, agent: AgentInMemory) -> None:
        agent.configure_policy(mode="observe")
        agent.work()
        agent.configure_policy(mode="answer")
        assert (agent.work().disposition, agent.mailbox.sent) == ("observed", [])

    def test_a_mail_that_fails_again_and_again_gets_no_mark_from_an_observer(self, agent: AgentInMemory) -> None:
        agent.configure_policy(mode="observe")
        agent.configure(max_attempts=1)
        agent.warranties.errors = [integration_error("warranty_api_invalid_argument")]
        assert (agent.work().disposition, agent.mailbox.marks) == ("observed", {})

    def test_a_reply_that_may_be_on_its_way_is_not_an_observers_to_judge(self, agent: AgentInMemory) -> None:
        agent.mailbox.errors["send"] = [integration_error("mail_timeout", uncertain=True)]
        agent.work()
        agent.now += 2000
        agent.configure_policy(mode="observe")
        assert (agent.work().disposition, agent.mailbox.marks) == ("waiting", {})
        agent.now += 2000
        agent.configure_policy(mode="answer")
        assert agent.work().disposition == "answered"

    def test_a_draft_names_the_ticket_that_was_opened_before_a_change_of_the_mode(self, agent: AgentInMemory) -> None:
        """Else whoever sends it would open a second one."""
        agent.mailbox.errors["send"] = [integration_error("mail_unavailable", outage=True)]
        assert (agent.work().disposition, len(agent.tickets.created)) == ("outage", 1)
        agent.configure_policy(mode="drafts")
        assert agent.work().disposition == "drafted"
        (draft,) = agent.mailbox.drafts
        assert "TICKET-000001" in draft.body
        assert "X-Agent-Ticket" not in draft.headers


class TestHandOver:
    FIRE = "Dryer SN12345 caught fire, my son is in hospital"

    def test_the_mail_is_marked_for_a_person(self, agent: AgentInMemory, caplog: pytest.LogCaptureFixture) -> None:
        agent.mailbox.mails["first"] = mail("first", self.FIRE)
        with caplog.at_level(logging.INFO):
            assert agent.work().disposition == "handed_over"
        assert (agent.mailbox.marks, agent.mailbox.sent) == ({"first": "handed_over"}, [])
        assert any(line.startswith("Email handed over: first (") for line in caplog.messages)

    def test_the_sixth_mail_of_a_day_is_handed_over(self, agent: AgentInMemory) -> None:
        names = [f"mail-{number}" for number in range(6)]
        agent.mailbox.mails = {name: mail(name, f"Is SN12345 under warranty? {name}") for name in names}
        assert [agent.work(name).disposition for name in names] == ["answered"] * 5 + ["handed_over"]
        assert "limit-address" in {reason for *_, reason in agent.rows()}

    def test_a_retry_does_not_count_as_another_mail(self, agent: AgentInMemory) -> None:
        agent.configure(limits=ReplyLimits(per_address=1))
        agent.warranties.errors = [integration_error("warranty_api_unavailable", outage=True)] * 3
        assert [agent.work().disposition for _ in range(4)] == ["outage"] * 3 + ["answered"]

    def test_a_reply_to_our_reply_is_noted_on_its_ticket(self, agent: AgentInMemory) -> None:
        agent.work()
        (reply_id,) = agent.mailbox.sent
        raw = mail("second", "Here is the photo.").replace(b"Subject:", f"References: {reply_id}\r\nSubject:".encode())
        agent.mailbox.mails["second"] = raw
        agent.now += 3600
        assert outcome(agent.work("second")) == ("handed_over", "follow-up")
        assert [ticket for ticket, _ in agent.tickets.notes.values()] == ["TICKET-000001"]

    def test_the_serial_number_that_was_asked_for_is_answered(self, agent: AgentInMemory) -> None:
        agent.mailbox.mails["first"] = mail("first", "Is my dryer still under warranty?")
        assert outcome(agent.work()) == ("answered", "missing-info")
        (reply_id,) = agent.mailbox.sent
        raw = mail("second", "It is SN12345.").replace(b"Subject:", f"References: {reply_id}\r\nSubject:".encode())
        agent.mailbox.mails["second"] = raw
        agent.now += 3600
        assert outcome(agent.work("second")) == ("answered", "valid-warranty")

    def test_taking_the_mark_off_has_the_agent_try(self, agent: AgentInMemory) -> None:
        agent.mailbox.mails["first"] = mail("first", self.FIRE)
        agent.work()
        agent.now += 120
        agent.mailbox.marks.clear()
        agent.mailbox.mails["first"] = mail("first")
        assert agent.work().disposition == "busy"
        assert agent.work().disposition in ("answered", "handed_over")

    def test_a_mark_that_stands_is_not_taken_for_one_that_was_taken_off(self, agent: AgentInMemory) -> None:
        agent.mailbox.mails["first"] = mail("first", self.FIRE)
        listed_at = agent.now  # by an agent that then stands still, while the clock goes back
        agent.now -= 7200
        agent.work()
        agent.now += 120
        assert asyncio.run(agent.worker.work(agent.entry("first"), listed_at)).disposition == "handed_over"
        assert [outcome for _, outcome, _, _ in agent.rows()] == ["handed_over"]


class TestPeople:
    def test_a_mail_that_a_person_answers_meanwhile_is_left_alone(self, agent: AgentInMemory) -> None:
        agent.mailbox.taken_care_of = {"first"}
        assert agent.work().disposition == "gone"
        assert (agent.mailbox.sent, agent.tickets.created, agent.mailbox.marks) == ([], [], {})
        agent.mailbox.taken_care_of = set()
        assert agent.work().disposition == "answered"

    def test_a_mail_that_a_person_answers_after_its_ticket_was_opened_is_named_with_the_ticket(
        self, agent: AgentInMemory, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        create_ticket = agent.tickets.create_ticket

        async def create_ticket_while_a_person_answers(ticket_data: Mapping[str, Any]) -> Mapping[str, Any]:
            agent.mailbox.taken_care_of = {"first"}
            return await create_ticket(ticket_data)

        monkeypatch.setattr(agent.tickets, "create_ticket", create_ticket_while_a_person_answers)
        caplog.set_level(logging.INFO)
        assert agent.work().disposition == "gone"
        assert (agent.mailbox.sent, agent.mailbox.marks) == ([], {})
        assert "dealt with by somebody else meanwhile; its ticket TICKET-000001 is open" in caplog.text


class TestLogFields:
    """What a collector of JSON lines gets without taking messages apart."""

    @pytest.fixture
    def lines(self, tmp_path: Path) -> Callable[[], list[dict[str, Any]]]:
        file = tmp_path / "agent.log"
        configure_logging("INFO", "ERROR", file, as_json=True)
        return lambda: [json.loads(line) for line in file.read_text().splitlines()]

    def test_an_answer_has_key_outcome_scenario_duration_tokens_and_cost(
        self, agent: AgentInMemory, lines: Callable[[], list[dict[str, Any]]]
    ) -> None:
        result = agent.work()
        line = lines()[-1]
        assert (line["mail"], line["mail_key"], line["outcome"]) == ("first", result.mail_key, "answered")
        assert (line["scenario"], line["tokens"], line["cost_usd"]) == ("valid-warranty", 0, 0.0)
        assert isinstance(line["duration_ms"], int)

    def test_a_mail_without_an_outcome_says_why(
        self, agent: AgentInMemory, lines: Callable[[], list[dict[str, Any]]]
    ) -> None:
        agent.warranties.errors = [integration_error("warranty_api_unavailable", outage=True)]
        agent.work()
        line = lines()[-1]
        assert (line["outcome"], line["code"], line["mail"]) == ("outage", "warranty_api_unavailable", "first")

    def test_an_observed_mail_is_no_answered_one(
        self, agent: AgentInMemory, lines: Callable[[], list[dict[str, Any]]]
    ) -> None:
        agent.configure_policy("observe")
        agent.work()
        assert lines()[-1]["outcome"] == "observed"
