"""One mail through the production pipeline with mocks in place of whatever it could change, and what the agent would do
with it, as steps for people and as one JSON object.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.email.conversation import answered_message_ids
from guarantee_email_agent.email.hand_over import scenario_code
from guarantee_email_agent.email.parsing.email import Email
from guarantee_email_agent.email.processor import doubt_of_mail, number_tiers
from guarantee_email_agent.email.processor_models import AnswerPolicy, ProcessingResult, Triage
from guarantee_email_agent.email.reply import LanguageReason, choose_language
from guarantee_email_agent.eval.look_up_source import LookUpSource, look_up_place
from guarantee_email_agent.eval.mocks import ARRIVED_AT, MockReplyHistory, Mocks
from guarantee_email_agent.eval.models import EvalEmail, EvalExpectedOutput, EvalInput, EvalTestCase, PreviousReply
from guarantee_email_agent.eval.runner import EvalRunner
from guarantee_email_agent.eval.tool_mocks import NO_LOOK_UPS, ToolCall, ToolMocks
from guarantee_email_agent.eval.trace import RunTrace
from guarantee_email_agent.files.problems import suggestion
from guarantee_email_agent.instructions.hand_over_lexicon import UNEXPLAINED
from guarantee_email_agent.instructions.instruction import Instructions, ScenarioInstruction
from guarantee_email_agent.instructions.look_up import WITHHELD_STATUS, LookUp
from guarantee_email_agent.llm.port import LanguageModel
from guarantee_email_agent.llm.prompts import CHOICE_TOOL, MAX_NUMBERS, TRIAGE_TOOL, element_in, numbers_key
from guarantee_email_agent.reading.number_reader import NumberReading
from guarantee_email_agent.reading.numbers import read_numbers
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
    runner, mocks = EvalRunner(config), Mocks.of(_case(answers))
    trace, tools = RunTrace(mocks.tools), mocks.tools
    noted = {
        name: _NotedService(tools, look_up_place(name, config), look_up) for name, look_up in (look_ups or {}).items()
    }
    history = None if previous is None else MockReplyHistory(previous)
    followed = trace.follow(mocks.model(runner.lexicon) if model is None else model)
    processor = runner.create_processor(mocks, followed, clock or SkippingClock(), policy, history, noted)
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


SCHEMA_VERSION: Final = 1
_MAX_DROPPED: Final = 10


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the way of a mail. good: whether the agent went on, or came to an outcome. lines: details."""

    name: str
    text: str
    lines: tuple[str, ...] = ()
    good: bool = True


def json_report(run: DryRun, steps: list[Step]) -> dict[str, Any]:
    """Everything about the run, for a machine."""
    report, reply = run.report, run.reply
    return {
        "schema_version": SCHEMA_VERSION,
        "outcome": run.outcome,
        "scenario_used": report.scenario_used,
        "skip_reason": report.skip_reason,
        "hand_over_reasons": list(report.hand_over_reasons),
        "failed_step": report.failed_step,
        "error": report.error_message,
        "reply_sentences": list(report.reply_sentences),
        "reply": None if reply is None else {name: reply[name] for name in ("to", "subject", "body")},
        "ticket": None if run.ticket is None else ticket_fields(run.ticket),
        "steps": [{"step": step.name, "text": step.text, "lines": list(step.lines)} for step in steps],
        "conversation": run.trace.conversation,
        "calls": run.trace.execution_trace,
    }


def describe_steps(run: DryRun, instructions: Instructions, source: LookUpSource) -> Iterator[Step]:
    """In their order. source: where the answers of the look-ups come from."""
    report = run.report
    yield Step("mail", run.email.subject or "(no subject)", tuple(_mail_lines(run.email)))
    if run.previous is not None:
        ticket = f", ticket {run.previous.ticket_id}" if run.previous.ticket_id else ""
        note = ("note: the mail names no earlier one, so a header In-Reply-To was added",)
        added = run.previous.message_id == MADE_UP_ID
        yield Step("answers our reply", f"{run.previous.scenario}{ticket} (as given)", note if added else ())
    if report.skip_reason is not None:
        yield Step("may reply", f"no: {report.skip_reason}")
    elif report.failed_step not in ("parse", "instructions"):
        yield Step("may reply", "yes")
        yield from _steps_of_model(run, instructions, source)
    if report.scenario_used is not None:
        yield Step("scenario", report.scenario_used, tuple(_trigger_lines(instructions, report.scenario_used)))
    yield from _sentences(run)
    if run.ticket is not None:
        lines = tuple(f"{name}: {value}" for name, value in ticket_fields(run.ticket).items())
        yield Step("ticket", "would be opened", lines)
    if run.reply is not None:
        lines = (f"Subject: {run.reply['subject']}", "", *str(run.reply["body"]).splitlines())
        yield Step("reply", f"to {run.reply['to']}", lines)
        if report.reply_sentences:
            yield Step("sentence ids", f"reply_sentences: [{', '.join(report.reply_sentences)}]")
    if report.failed_step is not None:
        yield Step("stopped", f"in step {report.failed_step}: {report.error_message}", good=False)


