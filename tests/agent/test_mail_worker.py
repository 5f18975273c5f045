"""How one mail ends, after which failures it is retried, and what the ledger keeps: the real ledger and processor."""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from agent_in_memory import AgentInMemory, retry
from mailbox_in_memory import KEY, integration_error, mail

from guarantee_email_agent.agent import mail_worker
from guarantee_email_agent.agent.identity_key import key_of_location
from guarantee_email_agent.agent.mail_outcome import WorkResult
from guarantee_email_agent.email import processor
from guarantee_email_agent.email.identity import content_identity, mail_identity
from guarantee_email_agent.email.parsing.parse import parse_email
from guarantee_email_agent.ledger.database import LedgerError
from guarantee_email_agent.ledger.ledger import Claim, Ledger
from guarantee_email_agent.services.ports import SentState

MINUTE = 60.0


class TestRetries:
    @pytest.mark.parametrize("code", ["warranty_api_timeout", "warranty_api_failed", "warranty_api_malformed"])
    def test_what_may_be_a_services_gets_more_time_with_every_try(self, agent: AgentInMemory, code: str) -> None:
        agent.warranties.errors = [integration_error(code)] * 3
        for retry_s in (5 * MINUTE, 60 * MINUTE):
            result = agent.work()
            assert (result.disposition, result.retry_s) == ("failed", retry_s)
            agent.now += result.retry_s
        assert agent.work().disposition == "quarantined"

    def test_an_outage_uses_up_no_try(self, agent: AgentInMemory) -> None:
        for _ in range(5):
            agent.warranties.errors = [integration_error("warranty_api_unavailable", outage=True)]
            assert agent.work().disposition == "outage"
        assert agent.work().disposition == "answered"

    @pytest.mark.parametrize(("held_back_s", "disposition"), [(0.1, "failed"), (0.4, "outage")])
    def test_a_mail_is_not_to_blame_for_the_time_that_a_rate_limit_took(
        self, agent: AgentInMemory, held_back_s: float, disposition: str
    ) -> None:
        agent.configure(mail_budget_s=0.5)
        agent.warranties.hangs, agent.warranties.held_back_s = True, held_back_s
        assert agent.work().disposition == disposition


class TestMailsThatCannotBeRead:
    def test_each_ends_with_a_person_where_others_can(self, agent: AgentInMemory) -> None:
        bad = [f"bad{number}" for number in range(3)]
        agent.mailbox.mails = {name: mail(name) for name in (*bad, "good0", "good1", "good2")}
        agent.mailbox.withheld = set(bad)
        tried = []
        for good in ("good0", "good1", "good2"):
            tried.append([retry(agent.work(name)) for name in bad])
            assert agent.work(good).disposition == "answered"
            agent.now += 60 * MINUTE
        # The first is alone with its failure; for the others, nobody can tell until one succeeds.
        assert tried == [
            [("failed", 5 * MINUTE), ("waiting", MINUTE), ("waiting", MINUTE)],
            [("failed", 60 * MINUTE), ("failed", 5 * MINUTE), ("failed", 5 * MINUTE)],
            [("quarantined", 0.0), ("failed", 60 * MINUTE), ("failed", 60 * MINUTE)],
        ]
        assert [agent.work(name).disposition for name in bad[1:]] == ["quarantined"] * 2

    def test_none_uses_up_a_try_where_none_can(self, agent: AgentInMemory) -> None:
        agent.mailbox.mails = {name: mail(name) for name in ("one", "two")}
        agent.mailbox.withheld = {"one", "two"}
        assert agent.work("one").disposition == "failed"
        for name in ("two", "one") * 4:
            assert agent.work(name).disposition == "waiting"
            agent.now += 60 * MINUTE
        assert [attempts for _, _, attempts, _ in agent.rows()] == [1, 0]
        assert agent.work("one").disposition == "failed"  # it alone fails now, as where the other one was deleted


