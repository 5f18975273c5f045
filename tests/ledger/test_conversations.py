"""Threads, and the limits of replies: who was answered how often, over days, crashes and processes."""

from typing import Any

import pytest
from ledgers import LEASE_S, claim_mail, mail, reply_to

from guarantee_email_agent.config.settings import ReplyLimits
from guarantee_email_agent.ledger.database import LedgerError
from guarantee_email_agent.ledger.ledger import LeaseLostError, Ledger
from guarantee_email_agent.services.ports import OUTCOMES, Admission, Limit, Outcome, Thread

DAY_S = 86_400
ALICE, BOB = "a11ce" * 8, "b0b" * 12
LIMITS = ReplyLimits(per_address=3, per_thread=2, per_hour=5)
TEXT = "Dear support, my name is in here"


def answer(
    ledger: Ledger, number: int, *thread: str, outcome: Outcome = "answered", reason: str = "valid_warranty"
) -> Thread | None:
    """Answer a mail that refers to these replies."""
    claim = claim_mail(ledger, number)
    found = ledger.find_thread(claim, thread)
    ledger.intend_send(claim, reply_to(number), delivery="draft" if outcome == "drafted" else "send")
    ledger.finish(claim, outcome, reason)
    return found


def admit(ledger: Ledger, number: int, sender: str = ALICE, **keys: str) -> Limit | None:
    return ledger.admit(claim_mail(ledger, number), Admission(sender, **keys), LIMITS)


def found_thread(ledger: Ledger, number: int, *replies: str) -> Thread:
    found = ledger.find_thread(claim_mail(ledger, number), replies)
    assert found is not None
    return found


class TestThreads:
    def test_who_only_looks_finds_the_thread_and_the_mail_joins_nothing(self, ledger: Ledger) -> None:
        answer(ledger, 1, reason="missing_info")
        for _ in range(2):  # looking counts as no follow-up
            found = ledger.read_thread(mail(2), ["<theirs@example.com>", reply_to(1)])
            assert (found.scenario, found.reply_message_id, found.follow_ups) == ("missing_info", reply_to(1), 0)
        assert ledger.read_thread(mail(2), []) is None
        assert ledger.read_thread(mail(1), [reply_to(1)]) is None

    def test_a_mail_that_answers_a_reply_belongs_to_its_thread(self, ledger: Ledger) -> None:
        claim = claim_mail(ledger, 1)
        ledger.intend_ticket(claim, "mail-1")
        ledger.ticket_created(claim, "TICKET-1")
        before = ledger.time()
        ledger.intend_send(claim, reply_to(1))
        after = ledger.time()
        ledger.finish(claim, "answered", "valid_warranty")
        found = found_thread(ledger, 2, "<theirs@example.com>", reply_to(1))
        assert before <= found.replied_at <= after
        assert found == Thread(mail(1), "valid_warranty", "TICKET-1", reply_to(1), found.replied_at, 1, 0)

    def test_a_mail_without_a_reply_of_ours_belongs_to_none(self, ledger: Ledger) -> None:
        answer(ledger, 1)
        claim = claim_mail(ledger, 2)
        assert ledger.find_thread(claim, []) is None
        assert ledger.find_thread(claim, ["<theirs@example.com>", "", TEXT, "\0", "é", "<" * 9999]) is None

    @pytest.mark.parametrize("outcome", ["answered", "drafted", "unknown"])
    def test_a_reply_that_may_have_left_is_one(self, ledger: Ledger, outcome: Outcome) -> None:
        answer(ledger, 1, outcome=outcome)
        assert found_thread(ledger, 2, reply_to(1)).replies == 1

    def test_a_reply_that_never_left_is_none(self, ledger: Ledger) -> None:
        claim = claim_mail(ledger, 1)
        ledger.intend_send(claim, reply_to(1))
        ledger.not_sent(claim)
        assert ledger.find_thread(claim_mail(ledger, 2), [reply_to(1)]) is None

    def test_the_latest_ticket_of_the_thread_is_named(self, ledger: Ledger, ledger_sql: Any) -> None:
        for number, ticket in ((1, "TICKET-1"), (2, "TICKET-2")):
            claim = claim_mail(ledger, number)
            ledger.find_thread(claim, [reply_to(1)])
            ledger.intend_ticket(claim, f"mail-{number}")
            ledger.ticket_created(claim, ticket)
            ledger.intend_send(claim, reply_to(number))
            ledger.finish(claim, "answered")
            ledger_sql.pass_time(60)
        assert found_thread(ledger, 3, reply_to(1)).ticket_id == "TICKET-2"

    def test_an_automatic_mail_is_no_follow_up(self, ledger: Ledger) -> None:
        answer(ledger, 1)
        automatic = claim_mail(ledger, 2)
        ledger.find_thread(automatic, [reply_to(1)])
        ledger.finish(automatic, "not_answered", "no_reply")
        assert found_thread(ledger, 3, reply_to(1)).follow_ups == 0

    def test_a_follow_up_that_is_tried_again_does_not_count_itself(self, ledger: Ledger) -> None:
        answer(ledger, 1)
        claim = claim_mail(ledger, 2)
        for _ in range(2):
            found = ledger.find_thread(claim, [reply_to(1)])
            assert found.follow_ups == 0

    def test_of_many_ids_the_last_hundred_are_looked_at(self, ledger: Ledger) -> None:
        answer(ledger, 1)
        claim = claim_mail(ledger, 2)
        others = [f"<{number}@example.com>" for number in range(20_000)]
        assert ledger.find_thread(claim, [reply_to(1), *others]) is None
        assert ledger.find_thread(claim, [*others, reply_to(1), *others[:99]]) is not None

    def test_who_lost_the_lease_joins_no_thread(self, ledger: Ledger, ledger_sql: Any) -> None:
        answer(ledger, 1)
        stale = claim_mail(ledger, 2)
        ledger_sql.pass_time(LEASE_S + 1)
        claim_mail(ledger, 2)
        with pytest.raises(LeaseLostError):
            ledger.find_thread(stale, [reply_to(1)])
        assert found_thread(ledger, 3, reply_to(1)).follow_ups == 0


