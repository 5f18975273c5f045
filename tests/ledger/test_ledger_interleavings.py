"""Two agents write about one mail in any order: the ledger's invariants hold after every step."""

import itertools
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ledgers import LEASE_S, RETRY_S, WRITES

from guarantee_email_agent.ledger.database import LedgerError
from guarantee_email_agent.ledger.ledger import Claim, LeaseLostError, Ledger
from guarantee_email_agent.ledger.mail_state import Busy, Done
from guarantee_email_agent.ledger.tables import FINISH

NUMBERS = itertools.count(1)

EVENTS = st.sampled_from(("claim", "claim", "crash", "time passes", "clock goes back", *WRITES))


@dataclass
class Expected:
    """The state that follows from all steps so far."""

    holder: str | None = None
    lease_over: bool = True
    fence: int = 0
    attempts: int = 0
    given_back: int = 0
    intended: str | None = None
    open_sending: bool = False
    outcome: str | None = None
    claims: dict[str, Claim] = field(default_factory=dict)


@pytest.mark.slow
@settings(max_examples=200)
@given(events=st.lists(st.tuples(st.sampled_from(["one:1", "two:2"]), EVENTS), min_size=10, max_size=60))
def test_what_the_ledger_promises(ledger: Ledger, ledger_sql: Any, events: list[tuple[str, str]]) -> None:
    mail = f"{next(NUMBERS):032x}"
    expected = Expected()
    for owner, event in events:
        if event == "claim":
            claim(ledger, mail, owner, expected)
        elif event == "time passes":
            ledger_sql.pass_time(LEASE_S + 1)
            expected.lease_over = True
        elif event == "clock goes back":
            ledger_sql.pass_time(-3600)
        elif event == "crash":
            expected.claims.pop(owner, None)
        elif owner in expected.claims:
            write(ledger, ledger_sql, mail, owner, event, expected)


def claim(ledger: Ledger, mail: str, owner: str, expected: Expected) -> None:
    answer = ledger.claim(mail, location_key=mail, owner=owner, lease_s=LEASE_S)
    if isinstance(answer, Claim):
        assert expected.outcome is None
        assert expected.lease_over, "taken from a living owner, or before its wait was over"
        assert answer.fence > expected.fence
        expected.attempts += expected.holder is None
        assert answer.attempts == expected.attempts
        assert answer.crashes <= answer.fence - expected.given_back - 1
        assert (answer.previous == "sending") == expected.open_sending
        assert answer.delivery == (expected.intended or "send")
        expected.claims[owner] = answer
        expected.holder, expected.fence, expected.lease_over = owner, answer.fence, False
    elif isinstance(answer, Done):
        assert answer.outcome == expected.outcome
    else:
        assert answer.retry_in_s <= (LEASE_S if isinstance(answer, Busy) else RETRY_S)
        assert isinstance(answer, Busy) == (expected.holder is not None)


def write(ledger: Ledger, ledger_sql: Any, mail: str, owner: str, event: str, expected: Expected) -> None:
    claim = expected.claims[owner]
    before = ledger_sql.rows("SELECT * FROM ledger_mails WHERE mail_key = ?", mail)
    refusal = None
    try:
        WRITES[event](ledger, claim)
    except (LeaseLostError, LedgerError) as error:
        refusal = error.code
    if refusal or expected.holder is None:  # where nobody holds it, the same end may be written once more
        assert ledger_sql.rows("SELECT * FROM ledger_mails WHERE mail_key = ?", mail) == before
    if refusal:
        lost = claim.fence != expected.fence or expected.holder is None
        assert refusal == ("ledger_lease_lost" if lost else "ledger_wrong_stage")
        return
    assert claim.fence == expected.fence, "written by somebody who had lost the lease"
    if expected.holder is None:
        return
    expected.lease_over = False
    if event in ("failed", "outage"):
        expected.holder = None
        expected.given_back += 1
        expected.lease_over = event == "outage"
        expected.attempts -= event == "outage"
    elif event in FINISH:
        assert {"answered": "send", "drafted": "draft"}.get(event, expected.intended) == expected.intended
        assert event in ("answered", "drafted", "unknown") or not expected.open_sending
        expected.holder, expected.outcome = None, event
    elif event in ("intend_send", "intend_draft"):
        assert not expected.open_sending, "sent again without proof"
        expected.intended, expected.open_sending = event.removeprefix("intend_"), True
    elif event == "not_sent":
        assert expected.open_sending, "nothing to take back"
        expected.open_sending = False
    elif event in ("intend_ticket", "ticket_created", "admit"):
        assert not expected.open_sending
