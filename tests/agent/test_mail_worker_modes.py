"""Drafts and observing, and mails that were begun before a change of the mode."""

from __future__ import annotations

import pytest
from agent_in_memory import AgentInMemory, outcome
from mailbox_in_memory import integration_error

from guarantee_email_agent.config.settings import Mode


def test_a_draft_is_stored_once_and_the_mail_bears_its_mark(agent: AgentInMemory) -> None:
    agent.configure_policy(mode="drafts")
    assert outcome(agent.work()) == ("drafted", "valid-warranty")
    assert (len(agent.mailbox.drafts), agent.mailbox.sent, agent.tickets.created) == (1, [], [])
    assert agent.mailbox.marks == {"first": "drafted"}


@pytest.mark.parametrize("mode", ["drafts", "answer"])
def test_a_draft_that_may_be_stored_is_looked_for_after_a_crash_and_not_sent_as_well(
    agent: AgentInMemory, mode: Mode
) -> None:
    agent.configure_policy(mode="drafts")
    agent.mailbox.lost_answers = 1
    agent.mailbox.errors["save_draft"] = [integration_error("mail_timeout", uncertain=True)]
    assert agent.work().disposition == "failed"
    agent.now += 2000
    agent.configure_policy(mode)
    assert outcome(agent.work()) == ("drafted", "proved")
    assert (len(agent.mailbox.drafts), agent.mailbox.sent) == (1, [])


def test_observing_writes_to_the_ledger_alone(agent: AgentInMemory) -> None:
    agent.configure_policy(mode="observe")
    assert outcome(agent.work()) == ("observed", "valid-warranty")
    assert agent.mailbox.marks == {}
    assert agent.mailbox.sent == agent.mailbox.drafts == agent.tickets.created == []
    asked = agent.warranties.calls
    assert (agent.work().disposition, agent.warranties.calls) == ("observed", asked)


def test_what_was_observed_is_left_to_people_after_the_change_to_answering(agent: AgentInMemory) -> None:
    agent.configure_policy(mode="observe")
    agent.work()
    agent.configure_policy(mode="answer")
    assert (agent.work().disposition, agent.mailbox.sent) == ("observed", [])


def test_a_mail_that_fails_again_and_again_gets_no_mark_from_an_observer(agent: AgentInMemory) -> None:
    agent.configure_policy(mode="observe")
    agent.configure(max_attempts=1)
    agent.warranties.errors = [integration_error("warranty_api_invalid_argument")]
    assert (agent.work().disposition, agent.mailbox.marks) == ("observed", {})


def test_a_reply_that_may_be_on_its_way_is_not_an_observers_to_judge(agent: AgentInMemory) -> None:
    agent.mailbox.errors["send"] = [integration_error("mail_timeout", uncertain=True)]
    agent.work()
    agent.now += 2000
    agent.configure_policy(mode="observe")
    assert (agent.work().disposition, agent.mailbox.marks) == ("waiting", {})
    agent.now += 2000
    agent.configure_policy(mode="answer")
    assert agent.work().disposition == "answered"


def test_a_draft_names_the_ticket_that_was_opened_before_a_change_of_the_mode(agent: AgentInMemory) -> None:
    """Else whoever sends it would open a second one."""
    agent.mailbox.errors["send"] = [integration_error("mail_unavailable", outage=True)]
    assert (agent.work().disposition, len(agent.tickets.created)) == ("outage", 1)
    agent.configure_policy(mode="drafts")
    assert agent.work().disposition == "drafted"
    (draft,) = agent.mailbox.drafts
    assert "TICKET-000001" in draft.body
    assert "X-Agent-Ticket" not in draft.headers


@pytest.mark.parametrize("mode", ["answer", "drafts"])
def test_a_mail_that_a_person_answers_meanwhile_gets_neither_reply_nor_draft(
    agent: AgentInMemory, monkeypatch: pytest.MonkeyPatch, mode: Mode
) -> None:
    agent.configure_policy(mode)
    agent.before(monkeypatch, agent.warranties, "check_warranty", lambda: agent.mailbox.taken_care_of.add("first"))
    for _ in range(4):
        assert agent.work().disposition == "gone"
    assert agent.mailbox.sent == agent.mailbox.drafts == agent.tickets.created == []
    assert agent.mailbox.marks == {}
    assert agent.rows() == [("claimed", None, 0, "mail_not_waiting")]
