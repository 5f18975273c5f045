import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from scripted_model import ScriptedModel
from shipped_instructions import InstructionFolder

from guarantee_email_agent.config.settings import Config, InstructionSettings, Mode
from guarantee_email_agent.email.processor import EmailProcessor
from guarantee_email_agent.email.processor_models import AnswerPolicy, ProcessingResult
from guarantee_email_agent.eval import runner as runner_module
from guarantee_email_agent.eval.mocks import (
    MockAnthropicClient,
    MockGmailClient,
    Mocks,
    MockTicketingClient,
    MockWarrantyAPIClient,
    build_raw_email,
    create_mock_clients,
)
from guarantee_email_agent.eval.models import (
    EvalEmail,
    EvalExpectedOutput,
    EvalInput,
    EvalResult,
    EvalTestCase,
    ExpectedCall,
    ForbiddenCall,
    PreviousReply,
    ScenarioSettings,
)
from guarantee_email_agent.eval.runner import EvalRunner
from guarantee_email_agent.utils.clock import SkippingClock

Scenario = Callable[..., EvalTestCase]
VALID = {"status": "valid", "expiration_date": "2031-02-03", "coverage": "full"}
EMAIL = EvalEmail(
    "My dryer", "My dryer with serial number SN12345 is broken.", "jane@example.com", "2026-01-18T10:00:00Z"
)
ANSWERED = EvalExpectedOutput(
    True,
    True,
    "valid-warranty",
    ("warranty is valid", "2031-02-03"),
    ("expired",),
    ticket_fields={"serial_number": "SN12345", "priority": "normal"},
)
NOT_ANSWERED = EvalExpectedOutput(False, False, "valid-warranty")


@pytest.fixture
def own_instructions(config: Config, folder: InstructionFolder) -> Config:
    """With the copy of the instructions in `folder`."""
    return replace(config, instructions=InstructionSettings(folder.main, folder.scenarios))


@pytest.fixture
def timing_out(good: EvalTestCase) -> EvalTestCase:
    """The same with a warranty system that never answers."""
    return replace(good, input=EvalInput(EMAIL, {"warranty_api": {"error": "timeout"}}))


@pytest.fixture
def good(scenario: Scenario) -> EvalTestCase:
    """A scenario that passes."""
    return scenario(input=EvalInput(EMAIL, {"warranty_api": VALID}), expected_output=ANSWERED)


def run(config: Config, case: EvalTestCase) -> EvalResult:
    return asyncio.run(EvalRunner(config).run_test_case(case))


def test_actual_output_is_what_the_mocks_captured(config: Config, good: EvalTestCase) -> None:
    actual = run(config, good).actual_output

    assert actual["email_sent"] is True
    assert actual["recipients"] == ["jane@example.com"]
    assert "MOCK-TICKET-001" in actual["response_body"]
    assert actual["ticket_created"] is True
    assert actual["ticket_fields"] == {
        "priority": "normal",
        "category": "warranty_claim",
        "serial_number": "SN12345",
        "warranty_status": "valid",
        "customer_email": "jane@example.com",
        "ticket_id": "MOCK-TICKET-001",
    }
    assert actual["scenario_used"] == "valid-warranty"


def test_a_call_that_failed_is_captured_as_often_as_it_was_tried(config: Config, timing_out: EvalTestCase) -> None:
    expected = EvalExpectedOutput(
        False,
        False,
        "valid-warranty",
        calls=(ExpectedCall("warranty", "check_warranty", {"serial_number": "SN12345"}, times=3),),
        never_called=(ForbiddenCall("mail"),),
    )
    result = asyncio.run(EvalRunner(config).run_test_case(replace(timing_out, expected_output=expected)))
    assert not any("called" in failure for failure in result.failures)
    assert len(result.actual_output["calls"]) == 3


def test_what_one_scenario_skips_does_not_count_for_one_that_runs_beside_it(
    config: Config, good: EvalTestCase, timing_out: EvalTestCase
) -> None:
    class WaitingModel(MockAnthropicClient):
        """Answers once the other scenario is done."""

        def __init__(self) -> None:
            super().__init__()
            self.may_answer = asyncio.Event()

        async def create(self, **request: Any) -> Any:
            await self.may_answer.wait()
            return await super().create(**request)

    runner = EvalRunner(config)

    async def both() -> tuple[EvalResult, EvalResult]:
        model = WaitingModel()
        other = asyncio.create_task(runner.run_test_case(good, model))
        await asyncio.sleep(0)
        first = await runner.run_test_case(timing_out)
        model.may_answer.set()
        return first, await other

    first, other = asyncio.run(both())
    assert first.processing_time_ms >= 3_000 > other.processing_time_ms


