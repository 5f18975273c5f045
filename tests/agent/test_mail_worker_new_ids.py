"""Mails by an id that another mail had before: in a mailbox that was restored, or where somebody names files."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from agent_in_memory import AgentInMemory
from mailbox_in_memory import KEY, integration_error, mail

from guarantee_email_agent.agent.mail_outcome import WorkResult
from guarantee_email_agent.email.identity import mail_identity
from guarantee_email_agent.email.parsing.parse import parse_email


def work(agent: AgentInMemory, came_s: float = 10.0) -> WorkResult:
    entry = replace(agent.entry("first"), received=agent.now + came_s)
    agent.now += 6000
    return asyncio.run(agent.worker.work(entry, agent.now))


def test_another_customers_mail_is_answered(agent: AgentInMemory) -> None:
    assert work(agent).disposition == "answered"
    agent.mailbox.marks.clear()
    agent.mailbox.mails["first"] = mail("another")
    assert work(agent).disposition == "answered"
    assert (len(agent.mailbox.sent), len(agent.tickets.created)) == (2, 2)


def test_another_customers_mail_does_not_go_on_where_the_one_before_was_left(agent: AgentInMemory) -> None:
    agent.warranties.errors = [integration_error("warranty_api_unavailable", outage=True)]
    assert work(agent).disposition == "outage"
    agent.mailbox.mails["first"] = raw = mail("another")
    result = work(agent)
    assert (result.disposition, result.mail_key) == ("answered", mail_identity(parse_email(raw), KEY))


def test_the_same_mail_is_not_answered_again(agent: AgentInMemory) -> None:
    work(agent)
    agent.mailbox.marks.clear()
    assert work(agent).disposition == "answered"
    assert (len(agent.mailbox.sent), agent.mailbox.marks) == (1, {"first": "answered"})
