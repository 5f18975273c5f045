"""How a mail stands by the ledger's clock, and what a poll of the inbox learns of all its mails."""

from contextlib import closing
from typing import Any

from ledgers import KEY, LEASE_S, LOCATION, MAIL, claim_of_another, claimed

from guarantee_email_agent.ledger.ledger import Ledger
from guarantee_email_agent.ledger.mail_state import Busy, InboxState, Waiting
from guarantee_email_agent.ledger.opening import open_ledger


def test_a_clock_that_went_back_frees_nothing_and_prolongs_a_lease_by_its_own_length_at_most(
    ledger: Ledger, ledger_sql: Any
) -> None:
    claimed(ledger, "one:1")
    ledger_sql.pass_time(-10)
    assert isinstance(claim_of_another(ledger), Busy)
    ledger_sql.pass_time(-3600)
    state = ledger.state(LOCATION)
    assert isinstance(state, Busy)
    assert state.retry_in_s <= LEASE_S
    ledger_sql.pass_time(LEASE_S + 1)
    assert claimed(ledger, "two:2").crashes == 1


def test_a_claim_notices_a_clock_that_went_back_as_well(ledger: Ledger, ledger_sql: Any) -> None:
    ledger.release(claimed(ledger), count_attempt=True, retry_after_s=30)
    ledger_sql.pass_time(-3600)
    assert isinstance(claim_of_another(ledger), Waiting)
    ledger_sql.pass_time(31)
    claimed(ledger, "two:2")


def test_postgresql_asks_its_own_clock(postgresql_url: str) -> None:
    with closing(open_ledger(postgresql_url, key=KEY, now=lambda: 0.0)) as ledger:
        assert ledger.time() > 1_700_000_000


def test_a_poll_learns_of_its_inbox_at_once_what_the_ledger_knows(ledger: Ledger) -> None:
    ledger.finish(claimed(ledger, mail=MAIL, location=MAIL), "observed")
    ledger.finish(claimed(ledger, mail="c3" * 16, location="c3" * 16), "handed_over")
    claimed(ledger, mail="d4" * 16, location="e5" * 16)
    ledger.interventions.release("c3" * 16, lambda _: False)
    unseen = [f"{number:032x}" for number in range(1200)]
    known = ledger.inbox([*unseen, MAIL, "e5" * 16])
    seen, released = frozenset({MAIL, "e5" * 16}), frozenset({"c3" * 16})
    assert known == InboxState(seen, frozenset({MAIL}), released, {"e5" * 16: known.crashed["e5" * 16]})
    assert ledger.inbox([]) == InboxState(frozenset(), frozenset(), released, {})
