"""What people do to mails: in which states it is refused, and that no reply becomes possible twice by it."""

from typing import Any

import pytest
from ledgers import LEASE_S, LOCATION, MAIL, REPLY, RETRY_S, WRITES, claimed, reopen

from guarantee_email_agent.ledger.interventions import RefusedError
from guarantee_email_agent.ledger.ledger import Claim, LeaseLostError, Ledger, OpenMails
from guarantee_email_agent.ledger.mail_state import Busy, Done, Free, Waiting

HOUR = 3600.0


def runs(_owner: str) -> bool:
    return False


def has_ended(_owner: str) -> bool:
    return True


def finished(ledger: Ledger, outcome: str, *before: str) -> None:
    claim = claimed(ledger)
    for write in (*before, outcome):
        WRITES[write](ledger, claim)
    ledger.marked(LOCATION)


def waiting(ledger: Ledger, *before: str) -> None:
    claim = claimed(ledger)
    for write in before:
        WRITES[write](ledger, claim)
    ledger.release(claim, count_attempt=True, retry_after_s=HOUR, reason="timeout")


def release(ledger: Ledger, ended: Any = runs) -> None:
    ledger.interventions.release(MAIL, ended, is_paid=True)


def to_unmark(ledger: Ledger, owner: str = "two:2") -> Claim:
    claim = ledger.claim(MAIL, location_key=LOCATION, owner=owner, lease_s=LEASE_S, to_unmark=True)
    assert isinstance(claim, Claim)
    return claim


def refusal(code: str, action: Any, *arguments: Any) -> str:
    with pytest.raises(RefusedError) as raised:
        action(*arguments)
    assert raised.value.code == code
    return raised.value.message


def stage(ledger_sql: Any) -> str:
    ((found,),) = ledger_sql.rows("SELECT stage FROM ledger_mails")
    return str(found)


class TestWaitsAndClaims:
    def test_a_wait_ends_and_the_tries_are_new(self, ledger: Ledger) -> None:
        waiting(ledger)
        assert isinstance(ledger.state(LOCATION), Waiting)
        release(ledger)
        assert ledger.state(LOCATION) == Free(MAIL, 0)
        assert ledger.inbox([]).released == {LOCATION}
        assert claimed(ledger).attempts == 1
        assert ledger.inbox([]).released == set()

    def test_a_mail_in_work_is_left_to_who_works_on_it(self, ledger: Ledger) -> None:
        claim = claimed(ledger, owner="mailhost:4711:abcd:1:2")
        message = refusal("ledger_mail_busy", release, ledger)
        assert "being worked on by mailhost:4711. " in message
        assert isinstance(ledger.state(LOCATION), Busy)
        ledger.intend_ticket(claim, "mail-1")

    def test_the_claim_of_a_killed_agent_ends_and_what_it_did_stays_known(
        self, ledger: Ledger, ledger_sql: Any
    ) -> None:
        claim = claimed(ledger)
        WRITES["intend_ticket"](ledger, claim)
        release(ledger, has_ended)
        assert ledger_sql.rows("SELECT worked_s, cost_usd FROM ledger_mails") == [(0.0, None)]  # and what it paid, not
        assert claimed(ledger, owner="two:2").previous == "ticketing"
        with pytest.raises(LeaseLostError):
            ledger.ticket_created(claim, "TICKET-1")

    def test_a_reply_on_its_way_is_waited_for(self, ledger: Ledger) -> None:
        WRITES["intend_send"](ledger, claimed(ledger))
        refusal("ledger_mail_sending", release, ledger, has_ended)
        assert isinstance(ledger.state(LOCATION), Busy)

    @pytest.mark.parametrize("ends", [(), ("unknown",)])
    def test_a_reply_that_may_have_left_is_looked_for_first(
        self, ledger: Ledger, ledger_sql: Any, ends: tuple[str, ...]
    ) -> None:
        first = claimed(ledger)
        for write in ("intend_send", *ends):
            WRITES[write](ledger, first)
        ledger_sql.pass_time(LEASE_S + 1)
        release(ledger)
        claim = claimed(ledger, owner="two:2")
        assert (claim.previous, claim.reply_message_id) == ("sending", REPLY)

    def test_a_mail_that_is_not_there(self, ledger: Ledger) -> None:
        refusal("ledger_mail_gone", release, ledger)