def _steps_of_model(run: DryRun, instructions: Instructions, source: LookUpSource) -> Iterator[Step]:
    reasons = ", ".join(run.report.hand_over_reasons)
    triages = [call for call in _tool_calls(run) if call[0] == TRIAGE_TOOL]
    if reasons and not triages:
        yield Step("for a person", f"yes, by the mail's words: {reasons}")
        return
    for _, answer, _ in triages[-1:]:
        yield Step("triage", "the model reads:", tuple(f"{name}: {_as_text(value)}" for name, value in answer.items()))
        if reasons:
            yield Step("for a person", f"yes: {reasons}", tuple(_unexplained_lines(run, instructions, answer)))
        else:
            yield _language_step(run, instructions)
        yield from _number_steps(run, instructions, answer, source)


def _language_step(run: DryRun, instructions: Instructions) -> Step:
    """In which language the reply is, and what decided."""
    choice = choose_language(run.email, instructions, quotes_us=run.previous is not None)
    reasons: dict[LanguageReason, str] = {
        "only": "the only one that replies are in",
        "read": "which its text is in",
        "quoted": "which the text that it quotes is in",
        "unclear": "the default one: the text is too short to tell, or mixed",
    }
    reason = reasons[choice.reason]
    used = run.report.reply_language or choice.language
    if choice.found not in (None, choice.language):
        reason = f"the default one: the mail is in '{choice.found}', {reason}, and no reply is"
    elif used != choice.language:
        reason = f"the default one: {run.report.scenario_used} has no reply in '{choice.language}', {reason}"
    return Step("language", f"{used}, {reason}")


def _unexplained_lines(run: DryRun, instructions: Instructions, answer: Mapping[str, Any]) -> Iterator[str]:
    """The words that nobody understood, where they are why a person answers."""
    if UNEXPLAINED not in run.report.hand_over_reasons:
        return
    language = choose_language(run.email, instructions, quotes_us=run.previous is not None)
    look_up = _look_up_of(run, instructions, answer)
    reading, numbers = _numbers(run, instructions, answer, look_up) if look_up else (NumberReading(), ())
    triage = Triage(str(answer.get("topic")), look_up, numbers, language=language.language, reading=reading)
    doubt = doubt_of_mail(run.email, instructions, triage, asked=run.previous is not None)
    if doubt.words:
        yield f"not understood in sentence {doubt.sentence}: {', '.join(doubt.words[:_MAX_DROPPED])}"
    else:
        yield doubt.describe()


def _look_up_of(run: DryRun, instructions: Instructions, answer: Mapping[str, Any]) -> LookUp | None:
    """Of an answer to our reply, that of the number which it asked for."""
    if run.previous is None:
        return instructions.look_up_for(str(answer.get("topic")))
    return next((each for each in instructions.look_ups if each.number == _asked_for(run, instructions)), None)


def _asked_for(run: DryRun, instructions: Instructions) -> str | None:
    scenario = run.previous.scenario if run.previous else None
    return next((each.asks_for for each in instructions.scenarios if each.name == scenario), None)


def _numbers(
    run: DryRun, instructions: Instructions, answer: Mapping[str, Any], look_up: LookUp
) -> tuple[NumberReading, tuple[str, ...]]:
    """What the mail gives, and what of it counts once a model has picked."""
    asked = _asked_for(run, instructions) is not None
    tiers = number_tiers(run.email, in_conversation=run.previous is not None)
    reading = read_numbers(tiers, look_up.format, instructions.lexicon, asked=asked)
    return reading, reading.picked(answer.get(numbers_key(look_up.number), ())[:MAX_NUMBERS])