class TestLimits:
    def test_replies_to_one_address_are_limited(self, ledger: Ledger) -> None:
        assert [admit(ledger, number) for number in range(4)] == [None, None, None, "address"]
        assert admit(ledger, 4, BOB) is None

    def test_the_same_words_are_answered_three_times_whoever_writes_them(self, ledger: Ledger) -> None:
        words = {"text_key": "7e" * 16}
        assert [admit(ledger, number, mail(number), **words) for number in range(4)] == [None, None, None, "text"]
        assert admit(ledger, 4, mail(4)) is None

    @pytest.mark.parametrize("outcome", ["answered", "handed_over", "quarantined", None])
    def test_one_of_all_altered_copies_is_answered_however_late_they_come(
        self, ledger: Ledger, ledger_sql: Any, outcome: Outcome | None
    ) -> None:
        claim, copies = claim_mail(ledger, 1), {"copy_key": "c0" * 16}
        assert ledger.admit(claim, Admission(ALICE, **copies), LIMITS) is None
        if outcome == "answered":
            ledger.intend_send(claim, reply_to(1))
        if outcome:
            ledger.finish(claim, outcome)
        ledger_sql.pass_time(9 * DAY_S)
        assert [admit(ledger, number, BOB, **copies) for number in (2, 3)] == ["copy", "copy"]
        assert admit(ledger, 4, BOB, copy_key="c1" * 16) is None
        if not outcome:
            assert admit(ledger, 1, **copies) is None, "neither itself nor who was refused counts against it"

    @pytest.mark.parametrize("outcome", OUTCOMES)
    def test_a_mail_keeps_its_room_only_where_it_was_or_would_have_been_answered(
        self, ledger: Ledger, outcome: Outcome
    ) -> None:
        for number in range(3):
            claim = claim_mail(ledger, number)
            assert ledger.admit(claim, Admission(ALICE), LIMITS) is None
            if outcome in ("answered", "drafted", "unknown"):
                ledger.intend_send(claim, reply_to(number), delivery="draft" if outcome == "drafted" else "send")
            ledger.finish(claim, outcome)
        makes_room = outcome in ("handed_over", "not_answered", "quarantined")
        admitted = [admit(ledger, number) for number in range(3, 7)]
        assert admitted == ([None, None, None, "address"] if makes_room else ["address"] * 4)

    def test_nothing_is_admitted_once_a_reply_may_have_left(self, ledger: Ledger) -> None:
        claim = claim_mail(ledger, 1)
        ledger.intend_send(claim, reply_to(1))
        with pytest.raises(LedgerError) as caught:
            ledger.admit(claim, Admission(ALICE), LIMITS)
        assert caught.value.code == "ledger_wrong_stage"

    def test_what_a_sender_is_known_by_is_forgotten_after_a_day(self, ledger: Ledger, ledger_sql: Any) -> None:
        admit(ledger, 1, text_key="7e" * 16)
        assert ledger_sql.rows("SELECT sender_key, text_key FROM ledger_mails") == [(ALICE, "7e" * 16)]
        ledger_sql.pass_time(DAY_S)
        admit(ledger, 2, BOB)
        kept = "SELECT sender_key, text_key FROM ledger_mails ORDER BY mail_key"
        assert ledger_sql.rows(kept) == [(None, None), (BOB, None)]

    @pytest.mark.parametrize(
        "admission",
        [Admission(TEXT), Admission(ALICE, TEXT), Admission(ALICE, None, TEXT), Admission(ALICE, copy_key=TEXT)],
    )
    def test_text_of_a_customer_is_no_key(self, ledger: Ledger, admission: Admission) -> None:
        with pytest.raises(LedgerError) as caught:
            ledger.admit(claim_mail(ledger, 1), admission, LIMITS)
        assert caught.value.code == "ledger_invalid_value"
        assert "Dear" not in caught.value.message