class TestParking:
    @pytest.mark.parametrize("outcome", ["quarantined", "handed_over"])
    def test_who_takes_the_mark_of_a_parked_mail_off_uses_up_no_try(self, ledger: Ledger, outcome: str) -> None:
        finished(ledger, outcome)
        release(ledger)
        assert ledger.state(LOCATION) == Free(MAIL, 0, to_unmark=True)
        ledger.unmarked(to_unmark(ledger))
        assert ledger.state(LOCATION) == Free(MAIL, 0)
        assert ledger.inbox([]).released == set()
        assert claimed(ledger).attempts == 1

    def test_an_agent_that_dies_before_the_mark_is_off_leaves_that_to_the_next(
        self, ledger: Ledger, ledger_sql: Any
    ) -> None:
        finished(ledger, "quarantined")
        release(ledger)
        to_unmark(ledger)
        refusal("ledger_mail_busy", ledger.interventions.hand_over, MAIL)  # whose mark would come off
        assert ledger.inbox([]).released == set()
        ledger_sql.pass_time(LEASE_S + 1)
        assert ledger.inbox([]).released == {LOCATION}
        claim = to_unmark(ledger, "three:3")
        assert claim.crashes == 0
        ledger.unmarked(claim)
        assert claimed(ledger, owner="four:4").attempts == 1

    def test_a_mark_that_was_set_too_late_comes_off_as_well(self, ledger: Ledger) -> None:
        """By who had finished the mail when a person gave it back."""
        finished(ledger, "quarantined")
        release(ledger)
        ledger.unmarked(to_unmark(ledger))
        ledger.marked(LOCATION)
        assert ledger.inbox([]).released == {LOCATION}

    def test_of_the_places_in_other_mailboxes_no_agent_sees_to_the_mark(self, ledger: Ledger) -> None:
        ledger.claim(MAIL, location_key=LOCATION, owner="one:1", lease_s=0, mailbox_key="c3" * 16)
        release(ledger)
        asked = [OpenMails(each * 16, (), 0.0, is_complete=False) for each in ("c3", "d4")]
        assert [ledger.inbox([], each).unlisted for each in asked] == [{LOCATION}, set()]
        assert ledger.inbox([LOCATION], asked[0]).unlisted == set()

    @pytest.mark.parametrize(
        ("outcome", "before"),
        [("answered", ("intend_send",)), ("drafted", ("intend_draft",)), ("not_answered", ()),
         ("observed", ())],
    )  # fmt: skip
    def test_what_has_ended_stays_so(self, ledger: Ledger, outcome: str, before: tuple[str, ...]) -> None:
        finished(ledger, outcome, *before)
        state = ledger.state(LOCATION)
        refusal("ledger_mail_ended", release, ledger)
        refusal("ledger_mail_ended", ledger.interventions.hand_over, MAIL)
        assert ledger.state(LOCATION) == state


