from __future__ import annotations

from typing import Any

import pytest

from guarantee_email_agent.ledger.database import LedgerError
from guarantee_email_agent.ledger.ledger import Ledger

INBOX, OTHER_INBOX = "b0" * 16, "b1" * 16


def test_it_stays_what_it_was(ledger: Ledger) -> None:
    assert ledger.first_start_if_known(INBOX) is None
    before = ledger.time()
    first = ledger.first_start(INBOX)
    assert before <= first <= ledger.time()
    assert ledger.first_start(INBOX) == first
    assert ledger.first_start_if_known(INBOX) == first


def test_a_ledger_that_goes_to_another_inbox_leaves_the_past_of_that_one_alone(ledger: Ledger) -> None:
    first = ledger.first_start(INBOX)
    assert ledger.first_start_if_known(OTHER_INBOX) is None
    assert ledger.first_start(OTHER_INBOX) > first


def test_the_start_of_a_ledger_for_one_inbox_is_that_of_the_first_which_asks(ledger: Ledger, ledger_sql: Any) -> None:
    ledger_sql.rows("INSERT INTO ledger_facts VALUES ('first_start', '1000.5')")
    assert ledger.first_start_if_known(INBOX) == 1000.5
    assert ledger.first_start(INBOX) == 1000.5
    assert ledger.first_start(OTHER_INBOX) > 1000.5
    assert ledger.first_start(INBOX) == 1000.5


def test_a_clock_that_was_wrong_at_the_first_start_does_not_keep_mail_unanswered(
    ledger: Ledger, ledger_sql: Any
) -> None:
    ledger.first_start(INBOX)
    ledger_sql.rows("UPDATE ledger_facts SET value = '4102444800.0' WHERE name = ?", f"first_start {INBOX}")
    first = ledger.first_start(INBOX)
    assert first <= ledger.time()
    assert ledger.first_start_if_known(INBOX) == first


def test_one_that_is_no_number_is_damage(ledger: Ledger, ledger_sql: Any) -> None:
    ledger.first_start(INBOX)
    ledger_sql.rows("UPDATE ledger_facts SET value = 'x' WHERE name = ?", f"first_start {INBOX}")
    for ask in (ledger.first_start, ledger.first_start_if_known):
        with pytest.raises(LedgerError, match="Restore it from a backup") as caught:
            ask(INBOX)
        assert caught.value.code == "ledger_corrupt"
