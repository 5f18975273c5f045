"""One mail through the production pipeline with mocks in place of whatever it could change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.email.conversation import answered_message_ids
from guarantee_email_agent.email.hand_over import scenario_code
from guarantee_email_agent.email.parsing.email import Email
from guarantee_email_agent.email.processor_models import AnswerPolicy, ProcessingResult
from guarantee_email_agent.eval.look_up_source import look_up_place
from guarantee_email_agent.eval.mocks import ARRIVED_AT, MockedServices, MockReplyHistory, Mocks
from guarantee_email_agent.eval.models import EvalEmail, EvalExpectedOutput, EvalInput, EvalTestCase, PreviousReply
from guarantee_email_agent.eval.runner import EvalRunner
from guarantee_email_agent.eval.tool_mocks import NO_LOOK_UPS, ToolCall, ToolMocks
from guarantee_email_agent.eval.trace import RunTrace
from guarantee_email_agent.files.problems import suggestion
from guarantee_email_agent.instructions.instruction import ScenarioInstruction
from guarantee_email_agent.llm.port import LanguageModel
from guarantee_email_agent.services.ports import TICKET_ID, LookUpService, Thread
from guarantee_email_agent.utils.clock import Clock, SkippingClock
from guarantee_email_agent.utils.errors import ConfigurationError
from guarantee_email_agent.utils.text import printable, truncate

MockAnswers = Mapping[str, Mapping[str, object]]
"""What the services answer, as `mock_responses` of a scenario has it."""
UNKNOWN_SCENARIO: Final = "proved"
"""What `previous_reply` says where nobody knows which scenario it was of; the ledger calls it so, too."""

MADE_UP_ID: Final = "<our-reply@example.com>"
"""Of the reply that a mail answers without naming one."""


@dataclass(frozen=True, slots=True)
class DryRun:
    """What the agent would have done. reply, ticket: what the mocks captured; None where nothing was.

    previous: what we wrote to the sender before.
    """

    email: Email
    report: ProcessingResult
    reply: Mapping[str, Any] | None
    ticket: Mapping[str, Any] | None
    trace: RunTrace
    previous: PreviousReply | None = None

    @property
    def look_ups(self) -> list[ToolCall]:
        """The questions to the warranty system and to configured look-ups."""
        return [call for call in self.trace.tools.calls if call.server not in NO_LOOK_UPS]

    @property
    def outcome(self) -> str:
        """answered, not_answered, handed_over or failed."""
        if not self.report.success:
            return "failed"
        if self.report.hand_over_reasons:
            return "handed_over"
        return "answered" if self.reply is not None else "not_answered"


async def dry_run(
    email: Email,
    config: Config,
    answers: MockAnswers,
    *,
    policy: AnswerPolicy,
    previous: PreviousReply | None = None,
    look_ups: Mapping[str, LookUpService] | None = None,
    model: LanguageModel | None = None,
    clock: Clock | None = None,
) -> DryRun:
    """Process one mail; nothing is sent, stored or marked, and no ticket is opened.

    answers: of the mocked services. previous: what we wrote to the sender before. look_ups, model: real ones in
    place of the mocks; then clock has to be a real one.
    """
    runner, tools = EvalRunner(config), ToolMocks(answers)
    trace = RunTrace(tools)
    mocks = Mocks.of(_case(answers), tools)
    services = MockedServices.in_process(mocks, runner.lexicon)
    noted = {
        name: _NotedService(tools, look_up_place(name, config), look_up) for name, look_up in (look_ups or {}).items()
    }
    services = replace(
        services,
        llm=trace.follow(services.llm if model is None else model),
        look_ups={**services.look_ups, **runner.look_up_mocks(tools), **noted},
    )
    history = None if previous is None else MockReplyHistory(previous)
    processor = runner.create_processor(services, clock or SkippingClock(), policy, history)
    report = await processor.process_email(email, None if previous is None else ARRIVED_AT)
    sent, tickets = mocks.mail.sent_emails, mocks.ticketing.created_tickets
    return DryRun(email, report, sent[0] if sent else None, tickets[0] if tickets else None, trace, previous)


class _NotedService:
    """A real service, whose calls are noted as those of its mock are. place: server, tool and argument."""

    def __init__(self, tools: ToolMocks, place: tuple[str, str, str], service: LookUpService) -> None:
        self._tools, self._place, self._service = tools, place, service

    async def look_up(self, number: str) -> Mapping[str, Any]:
        server, tool, argument = self._place
        with self._tools.noting(server, tool, {argument: number}) as call:
            return call.answered(await self._service.look_up(number))


def _case(answers: MockAnswers) -> EvalTestCase:
    """Carries the answers to the mocks; they read nothing else of it."""
    nothing = EvalEmail(subject="", body="", from_address="", received="")
    return EvalTestCase(
        scenario_id="mail",
        description="mail",
        category="mail",
        created="",
        input=EvalInput(nothing, answers),
        expected_output=EvalExpectedOutput(False, False, "none"),
    )


def with_previous_reply(
    text: str | None, email: Email, scenarios: Iterable[ScenarioInstruction]
) -> tuple[PreviousReply | None, Email]:
    """The reply that `SCENARIO` or `SCENARIO:TICKET` tells of, and the mail as one that answers it.

    A mail that names none in In-Reply-To or References gets such a header. Raises ConfigurationError(
    code="cli_bad_usage") for a scenario that sends no reply, and for what is no ticket number.
    """
    if text is None:
        return None, email
    scenario, colon, ticket = text.partition(":")
    names = [each.name for each in scenarios if each.languages]
    if scenario not in names:
        shown = printable(truncate(scenario, 60))
        listed = suggestion(scenario, names) or f"; those that do are {', '.join(names)}"
        raise ConfigurationError(f"--previous-reply: no scenario {shown!r} sends a reply{listed}", "cli_bad_usage")
    if colon and not TICKET_ID.fullmatch(ticket):
        shown = printable(truncate(ticket, 60))
        raise ConfigurationError(
            f"--previous-reply: {shown!r} is no ticket number. Write it as {scenario}:WEB-00017, or leave it out",
            "cli_bad_usage",
        )
    answered = answered_message_ids(email)
    if not answered:
        email = replace(email, headers={**email.headers, "in-reply-to": (MADE_UP_ID,)})
    message_id = answered[-1] if answered else MADE_UP_ID
    return PreviousReply(message_id=message_id, scenario=scenario, ticket_id=ticket or None), email


def reply_of_thread(thread: Thread | None, scenarios: Iterable[ScenarioInstruction]) -> PreviousReply | None:
    """The reply that the ledger knows. Of an instruction that is gone, the agent knows no more than that it wrote."""
    if thread is None:
        return None
    code = scenario_code(thread.scenario)
    name = next((each.name for each in scenarios if scenario_code(each.name) == code), UNKNOWN_SCENARIO)
    return PreviousReply(thread.reply_message_id, name, thread.ticket_id, follow_ups=thread.follow_ups)
