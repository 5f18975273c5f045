"""Mails that were begun before: by an agent that was killed or stopped, that a person took between two tries, or that
works in another mode now.

How it is known that an agent runs no more is tested in test_process_identity.py.
"""

import asyncio
from dataclasses import replace

import pytest
from agent_in_memory import AgentInMemory, outcome, retry
from mailbox_in_memory import KEY, integration_error

from guarantee_email_agent.agent import mail_worker
from guarantee_email_agent.agent.identity_key import key_of_location
from guarantee_email_agent.agent.mail_outcome import WorkResult
from guarantee_email_agent.agent.process_identity import process_name
from guarantee_email_agent.config.settings import Mode
from guarantee_email_agent.email.identity import content_identity, mail_identity
from guarantee_email_agent.email.parsing.parse import parse_email
from guarantee_email_agent.email.processor_models import ModelSettings
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
    processor = replace(agent.worker.processor, model=ModelSettings("claude-sonnet-4-6"))
    agent.worker = replace(agent.worker, processor=processor, has_live_model=True, max_cost_usd=9.0)
    claimed_by(agent, ended_process(), sending=sending)
    result = agent.work()
    assert (result.disposition, result.cost_usd) == ("answered", None)  # who knows what the other one paid
    assert 0.01 < agent.ledger.costs.today() < 0.1  # the most that the request took that it may have had under way
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
    agent.worker = replace(agent.worker, has_live_model=True)
    assert agent.work().cost_usd is None


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


def released(agent: AgentInMemory) -> str:
    agent.configure(max_attempts=1)
    agent.warranties.errors = [integration_error("warranty_api_invalid_argument")]
    mail_key = agent.work().mail_key
    assert agent.mailbox.marks == {"first": "quarantined"}
    agent.ledger.interventions.release(mail_key, lambda _: False)
    return mail_key


@pytest.mark.parametrize("code", ["", "mail_not_found"])
def test_a_mail_that_a_person_gave_back_loses_its_mark_and_is_tried_anew(agent: AgentInMemory, code: str) -> None:
    """Where it was taken away meanwhile, its mark is nobody's business."""
    released(agent)
    agent.mailbox.errors["unmark"] = [integration_error(code)] if code else []
    assert settle(agent).disposition == "gone"
    assert agent.mailbox.marks == ({"first": "quarantined"} if code else {})
    assert agent.rows()[0][1:] == (None, 0, "")


def test_where_the_mark_may_have_come_off_nobody_takes_the_mail_over_at_once(
    agent: AgentInMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was begun may take its effect yet, and would take the mark off that another agent sets."""
    released(agent)
    agent.mailbox.errors["unmark"] = [integration_error("mail_timeout", uncertain=True)]
    assert settle(agent).disposition == "outage"
    assert retry(settle(agent)) == ("waiting", mail_worker.SETTLE_S)
    agent.now += mail_worker.SETTLE_S
    agent.configure(mail_budget_s=0.3)
    monkeypatch.setattr(agent.mailbox, "unmark", lambda _: asyncio.sleep(60))
    assert retry(settle(agent)) == ("busy", mail_worker.SETTLE_S)
    assert agent.rows()[0][1:] == (None, 0, "released")


def test_a_mark_that_no_program_can_take_off_is_left_to_the_person(
    agent: AgentInMemory, caplog: pytest.LogCaptureFixture
) -> None:
    released(agent)
    agent.mailbox.errors["list_mails"] = [integration_error("mail_unsupported")]
    assert settle(agent).disposition == "gone"
    assert "Take its mark off in the mailbox" in caplog.text
    assert agent.rows()[0][1:] == (None, 0, "")


def test_who_only_observes_takes_no_mark_off(agent: AgentInMemory) -> None:
    released(agent)
    agent.configure_policy("observe")
    assert settle(agent).disposition == "gone"
    assert (agent.mailbox.marks, agent.rows()[0][3]) == ({"first": "quarantined"}, "released")


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
    agent.before(monkeypatch, agent.warranties, "look_up", lambda: agent.mailbox.taken_care_of.add("first"))
    for _ in range(4):
        assert agent.work().disposition == "gone"
    assert agent.mailbox.sent == agent.mailbox.drafts == agent.tickets.created == []
    assert agent.mailbox.marks == {}
    assert agent.rows() == [("claimed", None, 0, "mail_not_waiting")]
