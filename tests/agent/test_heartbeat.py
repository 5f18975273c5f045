"""What an agent says of itself in the ledger while it works, and that nothing of it stays when it ends."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
from contextlib import closing

import pytest
from mailbox_in_memory import integration_error

from guarantee_email_agent.agent.heartbeat import Heartbeat
from guarantee_email_agent.agent.process_identity import process_name
from guarantee_email_agent.agent.standing import Standing
from guarantee_email_agent.ledger.agents import AgentReport, RunningAgent, RunningAgents
from guarantee_email_agent.ledger.ledger import Ledger
from guarantee_email_agent.ledger.ledger_reader import LedgerReader


def listed(location: str) -> list[RunningAgent]:
    with LedgerReader(location) as reader:
        return reader.agents()


def test_it_is_listed_while_it_runs_with_what_is_down(
    ledger: Ledger, location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("guarantee_email_agent.agent.heartbeat.INTERVAL_S", 0.01)

    async def live() -> list[RunningAgent]:
        standing = Standing()
        async with Heartbeat(ledger.agents, "one:1", "drafts", standing).beating():
            standing.inbox_listed(2, 900.0)
            standing.failed(integration_error("warranty_api_timeout"))
            while not listed(location)[0].outages:
                await asyncio.sleep(0.01)
            return listed(location)

    (agent,) = asyncio.run(live())
    assert (agent.owner, agent.mode, agent.waiting, agent.oldest_received) == ("one:1", "drafts", 2, 900.0)
    assert [(outage.service, outage.code) for outage in agent.outages] == [("warranty_api", "warranty_api_timeout")]
    assert listed(location) == []


@pytest.mark.parametrize("silent_s", [None, 700.0])
def test_a_main_loop_that_stands_still_is_told(ledger: Ledger, location: str, silent_s: float | None) -> None:
    async def live() -> list[RunningAgent]:
        async with Heartbeat(ledger.agents, "one:1", "answer", Standing(), lambda: silent_s).beating():
            return listed(location)

    (agent,) = asyncio.run(live())
    assert [outage.code for outage in agent.outages] == ([] if silent_s is None else ["not_listed"])


def test_it_takes_the_place_of_one_that_was_killed_here_and_of_no_other(ledger: Ledger, location: str) -> None:
    name, _, started = process_name().rpartition(":")
    assert f":{os.getpid()}:" in name
    for owner in (f"{name}:{int(started) + 1}", "elsewhere:1"):
        ledger.agents.beat(owner, AgentReport("1.0", "answer"))

    async def live() -> list[str]:
        async with Heartbeat(ledger.agents, process_name(), "answer", Standing()).beating():
            return [agent.owner for agent in listed(location)]

    assert asyncio.run(live()) == ["elsewhere:1", process_name()]


def test_a_start_that_is_cancelled_in_its_first_entry_leaves_none(ledger: Ledger, location: str) -> None:
    begun = threading.Event()

    class Announced(RunningAgents):
        def beat(self, owner: str, report: AgentReport) -> None:
            begun.set()
            super().beat(owner, report)

    async def live() -> None:
        async with Heartbeat(Announced(ledger._database), "one:1", "answer", Standing()).beating():
            pytest.fail("the start was not cancelled")

    async def cancelled() -> None:
        with closing(sqlite3.connect(location, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            start = asyncio.create_task(live())
            await asyncio.to_thread(begun.wait)
            start.cancel()
            await asyncio.sleep(0)
            other.execute("ROLLBACK")
            await asyncio.gather(start, return_exceptions=True)

    asyncio.run(cancelled())
    assert begun.is_set()
    assert listed(location) == []
