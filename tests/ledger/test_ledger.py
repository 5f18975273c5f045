from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from ledgers import KEY, LEASE_S, LOCATION, MAIL, REPLY, RETRY_S, WRITES, claim_of_another, claimed, reopen

from guarantee_email_agent.ledger.database import LedgerError
from guarantee_email_agent.ledger.ledger import Claim, Ledger
from guarantee_email_agent.ledger.mail_state import Busy, Done, Free, Waiting
from guarantee_email_agent.ledger.opening import open_ledger
from guarantee_email_agent.services.ports import Outcome

OTHER_LOCATION = "c3" * 16


def ticketed(ledger: Ledger) -> Claim:
    claim = claimed(ledger)
    ledger.intend_ticket(claim, "mail-1")
    ledger.ticket_created(claim, "TICKET-1")
    return claim


def refused(call: Callable[[], object]) -> str:
    with pytest.raises(LedgerError) as caught:
        call()
    assert caught.value.details == {}
    return caught.value.code


def test_a_new_mail_is_claimed(ledger: Ledger) -> None:
    assert claimed(ledger) == Claim(MAIL, LOCATION, 1, 1, 0, "new", None, None, None, "", "send")


@pytest.mark.parametrize(
    ("beside", "counted"), [("nobody", 3), ("another that died with it", 0), ("others that end meanwhile", 3)]
)
def test_a_crash_counts_against_the_one_mail_that_can_have_caused_it(
    ledger: Ledger, ledger_sql: Any, beside: str, counted: int
) -> None:
    for number in range(3):
        claimed(ledger, f"host:{number}")
        if beside != "nobody":
            claimed(ledger, f"host:{number}", mail="c3" * 16, location="c3" * 16)
        if beside == "others that end meanwhile":
            ledger.finish(claimed(ledger, "two:2", mail=f"{number:032x}", location=f"{number:032x}"), "not_answered")
        ledger_sql.pass_time(LEASE_S + 1)
    last = claimed(ledger)
    assert (last.attempts, last.crashes, last.reason) == (1, counted, "crash")
    ledger.release(last, count_attempt=False, retry_after_s=0, reason="stopped")
    assert claimed(ledger).attempts == 1


def test_a_write_renews_the_lease_in_full(ledger: Ledger, ledger_sql: Any) -> None:
    claim = claimed(ledger)
    ledger_sql.pass_time(LEASE_S - 10)
    ledger.intend_ticket(claim, "mail-1")
    state = ledger.state(LOCATION)
    assert isinstance(state, Busy)
    assert state.retry_in_s > LEASE_S - 10


def test_the_whole_way_of_an_answered_mail(ledger: Ledger) -> None:
    claim = ticketed(ledger)
    ledger.intend_send(claim, REPLY)
    ledger.finish(claim, "answered", "valid-warranty")
    assert ledger.state(LOCATION) == Done(MAIL, "answered", "valid-warranty", False, "TICKET-1", REPLY)
    ledger.marked(LOCATION)
    assert ledger.state(LOCATION) == Done(MAIL, "answered", "valid-warranty", True, "TICKET-1", REPLY)


def test_the_next_claim_sees_how_far_the_last_one_got(ledger: Ledger, ledger_sql: Any) -> None:
    claim = claimed(ledger)
    seen = []
    for write, *values in (
        (ledger.intend_ticket, "mail-1"),
        (ledger.ticket_created, "TICKET-1"),
        (ledger.intend_send, REPLY),
    ):
        write(claim, *values)
        ledger_sql.pass_time(LEASE_S + 1)
        claim = claimed(ledger)
        seen.append((claim.previous, claim.ticket_key, claim.ticket_id, claim.reply_message_id))
    assert seen == [
        ("ticketing", "mail-1", None, None),
        ("ticketed", "mail-1", "TICKET-1", None),
        ("sending", "mail-1", "TICKET-1", REPLY),
    ]


def test_what_was_not_sent_goes_back_to_its_ticket(ledger: Ledger, ledger_sql: Any) -> None:
    claim = ticketed(ledger)
    ledger.intend_send(claim, REPLY)
    ledger.not_sent(claim)
    assert ledger_sql.rows("SELECT replied_at FROM ledger_mails") == [(None,)]
    ledger.release(claim, count_attempt=True, retry_after_s=0)
    assert claimed(ledger).previous == "ticketed"


def test_a_released_mail_waits_until_its_time(ledger: Ledger, ledger_sql: Any) -> None:
    ledger.release(claimed(ledger), count_attempt=True, retry_after_s=30, reason="warranty_timeout")
    waiting = claim_of_another(ledger)
    assert isinstance(waiting, Waiting)
    assert 0 < waiting.retry_in_s <= 30
    assert (waiting.attempts, waiting.reason) == (1, "warranty_timeout")
    ledger_sql.pass_time(31)
    assert ledger.state(LOCATION) == Free(MAIL, 1)
    assert claimed(ledger).reason == "warranty_timeout"


