"""Mails whose agent was killed, or stopped, while it worked on them.

How it is known that an agent runs no more is tested in test_process_identity.py.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from agent_in_memory import AgentInMemory, outcome, retry
from mailbox_in_memory import KEY

from guarantee_email_agent.agent import mail_worker
from guarantee_email_agent.agent.process_identity import process_name
from guarantee_email_agent.email.identity import content_identity, mail_identity
from guarantee_email_agent.email.parsing.parse import parse_email
from guarantee_email_agent.ledger.ledger import Claim


def claimed_by(agent: AgentInMemory, owner: str, *, sending: bool = False) -> None:
    place = content_identity(f"place {agent.worker.mailbox_name} first".encode(), KEY)
    key = mail_identity(parse_email(agent.mailbox.mails["first"]), KEY)
    claim = agent.ledger.claim(key, location_key=place, owner=owner, lease_s=100)
    assert isinstance(claim, Claim)
    if sending:
        agent.ledger.intend_send(claim, "<reply@example.com>")


def ended_process() -> str:
    """Of a process of this machine that was started at another time."""
    return process_name().rpartition(":")[0] + ":1"


@pytest.mark.parametrize("sending", [False, True])
def test_on_this_machine_their_mails_are_free_at_once(
    agent: AgentInMemory, caplog: pytest.LogCaptureFixture, sending: bool
) -> None:
    claimed_by(agent, ended_process(), sending=sending)
    assert agent.work().disposition == "answered"
    assert "Email first is free again: the agent that claimed it, " in caplog.text


def test_a_mail_that_crashes_every_agent_is_left_for_a_person_unprocessed(agent: AgentInMemory) -> None:
    for _ in range(agent.worker.settings.max_attempts):
        claimed_by(agent, ended_process())
        agent.now += 101
    assert outcome(agent.work()) == ("quarantined", "crash")
    assert (agent.warranties.calls, agent.mailbox.marks) == (0, {"first": "quarantined"})


def test_a_mail_that_crashed_all_agents_but_one_has_its_last_try(agent: AgentInMemory) -> None:
    for _ in range(agent.worker.settings.max_attempts - 1):
        claimed_by(agent, ended_process())
        agent.now += 101
    assert agent.work().disposition == "answered"


def test_a_reply_whose_proof_may_come_late_is_waited_for(agent: AgentInMemory) -> None:
    agent.worker = replace(agent.worker, copy_wait_s=1.0)
    claimed_by(agent, ended_process(), sending=True)
    assert agent.work().disposition == "busy"
    agent.now += 101
    assert agent.work().disposition == "answered"


def test_an_agent_that_runs_here_is_looked_after_and_one_elsewhere_waited_for(agent: AgentInMemory) -> None:
    claimed_by(agent, process_name())
    assert retry(agent.work()) == ("busy", mail_worker.NEIGHBOUR_CHECK_S)
    agent.now += 101
    claimed_by(agent, "elsewhere:1:00000000:1:1")
    assert retry(agent.work()) == ("busy", 100)


def test_being_stopped_is_no_fault_of_the_mail(agent: AgentInMemory) -> None:
    agent.warranties.hangs = True

    async def stopped() -> None:
        calls = agent.warranties.calls
        task = asyncio.create_task(agent.worker.work(agent.entry("first"), agent.now))
        while agent.warranties.calls == calls:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    for _ in range(4):
        asyncio.run(stopped())
        assert agent.rows() == [("claimed", None, 0, "stopped")]
        assert retry(agent.work()) == ("waiting", 30.0)
        agent.now += 30
    agent.warranties.hangs = False
    assert agent.work().disposition == "answered"
