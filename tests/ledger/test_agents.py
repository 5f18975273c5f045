"""Which agents run, as the ledger knows it, and what mails took of them."""

import pytest
from ledgers import MAIL, claimed
from postgresql import LedgerSql

from guarantee_email_agent.ledger.agents import FORGOTTEN_S, AgentReport, ReportedOutage, Work
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


@pytest.mark.parametrize("clock", [1, -1])
def test_who_was_killed_is_forgotten_after_a_day(ledger: Ledger, ledger_sql: LedgerSql, clock: int) -> None:
    ledger.agents.beat("one:1", AgentReport("1.0", "answer"))
    age(ledger_sql, clock * (FORGOTTEN_S + 1))
    ledger.agents.beat("two:2", AgentReport("1.0", "answer"))
    assert ledger.agents.names() == ["two:2"]


@pytest.mark.parametrize(
    ("costs", "total"), [((0.0, 0.25, 0.5), 0.75), ((0.25, None, 0.5), None), ((None, 0.25, 0.5), None)]
)
def test_what_a_mail_took_is_added_up(
    ledger: Ledger, ledger_location: str, costs: tuple[float | None, ...], total: float | None
) -> None:
    claimed(ledger)
    report = AgentReport("1.0", "answer")
    for work in map(Work, (1.5, 0.5, 1.0), costs):
        ledger.agents.beat("one:1", report, {MAIL: work, "e" * 32: work})
    with LedgerReader(ledger_location) as reader:
        row = reader.find(MAIL)
    assert (row.worked_s, row.cost_usd) == (3.0, total)


def test_what_a_stranger_may_have_written_is_refused(ledger: Ledger) -> None:
    with pytest.raises(LedgerError) as raised:
        ledger.agents.beat("one:1", AgentReport("1.0", "answer", outages=(ReportedOutage("x y", "code", 0.0),)))
    assert raised.value.code == "ledger_invalid_value"
    assert ledger.agents.names() == []