def test_a_mail_that_one_agent_cannot_read_is_the_one_that_another_read(ledger: Ledger, ledger_sql: Any) -> None:
    claimed(ledger)
    assert isinstance(ledger.claim(LOCATION, location_key=LOCATION, owner="two:2", lease_s=LEASE_S), Busy)
    ledger_sql.pass_time(LEASE_S + 1)
    claim = ledger.claim(LOCATION, location_key=LOCATION, owner="two:2", lease_s=LEASE_S)
    assert isinstance(claim, Claim)
    assert claim.mail_key == MAIL


def test_what_ended_before_it_could_be_read_has_ended(ledger: Ledger) -> None:
    ledger.finish(claimed(ledger, mail=LOCATION), "handed_over")
    found = ledger.claim(MAIL, location_key=LOCATION, owner="two:2", lease_s=LEASE_S)
    assert isinstance(found, Done)
    assert (found.mail_key, found.outcome) == (LOCATION, "handed_over")


def test_of_a_mail_that_can_be_read_at_last_nothing_else_is_left(ledger: Ledger, ledger_sql: Any) -> None:
    """Or it would be unfinished for ever, and a person could take over what no mail is known by any more."""
    WRITES["failed"](ledger, claimed(ledger, mail=LOCATION))
    ledger_sql.pass_time(RETRY_S + 1)
    claimed(ledger)
    assert ledger_sql.rows("SELECT mail_key FROM ledger_mails") == [(MAIL,)]


def test_a_mail_that_could_not_be_read_stays_known_where_a_copy_of_it_lies(ledger: Ledger, ledger_sql: Any) -> None:
    WRITES["failed"](ledger, claimed(ledger, mail=LOCATION))
    ledger_sql.pass_time(RETRY_S + 1)
    claim = claimed(ledger, mail=LOCATION, location=OTHER_LOCATION)
    ledger.release(claim, count_attempt=True, retry_after_s=0)
    claimed(ledger)
    assert sorted(ledger_sql.rows("SELECT mail_key FROM ledger_mails")) == [(MAIL,), (LOCATION,)]


def test_a_reply_whose_end_is_written_late_left_when_it_was_sent(ledger: Ledger, ledger_sql: Any) -> None:
    """An answer that comes within seconds of a reply is a machine's; within seconds of that end, perhaps a customer's.

    Its proof is looked for after a crash, or the agent stood still.
    """
    claim = claimed(ledger)
    WRITES["intend_send"](ledger, claim)
    ledger_sql.pass_time(60)  # moves what was written back
    ((intended_at,),) = ledger_sql.rows("SELECT replied_at FROM ledger_mails")
    ledger.finish(claim, "answered", "valid-warranty")
    assert ledger_sql.rows("SELECT replied_at FROM ledger_mails") == [(intended_at,)]


def test_only_locations_that_were_seen_are_known(ledger: Ledger) -> None:
    claimed(ledger)
    assert ledger.state(OTHER_LOCATION) is None
    assert refused(lambda: ledger.marked(OTHER_LOCATION)) == "ledger_unknown_place"


@pytest.mark.parametrize("outcome", ["quarantined", "unknown"])
def test_a_parked_mail_whose_mark_was_taken_off_begins_anew(ledger: Ledger, ledger_sql: Any, outcome: Outcome) -> None:
    claim = ticketed(ledger)
    if outcome == "unknown":
        ledger.intend_send(claim, REPLY)
    ledger.finish(claim, outcome, "mail_rejected")
    ledger.marked(LOCATION)
    ledger_sql.pass_time(61)
    assert reopen(ledger, LOCATION, listed_at=ledger.time())
    again = claimed(ledger)
    assert (again.attempts, again.previous, again.ticket_id) == (1, "ticketed", "TICKET-1")
    assert again.fence > claim.fence
    ledger.finish(again, "quarantined")
    state = ledger.state(LOCATION)
    assert isinstance(state, Done)
    assert not state.marked


def test_a_list_that_may_be_older_than_the_mark_opens_nothing(ledger: Ledger, ledger_sql: Any) -> None:
    ledger.finish(claimed(ledger), "quarantined")
    listed_at = ledger.time()
    ledger.marked(LOCATION)
    assert not reopen(ledger, LOCATION, listed_at=listed_at)
    ledger_sql.pass_time(3600)
    assert not reopen(ledger, LOCATION, listed_at=listed_at - 3600)
    assert not reopen(ledger, LOCATION, listed_at=listed_at - 3600 + 59)  # mailboxes do not show a mark to all at once
    assert isinstance(ledger.state(LOCATION), Done)
    assert reopen(ledger, LOCATION, listed_at=listed_at - 3600 + 90)


