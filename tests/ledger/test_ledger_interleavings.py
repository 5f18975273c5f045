"""Whatever two agents do with a mail, in whatever order, what the ledger promises holds after every step."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guarantee_email_agent.integrations.ports import Outcome
from guarantee_email_agent.ledger.database import LedgerError
from guarantee_email_agent.ledger.ledger import Busy, Claim, Done, LeaseLostError, Ledger, open_ledger

LEASE_S = 180.0
WAIT_S = 30.0
NUMBERS = itertools.count(1)

WRITES = {
    "intend_ticket": lambda ledger, claim: ledger.intend_ticket(claim, "mail-1"),
    "ticket_created": lambda ledger, claim: ledger.ticket_created(claim, "TICKET-1"),
    "intend_send": lambda ledger, claim: ledger.intend_send(claim, "<reply@example.com>"),
    "sent": lambda ledger, claim: ledger.sent(claim),
    "not_sent": lambda ledger, claim: ledger.not_sent(claim),
    "failed": lambda ledger, claim: ledger.release(claim, count_attempt=True, retry_after_s=WAIT_S),
    "outage": lambda ledger, claim: ledger.release(claim, count_attempt=False, retry_after_s=0),
    "answered": lambda ledger, claim: ledger.finish(claim, "answered"),
    "not_answered": lambda ledger, claim: ledger.finish(claim, "not_answered"),
    "quarantined": lambda ledger, claim: ledger.finish(claim, "quarantined"),
    "unknown": lambda ledger, claim: ledger.finish(claim, "unknown"),
}
EVENTS = st.sampled_from(("claim", "claim", "crash", "time passes", "clock goes back", *WRITES))


@dataclass
class Known:
    """What an onlooker knows, who sees every step."""

    holder: str | None = None
    lease_over: bool = True
    fence: int = 0
    attempts: int = 0
    intended: bool = False
    open_sending: bool = False
    sent: bool = False
    outcome: str | None = None
    claims: dict[str, Claim] = field(default_factory=dict)


@pytest.fixture
def ledger(ledger_location: str) -> Iterator[Ledger]:
    with closing(open_ledger(ledger_location, key=b"k" * 32)) as ledger:
        yield ledger


@settings(max_examples=200)
@given(events=st.lists(st.tuples(st.sampled_from(["one:1", "two:2"]), EVENTS), min_size=10, max_size=60))
def test_what_the_ledger_promises(ledger: Ledger, ledger_sql: Any, events: list[tuple[str, str]]) -> None:
    mail = f"{next(NUMBERS):032x}"
    known = Known()
    for owner, event in events:
        if event == "claim":
            claim_it(ledger, mail, owner, known)
        elif event == "time passes":
            ledger_sql.pass_time(LEASE_S + 1)
            known.lease_over = True
        elif event == "clock goes back":
            ledger_sql.pass_time(-3600)
        elif event == "crash":
            known.claims.pop(owner, None)
        elif owner in known.claims:
            write(ledger, ledger_sql, mail, owner, event, known)


def claim_it(ledger: Ledger, mail: str, owner: str, known: Known) -> None:
    answer = ledger.claim(mail, location_key=mail, owner=owner, lease_s=LEASE_S)
    if isinstance(answer, Claim):
        assert known.outcome is None
        assert known.lease_over, "taken from a living owner, or before its wait was over"
        assert answer.fence > known.fence
        assert answer.attempts == known.attempts + 1
        assert (answer.previous == "sending") == known.open_sending
        known.claims[owner] = answer
        known.holder, known.fence, known.attempts, known.lease_over = owner, answer.fence, answer.attempts, False
    elif isinstance(answer, Done):
        assert answer.outcome == known.outcome
    else:
        assert answer.retry_in_s <= (LEASE_S if isinstance(answer, Busy) else WAIT_S)
        assert isinstance(answer, Busy) == (known.holder is not None)


def write(ledger: Ledger, ledger_sql: Any, mail: str, owner: str, event: str, known: Known) -> None:
    claim = known.claims[owner]
    before = ledger_sql.rows("SELECT * FROM ledger_mails WHERE mail_key = ?", mail)
    refusal = None
    try:
        WRITES[event](ledger, claim)
    except (LeaseLostError, LedgerError) as error:
        refusal = error.code
    if refusal or known.holder is None:  # where nobody holds it, the same end may be written once more
        assert ledger_sql.rows("SELECT * FROM ledger_mails WHERE mail_key = ?", mail) == before
    if refusal:
        lost = claim.fence != known.fence or known.holder is None
        assert refusal == ("ledger_lease_lost" if lost else "ledger_wrong_stage")
        return
    assert claim.fence == known.fence, "written by somebody who had lost the lease"
    if known.holder is None:
        return
    known.lease_over = False
    if event in ("failed", "outage"):
        known.holder = None
        known.lease_over = event == "outage"
        known.attempts -= event == "outage"
    elif event in get_args(Outcome):
        assert known.intended or event != "answered"
        assert event in ("answered", "unknown") or not known.open_sending
        assert event == "answered" or not known.sent
        known.holder, known.outcome = None, event
    elif event == "intend_send":
        assert not known.open_sending, "sent again without proof"
        assert not known.sent, "sent again"
        known.intended = known.open_sending = True
    elif event == "sent":
        assert known.intended
        known.open_sending, known.sent = False, True
    elif event == "not_sent":
        assert known.open_sending, "nothing to take back"
        known.open_sending = False
    elif event in ("intend_ticket", "ticket_created"):
        assert not known.open_sending
        assert not known.sent
