"""Scenarios with a mode of their own: a draft is judged like a reply, and an observer writes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from guarantee_email_agent.config.settings import Config, Mode
from guarantee_email_agent.email.processor import EmailProcessor
from guarantee_email_agent.email.processor_models import AnswerPolicy, ProcessingResult
from guarantee_email_agent.eval import runner as runner_module
from guarantee_email_agent.eval.models import (
    EvalEmail,
    EvalExpectedOutput,
    EvalInput,
    EvalResult,
    EvalTestCase,
    ScenarioSettings,
)
from guarantee_email_agent.eval.runner import EvalRunner

EMAIL = EvalEmail("Dryer", "My dryer with serial number SN12345 is broken.", "jane@example.com", "2026-01-18T10:00:00Z")
VALID = {"status": "valid", "expiration_date": "2031-02-03", "coverage": "full"}
NOTHING = EvalExpectedOutput(False, False, "valid-warranty", draft_stored=False)
DRAFTED = replace(NOTHING, draft_stored=True, response_body_contains=("2031-02-03",), reply_language="en")


@pytest.fixture
def run(config: Config, scenario: Callable[..., EvalTestCase]) -> Callable[..., EvalResult]:
    def run_scenario(mode: Mode, expected: EvalExpectedOutput) -> EvalResult:
        met = EvalInput(EMAIL, {"warranty_api": VALID}, agent=ScenarioSettings(mode=mode))
        case = scenario(input=met, expected_output=expected)
        return asyncio.run(EvalRunner(config).run_test_case(case))

    return run_scenario


Run = Callable[[Mode, EvalExpectedOutput], EvalResult]


def test_a_draft_is_judged_like_a_reply(run: Run) -> None:
    assert run("drafts", DRAFTED).failures == []
    (failure,) = run("drafts", replace(DRAFTED, response_body_contains=("2031-02-04",))).failures
    assert failure.startswith("response_body_contains: missing phrase '2031-02-04'")


def test_an_observer_has_read_the_mail_and_written_nothing(run: Run) -> None:
    result = run("observe", NOTHING)
    assert result.failures == []
    assert [call["tool"] for call in result.actual_output["calls"]] == ["check_warranty"]


@pytest.mark.parametrize(
    ("mode", "expected", "failure"),
    [
        ("observe", DRAFTED, "draft_stored: no draft was stored"),
        ("drafts", NOTHING, "draft_stored: a draft was stored"),
        ("answer", DRAFTED, "email_sent: a mail was sent"),
    ],
)
def test_what_another_mode_would_do_fails(run: Run, mode: Mode, expected: EvalExpectedOutput, failure: str) -> None:
    assert any(found.startswith(failure) for found in run(mode, expected).failures)


class InAnotherMode(EmailProcessor):
    """An agent that drafts where it was to observe, and sends where it was to draft."""

    def __init__(self, **parts: Any) -> None:
        policy: AnswerPolicy = parts.pop("policy")
        super().__init__(**parts, policy=replace(policy, mode="drafts" if policy.mode == "observe" else "answer"))


class TwiceDrafting(EmailProcessor):
    async def process_email(self, *arguments: Any) -> ProcessingResult:
        await super().process_email(*arguments)
        return await super().process_email(*arguments)


class DraftingForSomebodyElse(EmailProcessor):
    def _incoming_mail(self, *arguments: Any) -> Any:
        return replace(super()._incoming_mail(*arguments), recipient="kim@example.org")


class KeepingQuiet(EmailProcessor):
    """An agent that does not tell of its draft."""

    async def process_email(self, *arguments: Any) -> ProcessingResult:
        return replace(await super().process_email(*arguments), drafted=False)


@pytest.mark.parametrize(
    ("agent", "mode", "expected", "failure"),
    [
        (InAnotherMode, "observe", NOTHING, "mode: mail.save_draft was called in mode observe"),
        (InAnotherMode, "drafts", DRAFTED, "mode: ticketing.create_ticket was called in mode drafts"),
        (InAnotherMode, "drafts", DRAFTED, "mode: mail.send_reply was called in mode drafts"),
        (TwiceDrafting, "drafts", DRAFTED, "draft_stored: 2 drafts were stored"),
        (DraftingForSomebodyElse, "drafts", DRAFTED, "draft_stored: a draft is for somebody else"),
        (KeepingQuiet, "drafts", DRAFTED, "agent_report: the agent reports another draft_stored"),
    ],
)
def test_an_agent_that_does_more_than_its_mode_allows_fails(
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    agent: type[EmailProcessor],
    mode: Mode,
    expected: EvalExpectedOutput,
    failure: str,
) -> None:
    monkeypatch.setattr(runner_module, "EmailProcessor", agent)
    assert any(found.startswith(failure) for found in run(mode, expected).failures)
