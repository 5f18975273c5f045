"""Which agents run, as the ledger knows it, and what mails took of them."""

from __future__ import annotations

import pytest
from postgresql import LedgerSql

from guarantee_email_agent.ledger.agents import FORGOTTEN_S, AgentReport, ReportedOutage
from guarantee_email_agent.ledger.database import LedgerError
from guarantee_email_agent.ledger.ledger import Ledger
from guarantee_email_agent.ledger.ledger_reader import LedgerReader

DOWN = ReportedOutage("warranty_api", "warranty_api_timeout", 1000.5)


def age(ledger_sql: LedgerSql, seconds: float) -> None:
    ledger_sql.rows("UPDATE ledger_agents SET started_at = started_at - ?, seen_at = seen_at - ?", seconds, seconds)


def test_the_last_report_counts_and_the_start_stays(
    ledger: Ledger, ledger_location: str, ledger_sql: LedgerSql
) -> None:
    ledger.agents.beat("one:1", AgentReport("1.0", "answer"))
    age(ledger_sql, 100)
    ledger.agents.beat("one:1", AgentReport("1.0", "answer", 3, 900.0, (DOWN,)))
    with LedgerReader(ledger_location) as reader:
        (agent,) = reader.agents()
    assert (agent.mode, agent.waiting, agent.oldest_received, agent.outages) == ("answer", 3, 900.0, (DOWN,))
    assert agent.seen_at - agent.started_at >= 100


def test_who_was_killed_is_forgotten_after_a_day(ledger: Ledger, ledger_sql: LedgerSql) -> None:
    ledger.agents.beat("one:1", AgentReport("1.0", "answer"))
    age(ledger_sql, FORGOTTEN_S + 1)
    ledger.agents.beat("two:2", AgentReport("1.0", "answer"))
    assert ledger.agents.names() == ["two:2"]


def test_what_a_stranger_may_have_written_is_refused(ledger: Ledger) -> None:
    with pytest.raises(LedgerError) as raised:
        ledger.agents.beat("one:1", AgentReport("1.0", "answer", outages=(ReportedOutage("x y", "code", 0.0),)))
    assert raised.value.code == "ledger_invalid_value"
    assert ledger.agents.names() == []
