"""Drafts, mails handed over, mails only observed: what they may follow, and what their marks mean."""

from __future__ import annotations

from typing import Any

import pytest
from ledgers import LEASE_S, MAIL, REPLY, claimed, reopen

from guarantee_email_agent.ledger.ledger import Claim, Ledger
from guarantee_email_agent.services.ports import Outcome

DAY_S = 86_400


def finished(ledger: Ledger, mail: str, outcome: Outcome, reason: str = "") -> None:
    claim = claimed(ledger, mail=mail, location=mail)
    if outcome in ("answered", "drafted"):
        ledger.intend_send(claim, REPLY, delivery="draft" if outcome == "drafted" else "send")
    ledger.finish(claim, outcome, reason)


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
