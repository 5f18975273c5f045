"""What the ledger remembers of outages: over agents that were killed, and of several that see different networks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from postgresql import LedgerSql

from guarantee_email_agent.ledger.agents import AgentReport
from guarantee_email_agent.ledger.database import LedgerError
from guarantee_email_agent.ledger.ledger import Ledger
from guarantee_email_agent.ledger.ledger_reader import LedgerReader
from guarantee_email_agent.ledger.outages import (
    FORGOTTEN_S,
    KEPT_S,
    SILENT_S,
    OutageReport,
    Place,
    RecordedOutage,
    united,
)

MAIL = Place("mail", "list", "a1" * 16)
USED = {("mail", "a1" * 16)}
BEGUN = OutageReport("0" * 32, MAIL, "mail_unavailable", 600.0, waiting=3)


def runs(ledger: Ledger, *owners: str) -> None:
    for owner in owners:
        ledger.agents.beat(owner, AgentReport("1.0", "answer"))


def recorded(location: str, **bounds: float) -> list[RecordedOutage]:
    with LedgerReader(location) as reader:
        return reader.outages(**bounds)


def test_a_later_agent_goes_on_with_what_one_left_that_is_gone(ledger: Ledger) -> None:
    runs(ledger, "one:1")
    ledger.outages.save("one:1", [BEGUN])
    ledger.agents.leave("one:1")
    (left,) = ledger.outages.take_over("two:2", USED)
    assert (left.id, left.place, left.code, left.waiting, left.is_ours) == (BEGUN.id, MAIL, BEGUN.code, 3, True)
    assert left.began_ago_s == pytest.approx(600, abs=30)
    runs(ledger, "two:2", "three:3")
    assert [each.is_ours for each in ledger.outages.take_over("three:3", USED)] == [False]
    assert [each.is_ours for each in ledger.outages.take_over("two:2", USED)] == [True]


def test_what_an_agent_that_runs_finds_down_is_its_own(ledger: Ledger, ledger_sql: LedgerSql) -> None:
    runs(ledger, "one:1")
    ledger.outages.save("one:1", [BEGUN])
    assert [each.is_ours for each in ledger.outages.take_over("two:2", USED)] == [False]
    ledger_sql.rows("UPDATE ledger_agents SET seen_at = seen_at - ?", SILENT_S + 1)
    assert [each.is_ours for each in ledger.outages.take_over("two:2", USED)] == [True]


def test_a_service_that_an_agent_does_not_ask_is_left_to_others(ledger: Ledger) -> None:
    ledger.outages.save("one:1", [BEGUN])
    assert ledger.outages.take_over("two:2", {("mail", "b2" * 16), ("orders", "a1" * 16)}) == []


def test_one_of_two_that_come_at_once_takes_it_over(ledger: Ledger) -> None:
    ledger.outages.save("gone:1", [BEGUN])
    runs(ledger, "one:1", "two:2")
    taken = [each.is_ours for owner in ("one:1", "two:2") for each in ledger.outages.take_over(owner, USED)]
    assert taken == [True, False]


def test_its_end_is_written_once_and_may_be_taken_back(ledger: Ledger, ledger_location: str) -> None:
    ledger.outages.save("one:1", [BEGUN])
    ended = replace(BEGUN, ended_ago_s=0.0, proved=True, waiting=7)
    ledger.outages.save("one:1", [ended])
    ledger.outages.save("one:1", [ended])
    (outage,) = recorded(ledger_location)
    assert outage.ended_at is not None
    assert outage.ended_at - outage.began_at == pytest.approx(600, abs=30)
    assert (outage.service, outage.code, outage.waiting) == ("mail", "mail_unavailable", 7)
    assert ledger.outages.take_over("two:2", USED) == []
    ledger.outages.save("one:1", [BEGUN])
    assert recorded(ledger_location)[0].ended_at is None


def test_one_that_nobody_confirms_ended_when_it_was_seen_last(
    ledger: Ledger, ledger_location: str, ledger_sql: LedgerSql
) -> None:
    ledger.outages.save("one:1", [BEGUN])
    ledger_sql.rows("UPDATE ledger_outages SET began_at = began_at - ?, seen_at = seen_at - ?", *[FORGOTTEN_S + 1] * 2)
    assert ledger.outages.take_over("two:2", set()) == []  # who has seen no outage, and asks other services
    (outage,) = recorded(ledger_location)
    assert outage.ended_at == outage.seen_at


def test_it_is_remembered_for_a_year(ledger: Ledger, ledger_location: str, ledger_sql: LedgerSql) -> None:
    ledger.outages.save("one:1", [replace(BEGUN, ended_ago_s=1.0)])
    ledger_sql.rows("UPDATE ledger_outages SET ended_at = ended_at - ?", KEPT_S - 60)
    ledger.outages.save("one:1", [])
    assert recorded(ledger_location)
    ledger_sql.rows("UPDATE ledger_outages SET ended_at = ended_at - ?", 120)
    ledger.outages.save("one:1", [])
    assert recorded(ledger_location) == []


def test_a_clock_that_went_back_makes_no_outage_begin_in_the_future(ledger: Ledger, ledger_sql: LedgerSql) -> None:
    ledger.outages.save("one:1", [BEGUN])
    ledger_sql.rows("UPDATE ledger_outages SET began_at = began_at + 5000, seen_at = seen_at + 5000")
    assert [each.began_ago_s for each in ledger.outages.take_over("two:2", USED)] == [0.0]


def test_only_those_of_a_time_are_read(ledger: Ledger, ledger_location: str) -> None:
    ledger.outages.save("one:1", [replace(BEGUN, ended_ago_s=300.0)])
    with LedgerReader(ledger_location) as reader:
        now = reader.now()
    assert len(recorded(ledger_location, since=now - 400, until=now - 200)) == 1
    assert recorded(ledger_location, since=now - 200) == []
    assert recorded(ledger_location, until=now - 700) == []


@pytest.mark.parametrize(
    "report",
    [
        replace(BEGUN, code="a word of Eve's"),
        replace(BEGUN, place=replace(MAIL, address_key="imap.example.com")),
        replace(BEGUN, place=replace(MAIL, service="mail server")),
        replace(BEGUN, id="1"),
    ],
)
def test_what_is_no_code_and_no_hash_is_refused(ledger: Ledger, report: OutageReport) -> None:
    with pytest.raises(LedgerError) as raised:
        ledger.outages.save("one:1", [report])
    assert raised.value.code == "ledger_invalid_value"


class Row:
    def __init__(self, began_at: float, ended_at: float | None, waiting: int | None = None, **more: Any) -> None:
        self.service, self.address_key, self.code = "mail", "a1" * 16, "mail_timeout"
        self.began_at, self.ended_at, self.seen_at, self.waiting = began_at, ended_at, ended_at or began_at, waiting
        self.__dict__ |= more


def test_what_several_agents_saw_at_the_same_time_is_one_outage() -> None:
    outages = united([Row(10, 20, 3), Row(15, 30, 5), Row(40, 50)])
    assert [(each.began_at, each.ended_at, each.waiting) for each in outages] == [(10, 30, 5), (40, 50, None)]


def test_it_lasts_while_one_of_them_finds_the_service_down() -> None:
    (outage,) = united([Row(10, None), Row(15, 30)])
    assert outage.ended_at is None


def test_another_address_is_another_service() -> None:
    outages = united([Row(10, 20), Row(12, 18, address_key="b2" * 16)])
    assert [each.began_at for each in outages] == [10, 12]


def test_what_lies_outside_of_a_time_may_be_part_of_what_lies_in_it(ledger: Ledger, ledger_location: str) -> None:
    """Two agents saw one outage one after the other."""
    ledger.outages.save("one:1", [OutageReport("1" * 32, MAIL, "mail_timeout", 7200.0, ended_ago_s=3600.0)])
    ledger.outages.save("two:2", [OutageReport("2" * 32, MAIL, "mail_timeout", 5400.0, ended_ago_s=600.0)])
    (whole,) = recorded(ledger_location)
    now = whole.began_at + 7200
    assert recorded(ledger_location, since=now - 1800) == recorded(ledger_location, until=now - 6000) == [whole]
    assert recorded(ledger_location, since=now - 60) == recorded(ledger_location, until=now - 9000) == []