def test_a_clock_that_went_back_after_the_list_opens_nothing(ledger: Ledger) -> None:
    ledger.finish(claimed(ledger), "quarantined")
    listed_at = ledger.time() + 3600
    ledger.marked(LOCATION)
    assert not reopen(ledger, LOCATION, listed_at=listed_at)


def test_a_mark_that_was_set_while_the_clock_was_ahead_counts_in_a_minute(ledger: Ledger, ledger_sql: Any) -> None:
    ledger.finish(claimed(ledger), "quarantined")
    ledger.marked(LOCATION)
    ledger_sql.pass_time(-30 * 86_400)
    assert not reopen(ledger, LOCATION, listed_at=ledger.time())
    ledger_sql.pass_time(59)
    assert not reopen(ledger, LOCATION, listed_at=ledger.time())
    ledger_sql.pass_time(2)
    assert reopen(ledger, LOCATION, listed_at=ledger.time())


def test_a_copy_that_never_had_the_mark_opens_nothing(ledger: Ledger, ledger_sql: Any) -> None:
    claim = claimed(ledger)
    ledger.intend_send(claim, REPLY)
    ledger.finish(claim, "unknown")
    ledger.marked(LOCATION)
    claim_of_another(ledger, OTHER_LOCATION)
    ledger_sql.pass_time(3600)
    assert not reopen(ledger, OTHER_LOCATION, listed_at=ledger.time())


def test_marks_that_came_off_two_copies_at_a_time_open_the_mail_once(ledger: Ledger, ledger_sql: Any) -> None:
    ledger.finish(claimed(ledger), "quarantined")
    claim_of_another(ledger, OTHER_LOCATION)
    for location in (LOCATION, OTHER_LOCATION):
        ledger.marked(location)
    ledger_sql.pass_time(3600)
    assert reopen(ledger, LOCATION, listed_at=ledger.time())
    ledger.finish(claimed(ledger), "quarantined")
    ledger.marked(LOCATION)
    ledger_sql.pass_time(3600)
    assert not reopen(ledger, OTHER_LOCATION, listed_at=ledger.time())


@pytest.mark.parametrize(
    ("outcome", "opened"),
    [("handed_over", True), ("quarantined", True), ("drafted", False), ("answered", False), ("not_answered", False)],
)
def test_a_mark_taken_off_gives_back_what_has_no_reply_and_waits_for_a_person(
    ledger: Ledger, ledger_sql: Any, outcome: Outcome, opened: bool
) -> None:
    claim = claimed(ledger, location=MAIL)
    if outcome in ("answered", "drafted"):
        ledger.intend_send(claim, REPLY, delivery="draft" if outcome == "drafted" else "send")
    ledger.finish(claim, outcome)
    ledger.marked(MAIL)
    ledger_sql.pass_time(3600)
    assert reopen(ledger, MAIL, listed_at=ledger.time()) is opened
    found = ledger.claim(MAIL, location_key=MAIL, owner="two:2", lease_s=LEASE_S)
    assert isinstance(found, Claim) is opened


TEXT = "Dear support, my name is in here"


@pytest.mark.parametrize(
    "write",
    [
        lambda ledger, claim: ledger.claim(TEXT, location_key=LOCATION, owner="one:1", lease_s=1),
        lambda ledger, claim: ledger.claim(MAIL, location_key=TEXT, owner="one:1", lease_s=1),
        lambda ledger, claim: ledger.claim(MAIL, location_key=LOCATION, owner=TEXT, lease_s=1),
        lambda ledger, claim: ledger.state(TEXT),
        lambda ledger, claim: ledger.marked(TEXT),
        lambda ledger, claim: ledger.reopen(TEXT, fence=1, listed_at=0),
        lambda ledger, claim: ledger.intend_ticket(claim, TEXT),
        lambda ledger, claim: ledger.ticket_created(claim, TEXT),
        lambda ledger, claim: ledger.intend_send(claim, TEXT),
        lambda ledger, claim: ledger.finish(claim, "quarantined", TEXT),
        lambda ledger, claim: ledger.release(claim, count_attempt=True, retry_after_s=1, reason=TEXT),
    ],
)
def test_text_of_a_customer_is_refused(ledger: Ledger, write: Any) -> None:
    claim = claimed(ledger)
    with pytest.raises(LedgerError) as caught:
        write(ledger, claim)
    assert caught.value.code == "ledger_invalid_value"
    assert "Dear" not in caught.value.message


def test_the_file_holds_hashes_codes_and_ids(tmp_path: Path) -> None:
    with closing(open_ledger(str(tmp_path / "ledger.db"), key=KEY)) as ledger:
        claim = ticketed(ledger)
        ledger.intend_send(claim, REPLY)
        with pytest.raises(LedgerError):
            ledger.finish(claim, "unknown", TEXT)
        ledger.finish(claim, "answered", "valid-warranty")
        stored = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert TEXT.encode() not in stored
    assert KEY not in stored
    assert KEY.hex().encode() not in stored
    assert MAIL.encode() in stored