@pytest.mark.parametrize(
    ("changed", "failure"),
    [
        (
            {"recipients": ["thief@example.net"]},
            "email_sent: a mail went to somebody else\n  expected: 'jane@example.com'\n  actual:   'thief@example.net'",
        ),
        ({"recipients": ["jane@example.com"] * 2}, "email_sent: 2 mails were sent\n  expected: 1\n  actual:   2"),
        ({"tickets": 2}, "ticket_created: 2 tickets were created\n  expected: 1\n  actual:   2"),
    ],
)
def test_one_mail_to_the_sender_and_one_ticket_are_meant(
    config: Config, good: EvalTestCase, changed: dict[str, Any], failure: str
) -> None:
    actual = {**run(config, good).actual_output, **changed}
    assert EvalRunner(config).validate_output(ANSWERED, actual, sender="jane@example.com") == (False, [failure])


def test_what_mocks_captured_is_validated_and_not_what_the_agent_says(config: Config, good: EvalTestCase) -> None:
    runner, mocks = EvalRunner(config), create_mock_clients(good)
    processor = runner.create_processor(Mocks.of_clients(mocks), mocks["anthropic"], SkippingClock(), AnswerPolicy())
    report = asyncio.run(processor.process_email(build_raw_email(good)))
    assert runner.validate_output(ANSWERED, report, mocks, 5) == (True, [])
    assert runner.validate_output(ANSWERED, {"scenario_used": "valid-warranty"}, mocks, 5) == (True, [])
    assert runner.validate_output(ANSWERED, report, mocks, 60_001)[1][0].startswith("processing_time_ms: took too long")

    forbidden = replace(ANSWERED, never_called=(ForbiddenCall("warranty"),))
    assert runner.validate_output(forbidden, report, mocks)[1][0].startswith("never_called: warranty.check_warranty")
    mocks["gmail"].sent_emails[0]["to"] = "thief@example.net"
    assert runner.validate_output(ANSWERED, report, mocks)[1][0].startswith("email_sent: a mail went to somebody else")
    mocks["gmail"].sent_emails.clear()
    failures = runner.validate_output(replace(NOT_ANSWERED, ticket_created=True), report, mocks)[1]
    assert [failure.partition("\n")[0] for failure in failures] == [ANOTHER_EMAIL_SENT]


def test_calls_that_each_mock_noted_for_itself_count_too(config: Config, good: EvalTestCase) -> None:
    mocks = {
        "gmail": MockGmailClient(good),
        "ticketing": MockTicketingClient(),
        "warranty": MockWarrantyAPIClient(good),
    }
    asyncio.run(mocks["warranty"].check_warranty("SN1"))
    expected = EvalExpectedOutput(never_called=(ForbiddenCall("warranty"),))
    assert not EvalRunner(config).validate_output(expected, {}, mocks)[0]


@pytest.mark.parametrize(
    ("captured", "reason"),
    [
        (5, "captured_output raised TypeError: 'int' object is not iterable"),
        (
            {"day": date(2026, 1, 18)},
            "JSONEncoder.default raised TypeError: Object of type date is not JSON serializable",
        ),
    ],
)
def test_a_crash_of_what_is_observed_fails_its_scenario_alone(
    config: Config, good: EvalTestCase, monkeypatch: pytest.MonkeyPatch, captured: Any, reason: str
) -> None:
    class BrokenTickets(MockTicketingClient):
        async def create_ticket(self, ticket_data: Any) -> dict[str, Any]:
            self.created_tickets.append(captured)
            return {"ticket_id": "T-1"}

    mailless = replace(good, input=EvalInput(EMAIL, {"warranty_api": {"status": "expired"}}))
    odd = replace(good, input=EvalInput(EMAIL, {"warranty_api": 5}))
    with monkeypatch.context() as patch:
        patch.setattr("guarantee_email_agent.eval.mocks.MockTicketingClient", BrokenTickets)
        results = asyncio.run(EvalRunner(config).run_suite([good, mailless, odd]))
    assert results[0].failures == [f"crash: {reason}"]
    assert results[1].failures[0].startswith("response_body_contains")
    assert results[2].failures == ["crash: _MockService.__init__ raised TypeError: 'int' object is not iterable"]
    assert results[0].case.runs[0].harm is None  # nobody knows what it did


