"""A day is told once, whoever asks and however it ended before."""

from __future__ import annotations

from datetime import date

from postgresql import LedgerSql

from guarantee_email_agent.ledger.ledger import Ledger

BOX = "b0" * 16
DAY = date(2026, 1, 18)
LEASE_S = 900.0


def test_one_agent_has_the_turn_and_the_next_one_only_after_it(ledger: Ledger, ledger_sql: LedgerSql) -> None:
    turns = [ledger.summaries.begin(BOX, DAY, LEASE_S) for _ in range(2)]
    ledger_sql.rows("UPDATE ledger_facts SET value = '1000' WHERE name LIKE ?", "summary %")
    turns += [ledger.summaries.begin(BOX, DAY, LEASE_S) for _ in range(2)]
    assert turns == ["first", "no", "again", "no"]


def test_a_day_that_was_told_is_not_told_again(ledger: Ledger) -> None:
    ledger.summaries.begin(BOX, DAY, LEASE_S)
    ledger.summaries.told(BOX, DAY, 1000.0)
    assert ledger.summaries.begin(BOX, DAY, LEASE_S) == "no"
    assert ledger.summaries.begin("c1" * 16, DAY, LEASE_S) == "first"


def test_what_certainly_was_not_told_has_a_first_turn_again(ledger: Ledger) -> None:
    ledger.summaries.begin(BOX, DAY, LEASE_S)
    ledger.summaries.not_told(BOX, DAY)
    assert ledger.summaries.begin(BOX, DAY, LEASE_S) == "first"


def test_a_clock_that_was_set_back_keeps_nobody_waiting(ledger: Ledger, ledger_sql: LedgerSql) -> None:
    ledger.summaries.begin(BOX, DAY, LEASE_S)
    ledger_sql.rows("UPDATE ledger_facts SET value = '99000000000' WHERE name LIKE ?", "summary %")
    assert ledger.summaries.begin(BOX, DAY, LEASE_S) == "again"


def test_days_long_ago_are_forgotten(ledger: Ledger, ledger_sql: LedgerSql) -> None:
    for day in (date(2025, 1, 1), DAY):
        ledger.summaries.begin(BOX, day, LEASE_S)
        ledger.summaries.told(BOX, day, 1000.0)
    assert ledger_sql.rows("SELECT name FROM ledger_facts WHERE name LIKE ?", "summary %") == [
        (f"summary 2026-01-18 {BOX}",)
    ]


def test_the_end_of_what_was_told_last_is_kept_for_each_mailbox(ledger: Ledger) -> None:
    assert ledger.summaries.told_until(BOX) is None
    for end in (1000.0, 2000.5):
        ledger.summaries.begin(BOX, DAY, LEASE_S)
        ledger.summaries.told(BOX, DAY, end)
    assert ledger.summaries.told_until(BOX) == 2000.5
    assert ledger.summaries.told_until("c1" * 16) is None
