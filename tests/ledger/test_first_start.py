from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from ledgers import KEY, claimed

from guarantee_email_agent.ledger.agents import AgentReport
from guarantee_email_agent.ledger.database import LedgerError
from guarantee_email_agent.ledger.ledger import Ledger
from guarantee_email_agent.ledger.opening import open_ledger

INBOX, OTHER_INBOX = "b0" * 16, "b1" * 16
FIRST = 1_800_000_000.0
YEAR_S = 365 * 86_400.0


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


@pytest.mark.parametrize("follower", ["a mail", "an agent"])
def test_a_clock_that_is_behind_does_not_set_back_what_something_followed(
    ledger: Ledger, ledger_sql: Any, follower: str
) -> None:
    """Else the whole past of the inbox would be answered once the clock is right."""
    ledger.first_start(INBOX)
    if follower == "a mail":
        claimed(ledger)
        ledger_sql.rows("UPDATE ledger_mails SET changed_at = 4102444900.0")
    else:
        ledger.agents.beat("one:1", AgentReport("1.0", "answer"))
        ledger_sql.rows("UPDATE ledger_agents SET seen_at = 4102444900.0")
    ledger_sql.rows("UPDATE ledger_facts SET value = '4102444800.0' WHERE name = ?", f"first_start {INBOX}")
    assert not ledger.is_first_start(INBOX)
    assert ledger.first_start(INBOX) == 4102444800.0
    assert ledger.first_start_if_known(INBOX) == 4102444800.0
    ledger.first_start(OTHER_INBOX)
    assert not ledger.is_first_start(OTHER_INBOX)


def test_a_later_start_follows_too(tmp_path: Path) -> None:
    now = FIRST
    with closing(open_ledger(str(tmp_path / "ledger.db"), key=KEY, now=lambda: now)) as ledger:
        assert ledger.is_first_start(INBOX)
        assert ledger.first_start(INBOX) == FIRST
        now = FIRST - YEAR_S
        assert ledger.is_first_start(INBOX)
        now = FIRST + YEAR_S
        assert ledger.first_start(INBOX) == FIRST
        now = FIRST - YEAR_S
        for _ in range(2):
            assert not ledger.is_first_start(INBOX)
            assert ledger.first_start(INBOX) == FIRST


def test_one_that_was_set_back_is_followed_by_what_comes_after_it(tmp_path: Path) -> None:
    now = FIRST + YEAR_S
    with closing(open_ledger(str(tmp_path / "ledger.db"), key=KEY, now=lambda: now)) as ledger:
        ledger.first_start(INBOX)
        now = FIRST
        assert ledger.first_start(INBOX) == FIRST
        now = FIRST - YEAR_S
        assert ledger.is_first_start(INBOX)
        now = FIRST + 1
        assert ledger.first_start(INBOX) == FIRST
        now = FIRST - YEAR_S
        assert ledger.first_start(INBOX) == FIRST


def test_one_that_is_no_number_is_damage(ledger: Ledger, ledger_sql: Any) -> None:
    ledger.first_start(INBOX)
    ledger_sql.rows("UPDATE ledger_facts SET value = 'x' WHERE name = ?", f"first_start {INBOX}")
    for ask in (ledger.first_start, ledger.first_start_if_known):
        with pytest.raises(LedgerError, match="Restore it from a backup") as caught:
            ask(INBOX)
        assert caught.value.code == "ledger_corrupt"
