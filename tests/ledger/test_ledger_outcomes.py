"""Drafts, mails handed over, mails only observed: what they may follow, and what their marks mean."""

from __future__ import annotations

from typing import Any

import pytest
from ledgers import LEASE_S, LOCATION, MAIL, REPLY, claimed, reopen

from guarantee_email_agent.ledger.database import LedgerError
from guarantee_email_agent.ledger.ledger import Claim, Ledger
from guarantee_email_agent.ledger.mail_state import Done
from guarantee_email_agent.services.ports import Outcome

DAY_S = 86_400


def finished(ledger: Ledger, mail: str, outcome: Outcome, reason: str = "") -> None:
    claim = claimed(ledger, mail=mail, location=mail)
    if outcome in ("answered", "drafted"):
        ledger.intend_send(claim, REPLY, delivery="draft" if outcome == "drafted" else "send")
    ledger.finish(claim, outcome, reason)


def test_the_next_claim_sees_what_the_reply_was_written_for(ledger: Ledger, ledger_sql: Any) -> None:
    claim = claimed(ledger)
    assert claim.delivery == "send"
    ledger.intend_send(claim, REPLY, delivery="draft")
    ledger_sql.pass_time(LEASE_S + 1)
    again = claimed(ledger)
    assert (again.previous, again.delivery, again.reply_message_id) == ("sending", "draft", REPLY)


def test_a_reply_may_be_sent_once_it_is_proved_that_it_was_not_stored(ledger: Ledger) -> None:
    claim = claimed(ledger)
    ledger.intend_send(claim, REPLY, delivery="draft")
    ledger.not_sent(claim)
    ledger.intend_send(claim, REPLY)
    ledger.sent(claim)
    ledger.finish(claim, "answered")
    assert ledger.state(LOCATION) == Done(MAIL, "answered", "", False, None, REPLY)


@pytest.mark.parametrize(("delivery", "outcome"), [("send", "drafted"), ("draft", "answered")])
def test_a_draft_is_no_answer_and_an_answer_no_draft(ledger: Ledger, delivery: Any, outcome: Outcome) -> None:
    claim = claimed(ledger)
    ledger.intend_send(claim, REPLY, delivery=delivery)
    ledger.sent(claim)
    with pytest.raises(LedgerError) as caught:
        ledger.finish(claim, outcome)
    assert caught.value.code == "ledger_wrong_stage"


@pytest.mark.parametrize("stage", ["sending", "sent"])
@pytest.mark.parametrize("outcome", ["handed_over", "observed"])
def test_a_mail_whose_reply_may_have_left_is_neither_handed_over_nor_observed(
    ledger: Ledger, stage: str, outcome: Outcome
) -> None:
    claim = claimed(ledger)
    ledger.intend_send(claim, REPLY)
    if stage == "sent":
        ledger.sent(claim)
    with pytest.raises(LedgerError) as caught:
        ledger.finish(claim, outcome)
    assert caught.value.code == "ledger_wrong_stage"


def test_a_draft_without_an_intent_is_refused(ledger: Ledger) -> None:
    with pytest.raises(LedgerError) as caught:
        ledger.finish(claimed(ledger), "drafted")
    assert caught.value.code == "ledger_wrong_stage"


@pytest.mark.parametrize(
    ("outcome", "opened"),
    [("handed_over", True), ("quarantined", True), ("drafted", False), ("answered", False), ("not_answered", False)],
)
def test_a_mark_taken_off_gives_back_what_has_no_reply_and_waits_for_a_person(
    ledger: Ledger, ledger_sql: Any, outcome: Outcome, opened: bool
) -> None:
    finished(ledger, MAIL, outcome)
    ledger.marked(MAIL)
    ledger_sql.pass_time(3600)
    assert reopen(ledger, MAIL, listed_at=ledger.time()) is opened
    found = ledger.claim(MAIL, location_key=MAIL, owner="two:2", lease_s=LEASE_S)
    assert isinstance(found, Claim) is opened


def test_pruning_forgets_what_bears_its_mark_and_keeps_what_has_none(ledger: Ledger, ledger_sql: Any) -> None:
    outcomes: tuple[Outcome, ...] = (
        "answered",
        "drafted",
        "handed_over",
        "not_answered",
        "observed",
        "quarantined",
        "unknown",
    )
    for number, outcome in enumerate(outcomes):
        finished(ledger, f"{number:032x}", outcome)
        if outcome != "observed":
            ledger.marked(f"{number:032x}")
    assert ledger.prune(30) == 0  # its first look at the clock
    ledger_sql.pass_time(31 * DAY_S)
    assert ledger.prune(30) == 4
    kept = ledger_sql.rows("SELECT outcome FROM ledger_mails ORDER BY mail_key")
    assert kept == [("observed",), ("quarantined",), ("unknown",)]


def test_observed_mails_are_found_among_many(ledger: Ledger) -> None:
    finished(ledger, MAIL, "observed")
    assert ledger.inbox([]).observed == ledger.inbox(["0" * 32]).observed == set()
    assert ledger.inbox([*(f"{number:032x}" for number in range(1200)), MAIL]).observed == {MAIL}


def test_mails_that_ended_otherwise_are_not_observed(ledger: Ledger) -> None:
    finished(ledger, MAIL, "handed_over")
    assert ledger.inbox([MAIL]).observed == set()
