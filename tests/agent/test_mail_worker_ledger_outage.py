"""Mails that an outage of the ledger interrupts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from agent_in_memory import AgentInMemory

from guarantee_email_agent.ledger.database import LedgerError
from guarantee_email_agent.ledger.ledger import Ledger

AFTER_THE_CLAIM = ("intend_ticket", "release", "finish")


@contextmanager
def without(ledger: Ledger, *writes: str) -> Iterator[None]:
    """While these writes find no database."""

    def away(*_: object, **__: object) -> None:
        raise LedgerError("gone", "ledger_unreachable", outage=True)

    with pytest.MonkeyPatch.context() as patch:
        for write in writes:
            patch.setattr(ledger, write, away)
        yield


def test_nothing_is_sent_that_is_not_written_down_before(agent: AgentInMemory) -> None:
    with without(agent.ledger, "intend_send", "release"):
        assert agent.work().disposition == "outage"
    assert agent.mailbox.sent == []
    agent.now += 101
    assert agent.work().disposition == "answered"
    assert len(agent.tickets.created) == len(agent.mailbox.sent) == 1


def test_it_uses_up_no_try_and_no_time(agent: AgentInMemory) -> None:
    """The claim that could not be given back then is given back as soon as that can be written."""
    for _ in range(4):
        with without(agent.ledger, *AFTER_THE_CLAIM):
            assert agent.work().disposition == "outage"
    assert agent.work().disposition == "answered"
    assert agent.worker.memory.unreleased == {}


def test_two_copies_of_a_mail_find_it_over_at_once(agent: AgentInMemory) -> None:
    with without(agent.ledger, *AFTER_THE_CLAIM):
        agent.work()
    (claim,) = agent.worker.memory.unreleased.values()

    async def at_once() -> None:
        await asyncio.gather(*(agent.worker._release_late(claim) for _ in range(2)))

    asyncio.run(at_once())
    assert agent.worker.memory.unreleased == {}
