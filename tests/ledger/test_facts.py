from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from ledgers import KEY

from guarantee_email_agent.ledger.database import LedgerError
from guarantee_email_agent.ledger.ledger import Ledger
from guarantee_email_agent.ledger.opening import open_ledger

INBOX, OTHER_INBOX = "b0" * 16, "b1" * 16
FIRST = 1_800_000_000.0


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


@pytest.mark.parametrize(("earliest", "later"), [(FIRST - 7200, FIRST - 7200), (None, FIRST), (FIRST + 1, FIRST)])
def test_one_in_the_future_goes_back_to_the_earliest_moment_that_it_can_be(
    tmp_path: Path, earliest: float | None, later: float
) -> None:
    """None is later than it was: the whole past of the inbox would be answered once the clock is right."""
    now = FIRST
    with closing(open_ledger(str(tmp_path / "ledger.db"), key=KEY, now=lambda: now)) as ledger:
        assert (ledger.first_start(INBOX, earliest), ledger.first_start(INBOX)) == (FIRST, FIRST)
        now = FIRST - 3600
        assert (ledger.first_start(INBOX), ledger.first_start_if_known(INBOX)) == (later, later)
        now = FIRST + 3600
        assert ledger.first_start(INBOX) == later


def test_one_that_is_no_number_is_damage(ledger: Ledger, ledger_sql: Any) -> None:
    ledger.first_start(INBOX)
    ledger_sql.rows("UPDATE ledger_facts SET value = 'x' WHERE name = ?", f"first_start {INBOX}")
    for ask in (ledger.first_start, ledger.first_start_if_known):
        with pytest.raises(LedgerError, match="Restore it from a backup") as caught:
            ask(INBOX)
        assert caught.value.code == "ledger_corrupt"