class TestHandOver:
    def test_an_agent_that_works_on_it_can_do_nothing_more(self, ledger: Ledger) -> None:
        claim = claimed(ledger)
        assert ledger.interventions.hand_over(MAIL)
        for write in ("intend_ticket", "intend_send", "failed", "answered", "handed_over"):
            with pytest.raises(LeaseLostError):
                WRITES[write](ledger, claim)
        assert ledger.state(LOCATION) == Done(MAIL, "handed_over", "by_hand", False, None, None)

    def test_a_reply_that_leaves_cannot_be_stopped(self, ledger: Ledger) -> None:
        claim = claimed(ledger)
        WRITES["intend_send"](ledger, claim)
        refusal("ledger_mail_sending", ledger.interventions.hand_over, MAIL)
        ledger.finish(claim, "answered")

    def test_a_mail_that_waits_is_never_tried_again(self, ledger: Ledger, ledger_sql: Any) -> None:
        waiting(ledger)
        assert [ledger.interventions.hand_over(MAIL) for _ in range(2)] == [True, False]
        ledger_sql.pass_time(2 * HOUR)
        assert isinstance(ledger.claim(MAIL, location_key=LOCATION, owner="two:2", lease_s=1), Done)

    def test_an_unknown_reply_is_looked_for_still_where_it_is_given_back(self, ledger: Ledger, ledger_sql: Any) -> None:
        """By `release`, or by taking the mark off."""
        finished(ledger, "unknown", "intend_send")
        assert ledger.interventions.hand_over(MAIL)
        assert stage(ledger_sql) == "sending"
        ledger.marked(LOCATION)
        ledger_sql.pass_time(HOUR)
        assert reopen(ledger, LOCATION, listed_at=ledger.time())
        assert claimed(ledger, owner="two:2").previous == "sending"

    def test_it_makes_room_for_another_reply(self, ledger: Ledger, ledger_sql: Any) -> None:
        claim = claimed(ledger)
        WRITES["admit"](ledger, claim)
        ledger.release(claim, count_attempt=True, retry_after_s=RETRY_S)
        ledger.interventions.hand_over(MAIL)
        assert ledger_sql.rows("SELECT admitted_at, sender_key FROM ledger_mails") == [(None, None)]

    def test_a_reply_that_may_have_left_counts_against_the_limits_still(self, ledger: Ledger, ledger_sql: Any) -> None:
        finished(ledger, "unknown", "admit", "intend_send")
        assert ledger.interventions.hand_over(MAIL)
        ((admitted_at, sender_key),) = ledger_sql.rows("SELECT admitted_at, sender_key FROM ledger_mails")
        assert admitted_at is not None
        assert sender_key is not None


def test_a_mail_that_could_not_be_read_is_released_for_who_can_read_it_now(ledger: Ledger) -> None:
    unread = ledger.claim(LOCATION, location_key=LOCATION, owner="one:1", lease_s=LEASE_S)
    assert isinstance(unread, Claim)
    assert isinstance(ledger.claim(MAIL, location_key=LOCATION, owner="two:2", lease_s=LEASE_S), Busy)
    ledger.release(unread, count_attempt=True, retry_after_s=0)
    ledger.interventions.release(LOCATION, runs)
    assert claimed(ledger).attempts == 1


def test_nobody_takes_a_mail_while_its_ticket_is_being_opened(ledger: Ledger) -> None:
    """The number would come to nobody's knowledge, and a person would open another."""
    claim = claimed(ledger)
    WRITES["intend_ticket"](ledger, claim)
    refusal("ledger_mail_busy", ledger.interventions.hand_over, MAIL)
    ledger.ticket_created(claim, "TICKET-1")
    assert ledger.interventions.hand_over(MAIL)


def test_a_mail_that_was_taken_is_not_reopened_by_who_saw_it_without_a_mark(ledger: Ledger, ledger_sql: Any) -> None:
    finished(ledger, "handed_over")
    ledger_sql.pass_time(HOUR)
    listed_at = ledger.time()
    assert not ledger.interventions.hand_over(MAIL)
    assert not reopen(ledger, LOCATION, listed_at=listed_at)


@pytest.mark.parametrize("outcome", ["quarantined", "unknown"])
def test_a_parked_mail_that_a_person_takes_gets_the_mark_of_it(ledger: Ledger, outcome: str) -> None:
    """An agent that finds none known sets one; it would take one that is known, and off, for a mail to be tried."""
    finished(ledger, outcome, *(("intend_send",) if outcome == "unknown" else ()))
    assert ledger.interventions.hand_over(MAIL)
    state = ledger.state(LOCATION)
    assert isinstance(state, Done)
    assert (state.outcome, state.marked) == ("handed_over", False)


def test_who_stood_still_while_a_person_took_a_mail_does_not_reopen_it(ledger: Ledger, ledger_sql: Any) -> None:
    """Its mark had been taken off; then it was handed over, and the clock went back."""
    finished(ledger, "quarantined")
    ledger_sql.pass_time(HOUR)
    state, listed_at = ledger.state(LOCATION), ledger.time()
    assert isinstance(state, Done)
    assert ledger.interventions.hand_over(MAIL)
    ledger_sql.pass_time(-2 * HOUR)
    ledger.marked(LOCATION)
    ledger_sql.pass_time(HOUR)
    assert not ledger.reopen(LOCATION, fence=state.fence, listed_at=listed_at)
    assert reopen(ledger, LOCATION, listed_at=listed_at)  # as somebody does who sees it without a mark now