def test_a_check_that_raises_fails_its_scenario_with_the_misses_of_the_others(
    config: Config, good: EvalTestCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check_single(*_: object) -> Iterator[object]:
        yield from ()
        raise ValueError("no\nnumber")

    monkeypatch.setattr(runner_module, "check_single", check_single)
    (result,) = asyncio.run(EvalRunner(config).run_suite([replace(good, expected_output=NOT_ANSWERED)]))
    assert [failure.partition("\n")[0] for failure in result.failures] == [
        "email_sent: a mail was sent",
        "ticket_created: a ticket was created",
        "crash: check_single raised ValueError: no number",
    ]
    assert "crash: check_single" in result.format_for_display()


class TwiceSending(EmailProcessor):
    """An agent that answers everything twice."""

    async def process_email(self, raw_email: Any) -> ProcessingResult:
        await super().process_email(raw_email)
        return await super().process_email(raw_email)


class Boasting(EmailProcessor):
    """An agent that does nothing and says it did all."""

    async def process_email(self, raw_email: Any) -> ProcessingResult:
        return ProcessingResult(
            True, "m1", "valid-warranty", email_sent=True, response_body="Your warranty is valid", ticket_created=True
        )


class Misquoting(EmailProcessor):
    """An agent that reports another reply than it sent."""

    async def process_email(self, raw_email: Any) -> ProcessingResult:
        return replace(await super().process_email(raw_email), response_body="Something else")


class Crashing(EmailProcessor):
    """An agent with a bug."""

    async def _process(self, *_: Any) -> None:
        raise ZeroDivisionError


ANOTHER_EMAIL_SENT = "agent_report: the agent reports another email_sent"
ANOTHER_TICKET = "agent_report: the agent reports another ticket_created"


@pytest.mark.parametrize(
    ("agent", "expected", "failures"),
    [
        (TwiceSending, ANSWERED, ["email_sent: 2 mails were sent"]),
        (Misquoting, ANSWERED, ["agent_report: the agent reports another reply than the one that was sent or stored"]),
        (Boasting, NOT_ANSWERED, [ANOTHER_EMAIL_SENT, ANOTHER_TICKET]),
        (
            Boasting,
            replace(NOT_ANSWERED, email_sent=True),
            ["email_sent: no mail was sent", ANOTHER_EMAIL_SENT, ANOTHER_TICKET],
        ),
        (
            Crashing,
            EvalExpectedOutput(False, False, "none"),
            ["crash: stopped in step parse: Unexpected ZeroDivisionError in step parse"],
        ),
    ],
)
def test_an_agent_is_judged_by_what_happened_even_where_nothing_was_to_happen(
    config: Config,
    good: EvalTestCase,
    monkeypatch: pytest.MonkeyPatch,
    agent: type[EmailProcessor],
    expected: EvalExpectedOutput,
    failures: list[str],
) -> None:
    monkeypatch.setattr(runner_module, "EmailProcessor", agent)
    result = run(config, replace(good, expected_output=expected))
    assert [failure.partition("\n")[0] for failure in result.failures] == failures


def test_an_instruction_that_breaks_during_the_run_fails_the_scenario(
    own_instructions: Config, good: EvalTestCase, folder: InstructionFolder
) -> None:
    runner = EvalRunner(own_instructions)
    runner.check_instructions()
    folder.main.unlink()
    result = asyncio.run(runner.run_test_case(good))
    assert any("stopped in step instructions" in failure for failure in result.failures)


def test_our_own_addresses_come_from_the_configuration(config: Config, good: EvalTestCase) -> None:
    own = replace(config, agent=replace(config.agent, own_addresses=("jane@example.com",)))
    result = run(own, replace(good, expected_output=EvalExpectedOutput(False, False, "no-reply")))
    assert result.passed


def test_a_format_of_serial_numbers_counts_for_its_scenario_alone(config: Config, good: EvalTestCase) -> None:
    agent = ScenarioSettings(serial_format="KT-[0-9]{5}-[0-9]")
    asked = EvalExpectedOutput(True, False, "missing-info")
    assert run(config, replace(good, input=replace(good.input, agent=agent), expected_output=asked)).passed
    assert run(config, good).passed


def test_a_repeated_scenario_fails_with_the_number_of_the_run(
    config: Config, good: EvalTestCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[int] = []

    class FailingTheSecondTime(EmailProcessor):
        async def _process(self, *arguments: Any) -> None:
            runs.append(1)
            if len(runs) == 2:
                raise ZeroDivisionError
            await super()._process(*arguments)

    monkeypatch.setattr(runner_module, "EmailProcessor", FailingTheSecondTime)

    result = asyncio.run(EvalRunner(config).run_entry(good, repeat=3))

    assert len(runs) == 3  # how many fail tells a flaky scenario from a broken one
    assert result.failures
    assert all(failure.startswith("run 2 of 3: ") for failure in result.failures)


RunJudged = Callable[..., EvalResult]


@pytest.fixture
def run_judged(good: EvalTestCase, tmp_path: Path, config: Config) -> RunJudged:
    """Runs the good scenario with a judge beside it, whose whole file or `test` function is given."""

    def run_with(body: str = "", source: str | None = None, **changes: Any) -> EvalResult:
        text = f"def test(result):\n    {body}\n" if source is None else source
        (tmp_path / "judge.py").write_text(text, encoding="utf-8")
        return run(config, replace(good, test="judge.py", file=str(tmp_path / "valid_warranty_001.yaml"), **changes))

    return run_with


@pytest.mark.parametrize(
    "body",
    [
        "return {'passed': True, 'feedback': 'fine'}",
        "return {'passed': 'expected' not in str(result), 'feedback': ''}",
        "result.clear()\n    return {'passed': True, 'feedback': ''}",
    ],
    ids=["that-passes", "never-sees-what-is-expected", "changes-nothing"],
)
def test_a_judge_that_passes(run_judged: RunJudged, body: str) -> None:
    result = run_judged(body)
    assert result.passed
    assert result.actual_output["email_sent"] is True


@pytest.mark.parametrize(
    "source",
    ["def test(result):\n    import os; os._exit(0)\n", "def test(result):\n    return True\n", "def test(result:\n"],
)
def test_a_judge_without_a_verdict_fails_the_scenario(source: str, run_judged: RunJudged) -> None:
    result = run_judged(source=source)
    assert not result.passed
    assert result.failures[0].startswith("test: judge.py ")


def test_a_judge_adds_to_the_other_checks(run_judged: RunJudged) -> None:
    expected = replace(ANSWERED, response_body_contains=("no such phrase",))
    failures = run_judged("return {'passed': False, 'feedback': 'no'}", expected_output=expected).failures
    assert [failure.partition(":")[0] for failure in failures] == ["response_body_contains", "test"]


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


@pytest.fixture
def follow_up(scenario: Callable[..., EvalTestCase]) -> EvalTestCase:
    """A scenario that passes: thanks for our reply, left to a person with a note on the ticket."""
    return scenario(input=EvalInput(THANKS, {"warranty_api": VALID}, REPLY), expected_output=NOTED)


def failures(config: Config, case: EvalTestCase) -> list[str]:
    result = asyncio.run(EvalRunner(config).run_test_case(case))
    return [failure.partition("\n")[0] for failure in result.failures]


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


ASK = EvalEmail("Dryer", "My dryer with serial number SN12345 is broken.", "jane@example.com", "2026-01-18T10:00:00Z")
NOTHING = EvalExpectedOutput(False, False, "valid-warranty", draft_stored=False)
DRAFTED = replace(NOTHING, draft_stored=True, response_body_contains=("2031-02-03",), reply_language="en")


@pytest.fixture
def run_as(config: Config, scenario: Callable[..., EvalTestCase]) -> Callable[..., EvalResult]:
    def run_scenario(mode: Mode, expected: EvalExpectedOutput) -> EvalResult:
        met = EvalInput(ASK, {"warranty_api": VALID}, agent=ScenarioSettings(mode=mode))
        case = scenario(input=met, expected_output=expected)
        return asyncio.run(EvalRunner(config).run_test_case(case))

    return run_scenario


Run = Callable[[Mode, EvalExpectedOutput], EvalResult]


def test_a_draft_is_judged_like_a_reply(run_as: Run) -> None:
    assert run_as("drafts", DRAFTED).failures == []
    (failure,) = run_as("drafts", replace(DRAFTED, response_body_contains=("2031-02-04",))).failures
    assert failure.startswith("response_body_contains: missing phrase '2031-02-04'")


def test_an_observer_has_read_the_mail_and_written_nothing(run_as: Run) -> None:
    result = run_as("observe", NOTHING)
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
def test_what_another_mode_would_do_fails(run_as: Run, mode: Mode, expected: EvalExpectedOutput, failure: str) -> None:
    assert any(found.startswith(failure) for found in run_as(mode, expected).failures)


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
    run_as: Run,
    monkeypatch: pytest.MonkeyPatch,
    agent: type[EmailProcessor],
    mode: Mode,
    expected: EvalExpectedOutput,
    failure: str,
) -> None:
    monkeypatch.setattr(runner_module, "EmailProcessor", agent)
    assert any(found.startswith(failure) for found in run_as(mode, expected).failures)
