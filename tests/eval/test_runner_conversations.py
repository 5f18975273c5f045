"""Scenarios of conversations, hand-over and proved senders: what is expected there can fail, too."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from scripted_model import ScriptedModel

from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.eval.mocks import MockTicketingClient
from guarantee_email_agent.eval.models import (
    EvalEmail,
    EvalExpectedOutput,
    EvalInput,
    EvalTestCase,
    PreviousReply,
    ScenarioSettings,
)
from guarantee_email_agent.eval.runner import EvalRunner

REPLY = PreviousReply("<reply-1@example.com>", "valid-warranty", "TICKET-000123")
THANKS = EvalEmail(
    "Re: My dryer",
    "Thank you so much. I found the receipt in a drawer today.",
    "jane@example.com",
    "2026-01-18T10:00:00Z",
    headers={"In-Reply-To": REPLY.message_id},
)
ASKED = replace(THANKS, subject="Dryer", body="My dryer with serial number SN12345 is broken.", headers={})
NOTED = EvalExpectedOutput(False, False, "hand-over", note_added=True, hand_over_reason="follow-up")
VALID = {"status": "valid", "expiration_date": "2031-02-03", "coverage": "full"}


@pytest.fixture
def follow_up(scenario: Callable[..., EvalTestCase]) -> EvalTestCase:
    """A scenario that passes: thanks for our reply, left to a person with a note on the ticket."""
    return scenario(input=EvalInput(THANKS, {"warranty_api": VALID}, REPLY), expected_output=NOTED)


def failures(config: Config, case: EvalTestCase) -> list[str]:
    result = asyncio.run(EvalRunner(config).run_test_case(case))
    return [failure.partition("\n")[0] for failure in result.failures]


def test_a_follow_up_is_noted_on_its_ticket(config: Config, follow_up: EvalTestCase) -> None:
    assert failures(config, follow_up) == []


@pytest.mark.parametrize(
    ("expected", "failure"),
    [
        ({"note_added": False}, "note_added: a note was added"),
        ({"hand_over_reason": "fire"}, "hand_over_reason: handed over for another reason"),
        ({"email_sent": True}, "email_sent: no mail was sent"),
    ],
)
def test_a_wrong_expectation_of_a_follow_up_fails(
    config: Config, follow_up: EvalTestCase, expected: dict[str, Any], failure: str
) -> None:
    assert failures(config, replace(follow_up, expected_output=replace(NOTED, **expected))) == [failure]


def test_without_a_ticket_there_is_nothing_to_note(config: Config, follow_up: EvalTestCase) -> None:
    without_ticket = replace(follow_up.input, previous_reply=replace(REPLY, ticket_id=None))
    assert failures(config, replace(follow_up, input=without_ticket)) == ["note_added: no note was added"]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        (
            "valid-waranty",
            ["previous_reply: no instruction is called 'valid-waranty' – did you mean 'valid-warranty'?"],
        ),
        ("proved", []),
    ],
)
def test_the_previous_reply_stems_from_an_instruction_that_there_is(
    config: Config, follow_up: EvalTestCase, name: str, found: list[str]
) -> None:
    other = replace(follow_up.input, previous_reply=replace(REPLY, scenario=name))
    assert failures(config, replace(follow_up, input=other)) == found


def test_a_note_on_another_ticket_fails(
    config: Config, follow_up: EvalTestCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def add_notes(self: MockTicketingClient, ticket_id: str, note: str, idempotency_key: str) -> bool:
        self.notes |= {idempotency_key: (ticket_id, note), "another": ("TICKET-000999", note)}
        return True

    monkeypatch.setattr(MockTicketingClient, "add_note", add_notes)
    assert failures(config, follow_up) == [
        "note_added: 2 notes were added",
        "note_added: a note went to another ticket",
    ]


def test_a_mail_that_is_answered_was_not_handed_over(config: Config, scenario: Callable[..., EvalTestCase]) -> None:
    expected = EvalExpectedOutput(True, True, "valid-warranty", hand_over_reason="fire")
    case = scenario(input=EvalInput(ASKED, {"warranty_api": VALID}), expected_output=expected)
    assert failures(config, case) == ["hand_over_reason: it was not handed over"]


def test_modes_and_the_sender_check_of_the_configuration_do_not_count(
    config: Config, scenario: Callable[..., EvalTestCase]
) -> None:
    answered = EvalExpectedOutput(True, True, "valid-warranty")
    case = scenario(input=EvalInput(ASKED, {"warranty_api": VALID}), expected_output=answered)
    agent = replace(config.agent, mode="observe", sender_check="hold", authserv_id="mx.example.com")
    assert failures(replace(config, agent=agent), case) == []
    held = ScenarioSettings(sender_check="hold", authserv_id="mx.example.com")
    expected = EvalExpectedOutput(False, False, "hand-over", hand_over_reason="unverified-sender")
    case = replace(case, input=replace(case.input, agent=held), expected_output=expected)
    assert failures(config, case) == []


@pytest.mark.parametrize(
    ("settings", "headers", "sent_to", "found"),
    [
        (ScenarioSettings(trusted_forms=("JANE@example.com",)), {"Reply-To": "kim@example.org"}, "kim@example.org", []),
        (ScenarioSettings(trusted_forms=()), {"Reply-To": "kim@example.org"}, None, []),
        (
            ScenarioSettings(trusted_forms=("jane@example.com",)),
            {"Reply-To": "kim@example.org"},
            None,
            ["email_sent: a mail went to somebody else"],
        ),
        (None, {}, "kim@example.org", ["email_sent: a mail went to somebody else"]),
    ],
)
def test_the_reply_goes_to_the_sender_unless_the_scenario_names_another(
    config: Config,
    scenario: Callable[..., EvalTestCase],
    settings: ScenarioSettings | None,
    headers: Mapping[str, str],
    sent_to: str | None,
    found: list[str],
) -> None:
    expected = EvalExpectedOutput(True, True, "valid-warranty", sent_to=sent_to)
    case = scenario(
        input=EvalInput(replace(ASKED, headers=headers), {"warranty_api": VALID}, agent=settings),
        expected_output=expected,
    )
    assert failures(config, case) == found


@pytest.mark.parametrize(
    ("triage", "used"),
    [({}, "valid-warranty"), ({"topic": "other"}, "out-of-scope"), ({"serial_numbers": ["SN99999"]}, "missing-info")],
)
def test_what_a_scenario_has_the_model_say_is_what_the_agent_gets(
    config: Config, scenario: Callable[..., EvalTestCase], triage: Mapping[str, object], used: str
) -> None:
    case = scenario(input=EvalInput(ASKED, {"warranty_api": VALID}, triage=triage))
    asked = ScriptedModel() if triage else None  # which would have no answer
    result = asyncio.run(EvalRunner(config).run_test_case(case, asked))
    assert result.actual_output["scenario_used"] == used