each_failure = pytest.mark.parametrize(
    ("code", "outage"),
    [("mail_recipient_deferred", False), ("warranty_api_malformed", False), ("mail_unavailable", True)],
)


def fail(agent: AgentInMemory, code: str, times: int = 1, *, outage: bool = False) -> None:
    """The next calls of the service that the code names."""
    errors: list[Exception] = [integration_error(code, outage=outage) for _ in range(times)]
    if code.startswith("mail_"):
        agent.mailbox.errors["send"] = errors
    else:
        agent.warranties.errors = errors


class TestOneMailOrItsService:
    @each_failure
    def test_a_mail_that_alone_cannot_be_answered_ends_with_a_person(
        self, agent: AgentInMemory, code: str, outage: bool
    ) -> None:
        agent.mailbox.mails = {name: mail(name) for name in ("bad", *(f"good{number}" for number in range(4)))}
        found = []
        for number in range(4 if outage else 3):
            fail(agent, code, outage=outage)
            found.append(agent.work("bad").disposition)
            assert agent.work(f"good{number}").disposition == "answered"
            agent.now += 60 * MINUTE
        # Of an outage, the first failure tells nothing.
        assert found == (["outage"] if outage else []) + ["failed"] * 2 + ["quarantined"]

    @each_failure
    def test_no_mail_uses_up_a_try_where_none_can_be_answered(
        self, agent: AgentInMemory, code: str, outage: bool
    ) -> None:
        agent.mailbox.mails = {name: mail(name) for name in ("one", "two")}
        fail(agent, code, 7, outage=outage)
        agent.work("one")
        for name in ("two", "one") * 3:
            assert agent.work(name).disposition == ("outage" if outage else "waiting")
            agent.now += 60 * MINUTE
        assert [agent.work(name).disposition for name in ("one", "two")] == ["answered"] * 2

    @pytest.mark.parametrize("answers", [True, False])
    def test_two_that_fail_alone_on_a_quiet_inbox_end_where_the_mail_server_answers(
        self, agent: AgentInMemory, answers: bool
    ) -> None:
        agent.mailbox.mails = {name: mail(name) for name in ("one", "two")}
        fail(agent, "mail_recipient_deferred", 100)
        agent.mailbox.errors["test_connection"] = [] if answers else [integration_error("mail_unavailable")] * 100
        found = set()
        for _ in range(40):
            found |= {agent.work(name).disposition for name in ("one", "two")}
            agent.now += 60 * MINUTE
        assert ("quarantined" in found) == answers

    def test_a_mail_that_alone_cannot_be_marked_waits_alone(self, agent: AgentInMemory) -> None:
        agent.mailbox.mails = {name: mail(name) for name in ("bad", "good0", "good1", "good2")}
        found = []
        for number in range(3):
            agent.mailbox.errors["mark"] = [integration_error("mail_unavailable", outage=True)]
            found.append(retry(agent.work("bad")))
            assert agent.work(f"good{number}").disposition == "answered"
        assert found == [("outage", 0.0), *[("waiting", 60 * MINUTE)] * 2]
        assert agent.work("bad").disposition == "answered"
        assert (len(agent.mailbox.sent), agent.mailbox.marks["bad"]) == (4, "answered")


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

    def test_a_reply_of_which_nobody_can_tell_is_for_a_person(
        self, agent: AgentInMemory, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def find_sent(message_id: str, wait_s: float = 0.0) -> SentState:
            return "unknown"

        agent.mailbox.lose_proof(sent=False)
        assert agent.work().disposition == "failed"
        monkeypatch.setattr(agent.mailbox, "find_sent", find_sent)
        agent.now += 2000
        assert (agent.work().disposition, agent.mailbox.marks) == ("unknown", {"first": "unknown"})
        assert agent.mailbox.sent == []

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

    def test_a_proof_that_cannot_be_had_uses_up_no_try(self, agent: AgentInMemory) -> None:
        agent.mailbox.errors["send"] = [integration_error("mail_timeout", uncertain=True)]
        agent.mailbox.errors["find_sent"] = [integration_error("mail_failed")] * 6
        result = agent.work()
        for _ in range(5):
            agent.now += result.retry_s + 1
            result = agent.work()
            assert agent.rows() == [("sending", None, 1, "mail_failed")]
        agent.now += result.retry_s + 1
        assert agent.work().disposition == "answered"
        assert len(agent.mailbox.sent) == 1

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
        agent.mailbox.reading_s = 0.1

        async def all_at_once() -> list[WorkResult]:
            return await asyncio.gather(*(agent.worker.work(agent.entry(name), agent.now) for name in names))

        expected = ["handed_over" if large else "answered"] * 3  # a large one is cut
        assert [result.disposition for result in asyncio.run(all_at_once())] == expected
        assert agent.mailbox.most_read_at_once == 1


class TestHandOver:
    FIRE = "Dryer SN12345 caught fire, my son is in hospital"

    def test_the_sixth_mail_of_a_day_is_handed_over(self, agent: AgentInMemory) -> None:
        names = [f"mail-{number}" for number in range(6)]
        agent.mailbox.mails = {name: mail(name, f"Is SN12345 under warranty? {name}") for name in names}
        assert [agent.work(name).disposition for name in names] == ["answered"] * 5 + ["handed_over"]
        assert "limit-address" in {reason for *_, reason in agent.rows()}

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
        agent.before(monkeypatch, agent.tickets, "create_ticket", lambda: agent.mailbox.taken_care_of.add("first"))
        caplog.set_level(logging.INFO)
        assert agent.work().disposition == "gone"
        assert (agent.mailbox.sent, agent.mailbox.marks) == ([], {})
        assert "dealt with by somebody else meanwhile; its ticket TICKET-000001 is open" in caplog.text
        assert agent.rows() == [("ticketed", None, 0, "mail_not_waiting")]  # and no reply that may have left


class TestNewIds:
    """Mails by an id that another mail had before: in a mailbox that was restored, or where somebody names files."""

    def work(self, agent: AgentInMemory) -> WorkResult:
        entry = agent.entry("first")._replace(received=agent.now + 10.0)
        agent.now += 6000
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


AFTER_THE_CLAIM = ("intend_ticket", "release", "finish")


@contextmanager
def without(ledger: Ledger, *writes: str) -> Iterator[None]:
    """While these writes find no database."""

    def away(*_: object, **__: object) -> None:
        raise LedgerError("gone", "ledger_unreachable", outage=True)

    with pytest.MonkeyPatch.context() as patch:
        for write in writes:
            patch.setattr(ledger, write, away)
        yield


class TestLedgerOutage:
    def test_nothing_is_sent_that_is_not_written_down_before(self, agent: AgentInMemory) -> None:
        with without(agent.ledger, "intend_send", "release"):
            assert agent.work().disposition == "outage"
        assert agent.mailbox.sent == []
        agent.now += 101
        assert agent.work().disposition == "answered"
        assert len(agent.tickets.created) == len(agent.mailbox.sent) == 1

    def test_it_uses_up_no_try_and_no_time(self, agent: AgentInMemory) -> None:
        """The claim that could not be given back then is given back as soon as that can be written."""
        for _ in range(4):
            with without(agent.ledger, *AFTER_THE_CLAIM):
                assert agent.work().disposition == "outage"
        assert agent.work().disposition == "answered"
        assert agent.worker.memory.unreleased == {}

    def test_two_copies_of_a_mail_find_it_over_at_once(self, agent: AgentInMemory) -> None:
        with without(agent.ledger, *AFTER_THE_CLAIM):
            agent.work()
        (claim,) = agent.worker.memory.unreleased.values()

        async def at_once() -> None:
            await asyncio.gather(*(agent.worker._release_late(claim) for _ in range(2)))

        asyncio.run(at_once())
        assert agent.worker.memory.unreleased == {}
