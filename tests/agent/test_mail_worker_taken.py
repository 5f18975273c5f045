"""Mails that a person deals with, or takes away, between two tries."""

from __future__ import annotations

import asyncio

import pytest
from agent_in_memory import AgentInMemory, outcome, retry
from mailbox_in_memory import integration_error

from guarantee_email_agent.agent.identity_key import key_of_location
from guarantee_email_agent.agent.mail_outcome import WorkResult
from guarantee_email_agent.ledger.ledger_reader import LedgerReader


def settle(agent: AgentInMemory, mail_id: str | None = "first") -> WorkResult:
    worker = agent.worker
    place = key_of_location(worker.mailbox_name, "first", worker.processor.identity_key)
    return asyncio.run(worker.settle(place, mail_id))


def failed(agent: AgentInMemory) -> None:
    agent.warranties.errors = [integration_error("warranty_api_invalid_argument")]
    assert retry(agent.work()) == ("failed", 30.0)


def uncertain(agent: AgentInMemory, *, sent: bool = True) -> None:
    agent.mailbox.lose_proof(sent=sent)
    assert agent.work().disposition == "failed"


def take(agent: AgentInMemory, how: str) -> None:
    if how == "flagged":
        agent.mailbox.taken_care_of = {"first"}
    elif how == "marked":
        agent.mailbox.marks["first"] = "handed_over"
    else:
        del agent.mailbox.mails["first"]


@pytest.mark.parametrize("how", ["flagged", "marked", "deleted"])
def test_it_is_with_people_once_it_is_due(agent: AgentInMemory, how: str) -> None:
    failed(agent)
    take(agent, how)
    assert retry(settle(agent)) == ("waiting", 30.0)
    agent.now += 30
    assert settle(agent).disposition == "gone"
    assert agent.rows() == [("claimed", None, 1, "mail_not_waiting")]
    assert agent.mailbox.sent == agent.tickets.created == []


def test_one_that_comes_back_has_the_tries_that_it_had(agent: AgentInMemory) -> None:
    failed(agent)
    agent.mailbox.taken_care_of = {"first"}
    agent.now += 30
    settle(agent)
    agent.mailbox.taken_care_of = set()
    assert agent.work().disposition == "answered"


def test_one_that_only_a_list_left_out_is_left_as_it_is(agent: AgentInMemory) -> None:
    failed(agent)
    agent.now += 30
    assert settle(agent).disposition == "gone"
    assert agent.rows() == [("claimed", None, 1, "warranty_api_invalid_argument")]


@pytest.mark.parametrize("how", ["flagged", "deleted"])
def test_a_reply_that_has_left_ends_it_as_answered(agent: AgentInMemory, how: str) -> None:
    uncertain(agent)
    take(agent, how)
    agent.now += 3600
    result = settle(agent)
    assert (outcome(result), result.ended) == (("answered", "proved"), "answered")
    assert agent.mailbox.marks == ({"first": "answered"} if how == "flagged" else {})
    assert len(agent.mailbox.sent) == 1


def test_a_reply_that_has_not_left_never_does(agent: AgentInMemory) -> None:
    uncertain(agent, sent=False)
    take(agent, "deleted")
    agent.now += 3600
    assert settle(agent).disposition == "gone"
    assert agent.rows() == [("ticketed", None, 1, "mail_not_waiting")]
    assert agent.mailbox.sent == []


def test_a_proof_that_cannot_be_had_is_looked_for_again(agent: AgentInMemory) -> None:
    uncertain(agent)
    take(agent, "deleted")
    agent.now += 3600
    agent.mailbox.errors["find_sent"] = [integration_error("mail_unavailable", outage=True)]
    assert settle(agent).disposition == "outage"
    assert settle(agent).disposition == "answered"


def test_an_observer_leaves_a_reply_to_who_sent_it(agent: AgentInMemory) -> None:
    uncertain(agent)
    take(agent, "deleted")
    agent.now += 3600
    agent.configure_policy("observe")
    assert settle(agent).disposition == "gone"
    assert agent.rows()[0][:2] == ("sending", None)


def test_what_another_agent_works_on_or_has_ended_is_its_own(agent: AgentInMemory) -> None:
    assert settle(agent).disposition == "gone"
    agent.work()
    assert settle(agent).disposition == "gone"
    assert agent.rows()[0][1] == "answered"


def test_a_mail_whose_release_was_cut_short_stays_one(agent: AgentInMemory) -> None:
    """`status` names those that bear a mark and have no outcome, so that somebody releases them once more."""
    agent.configure(max_attempts=1)
    agent.warranties.errors = [integration_error("warranty_api_invalid_argument")]
    mail_key = agent.work().mail_key
    steps = agent.ledger.interventions
    steps.give_back_later(steps.release(mail_key, "person:1", 60.0, lambda _: False), 30.0)
    agent.now += 30
    assert settle(agent).disposition == "gone"
    with LedgerReader(str(agent.file), now=lambda: agent.now) as reader:
        assert reader.half_released() == {mail_key}