def _number_steps(
    run: DryRun, instructions: Instructions, answer: Mapping[str, Any], source: LookUpSource
) -> Iterator[Step]:
    """Which numbers of the mail count, why others do not, and what was asked for the one."""
    look_up = _look_up_of(run, instructions, answer)
    if look_up is None:
        yield Step("look-up", f"none: the topic '{answer.get('topic')}' has no look-up")
        return
    reading, numbers = _numbers(run, instructions, answer, look_up)
    unpicked = [(number, "is none that the model named") for number in reading.numbers if number not in numbers]
    dropped = (*unpicked, *reading.dropped)
    lines = [f"dropped {number}: {why}" for number, why in dropped[:_MAX_DROPPED]]
    if len(dropped) > _MAX_DROPPED:
        lines.append(f"and {len(dropped) - _MAX_DROPPED} more")
    yield Step(look_up.number.replace("_", " "), ", ".join(numbers) or "none", tuple(lines))
    yield from _look_up_steps(run, look_up, source)


def _look_up_steps(run: DryRun, look_up: LookUp, source: LookUpSource) -> Iterator[Step]:
    number = look_up.number.replace("_", " ")
    calls = run.look_ups
    for call in calls:
        lines = [str(call.answer)]
        if run.report.status == WITHHELD_STATUS:
            lines.append(f"withheld: {look_up.owner_key} is not the sender")
        asked, tool = next(iter(call.arguments.values())), call.tool if look_up.is_of_warranties else look_up.name
        yield Step("look-up", f"{tool} {asked} ({source.describe(look_up)})", tuple(lines))
    if not calls and run.report.status == WITHHELD_STATUS:
        yield Step("look-up", f"{look_up.name} is not asked: the sender is not proved (agent.sender_check)")
    elif not calls and not run.report.hand_over_reasons and run.report.failed_step is None:
        yield Step("look-up", f"{look_up.name} is not asked: the mail does not give exactly one {number}")


def _mail_lines(email: Email) -> Iterator[str]:
    yield f"from: {email.sender or '<>'}"
    if email.recipients:
        yield f"to: {', '.join(email.recipients)}"
    if email.received:
        yield f"received: {email.received}"
    for name, text in (("new", email.new_text), ("quoted", email.quoted_text), ("signature", email.signature_text)):
        if count := sum(1 for line in text.splitlines() if line.strip()):
            yield f"{name} text: {count} line{'' if count == 1 else 's'}"
    if email.attachments:
        yield f"attachments, by name only: {', '.join(email.attachments)}"
    for problem in email.problems:
        yield f"note: {problem}"


def _trigger_lines(instructions: Instructions, name: str) -> Iterator[str]:
    """Each condition of a scenario's trigger, with the parts that it gives."""
    for condition in (
        each for scenario in instructions.scenarios if scenario.name == name for each in scenario.trigger
    ):
        given = {part: value for part, value in asdict(condition).items() if value}
        yield f"trigger: {_as_text(given)}"


def _sentences(run: DryRun) -> Iterator[Step]:
    """Which sentences the model chose, of those that it was offered."""
    for name, answer, request in _tool_calls(run):
        if name == CHOICE_TOOL:
            offered = element_in(request, "sentences") or []
            chosen = answer.get("ids", ())
            lines = [
                f"{'+' if each['id'] in chosen else '-'} {each['id']}: {' '.join(str(each.get('text', '')).split())}"
                for each in offered
            ]
            yield Step("sentences", f"{len(chosen)} of {len(offered)} offered were chosen (+)", tuple(lines))


def _tool_calls(run: DryRun) -> Iterator[tuple[str, Mapping[str, Any], str]]:
    """Each tool that the model called, what it gave, and the request before it."""
    request = ""
    for message in run.trace.conversation:
        if message["role"] == "user":
            request = str(message["content"])
        for call in message.get("tool_calls", ()):
            function = call["function"]
            answer = json.loads(function["arguments"])
            if isinstance(answer, dict):
                yield function["name"], answer, request


def ticket_fields(ticket: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a captured ticket that the agent decided."""
    return {name: value for name, value in ticket.items() if name not in ("idempotency_key", "ticket_id")}


def _as_text(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_as_text(each)}" for name, each in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value)) or "none"
    return str(value).lower() if isinstance(value, bool) else str(value)
