"""Run scenarios through the production pipeline, and judge each by what the mocks captured."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.email.conversation import answered_message_ids
from guarantee_email_agent.email.parsing.parse import parse_email
from guarantee_email_agent.email.processor import EmailProcessor
from guarantee_email_agent.email.processor_models import AnswerPolicy, ModelSettings, ProcessingResult
from guarantee_email_agent.eval.case_result import as_usage, judged_case, unusable_case, with_failed
from guarantee_email_agent.eval.checks import (
    check_agent_report,
    check_at_most,
    check_completed,
    check_mode,
    check_notes,
    check_previous_reply,
    check_recipients,
    check_single,
    check_verdict,
    crash_of,
    format_value,
    lacks_model,
    reported_output,
    run_checks,
    unobservable_output,
)
from guarantee_email_agent.eval.mocks import (
    ARRIVED_AT,
    Captured,
    MockLookUpClient,
    MockReplyHistory,
    Mocks,
    arrival_of,
    build_raw_email,
    says_date,
)
from guarantee_email_agent.eval.models import (
    NO_LIMITS,
    EvalEmail,
    EvalExpectedOutput,
    EvalResult,
    EvalTestCase,
    InvalidScenario,
    PreviousReply,
)
from guarantee_email_agent.eval.trace import RunTrace, build_record
from guarantee_email_agent.instructions.instruction import Instructions
from guarantee_email_agent.instructions.instruction_files import InstructionFiles
from guarantee_email_agent.instructions.look_up import WARRANTY
from guarantee_email_agent.llm.usage import MeteredModel
from guarantee_email_agent.reading.language import read_language
from guarantee_email_agent.runlog.records import CaseResult, Check
from guarantee_email_agent.services.look_ups import instruction_files, tool_of
from guarantee_email_agent.services.ports import LookUpService, ReplyHistory
from guarantee_email_agent.utils.addresses import parse_address
from guarantee_email_agent.utils.clock import Clock, SkippingClock, counted_waits
from guarantee_email_agent.utils.errors import ConfigurationError, ProcessingError, TaskError
from guarantee_email_agent.utils.text import normalize_text

if TYPE_CHECKING:
    from guarantee_email_agent.eval.scenario_model import ScenarioModelFactory
    from guarantee_email_agent.judging.verdict import Verdict
    from guarantee_email_agent.llm.port import LanguageModel

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _WithFormat:
    """The instructions of a company whose serial numbers have this format."""

    instructions: InstructionFiles
    pattern: str

    def load(self) -> Instructions:
        loaded = self.instructions.load()
        look_ups = (
            replace(each, format=replace(each.format, patterns=(self.pattern,))) if each.is_of_warranties else each
            for each in loaded.look_ups
        )
        return replace(loaded, look_ups=tuple(look_ups))


OnResult = Callable[[CaseResult], None]
"""Gets each run of a scenario as soon as it is over; from any thread."""

Result = TypeVar("Result")


class EvalRunner:
    """Runs scenarios one by one; every one gets fresh mocks and instruction files read anew."""

    def __init__(
        self,
        config: Config,
        records_dir: Path | None = None,
        on_result: OnResult | None = None,
        keep_traces: bool = False,
        earlier: Mapping[str, Sequence[CaseResult]] | None = None,
    ) -> None:
        """records_dir: an existing folder that gets the record of every run, named after the scenario's file.
        keep_traces: whether results have their trace. earlier: runs that scenarios have already, by their files.
        """
        self._earlier = earlier or {}
        self._on_result = on_result
        self.keep_traces = keep_traces
        self._records_dir = records_dir
        self._instructions = instruction_files(config)
        self.lexicon = self._instructions.lexicon  # by which the mocked model reads a mail: as it was loaded last
        self._look_up_tools = {name: tool_of(settings) for name, settings in config.look_ups.items()}
        # What leaves unattended is judged, unless a scenario has a mode of its own. Nobody vouches for its sender.
        self._policy = replace(AnswerPolicy.of(config), mode="answer", sender_check="off")
        self._model = ModelSettings(config.llm.model, config.llm.max_tokens)

    def check_instructions(self) -> Instructions:
        """The instruction set in use.

        Raises InstructionError, naming file, line and remedy, before a scenario runs on bad instruction files.
        """
        return self._instructions.load()

    async def run_suite(self, test_cases: Iterable[EvalTestCase | InvalidScenario]) -> list[EvalResult]:
        """A result for each entry, in order. An `EvalSuite` gives its invalid files, too: they count as failures."""
        entries = getattr(test_cases, "entries", test_cases)
        return [await self.run_entry(entry) for entry in entries]

    async def run_entry(
        self, entry: EvalTestCase | InvalidScenario, repeat: int = 1, make_model: ScenarioModelFactory | None = None
    ) -> EvalResult:
        """The result of a scenario, or the failure that an invalid file is.

        A scenario that runs `repeat` times passes if every run passes; the first failed run is the result. All are run,
        since how many fail tells a flaky scenario from a broken one. make_model: who answers as its language model; the
        mock if None. It waits by a clock of its own.
        """
        if isinstance(entry, InvalidScenario):
            return EvalResult.of(entry, [self.report_run(1, unusable_case(entry))])
        model = None if make_model is None else make_model(entry)
        runs = self.earlier_runs(entry)
        for number in range(len(runs) + 1, repeat + 1):
            run = await self._run_test_case(entry, None if model is None else model.begin(number))
            if model is not None:
                run = run._replace(usage=as_usage(model.usage()))
                if number == repeat and (problem := model.finish()) is not None:
                    run = with_failed(run, Check("recording", problem))
            runs.append(self.report_run(number, run))
        return EvalResult.of(entry, runs)

    def earlier_runs(self, entry: EvalTestCase) -> list[CaseResult]:
        """Those that need not be run again."""
        return list(self._earlier.get(entry.file or "", ()))

    def report_run(self, number: int, run: CaseResult) -> CaseResult:
        """The run of that number, once whoever wants each has it."""
        run = run if run.repetition == number else run._replace(repetition=number)
        if self._on_result is not None:
            self._on_result(run)
        return run

    async def run_test_case(self, test_case: EvalTestCase, llm: LanguageModel | None = None) -> EvalResult:
        """One scenario from its mail to its verdict; a crash anywhere is a failed scenario with its reason.

        llm: in place of the mocked language model.

        Raises TaskError(code="task_record_unwritable") where the record is wanted and cannot be written.
        """
        return EvalResult.of(test_case, [await self._run_test_case(test_case, llm)])

    async def _run_test_case(self, test_case: EvalTestCase, llm: LanguageModel | None) -> CaseResult:
        logger.info("Executing eval: %s", test_case.scenario_id)
        try:
            return await self._run(test_case, llm)
        except (ConfigurationError, TaskError):  # files that no other scenario could read or write either
            raise
        except Exception as error:
            logger.debug("Scenario %s crashed", test_case.scenario_id, exc_info=True)
            return judged_case(test_case, [crash_of(error)])

    async def _run(self, test_case: EvalTestCase, llm: LanguageModel | None) -> CaseResult:
        mocks = Mocks.of(test_case)
        llm = None if test_case.input.triage else llm  # what it says is a part of the scenario
        model = mocks.model(self.lexicon) if llm is None else llm
        limits = test_case.at_most
        meter = None
        if limits.tokens is not None or limits.usd is not None:
            model = meter = MeteredModel(model)
        trace = RunTrace(mocks.tools)
        if self.wants_record(test_case) or (self.keep_traces and llm is not None):
            model = trace.follow(model)
        # What one scenario skips of waits must not count for another.
        process = partial(self._process, model=model, clock=SkippingClock(), is_live=llm is not None)
        report, actual, checks = await process(test_case, mocks)
        if test_case.turns:
            from guarantee_email_agent.eval.turns import go_on  # few scenarios have any

            checks += await go_on(test_case, mocks, report, actual, process)
        verdict = None
        if self.wants_record(test_case):
            verdict = self.judge(test_case, build_record(test_case, trace, actual, build_raw_email(test_case)))
        rubric, closed = await self.ask_rubric(test_case, actual["response_body"], llm)
        if not (llm is not None and lacks_model(report)):  # without an answer of the model there is nothing to judge
            if limits is not NO_LIMITS:
                took = {"calls": mocks.tools.calls, "processing_time_ms": actual["processing_time_ms"]}
                checks += run_checks(check_at_most(limits, took, None if meter is None else meter.total))
            checks += () if verdict is None else check_verdict(str(test_case.test), verdict)
            checks += closed
        return judged_case(
            test_case,
            checks,
            actual,
            reading=reading_of(report),
            # What the interpreter says follows from the request.
            trace=trace.as_dict(conversation=llm is not None) if self.keep_traces else None,
            judgement=judgement_of(verdict, rubric),
            step_ms=trace.step_ms if self.keep_traces else (),
        )

    async def ask_rubric(
        self, test_case: EvalTestCase, answer: object, llm: LanguageModel | None
    ) -> tuple[list[dict[str, Any]], list[Check]]:
        """The answers to the scenario's rubric, and what fails by them. llm: None where no model may be asked."""
        if not (questions := test_case.expected_output.rubric):
            return [], []
        from guarantee_email_agent.judging.rubric import answer_rubric, closed_gates, not_asked  # few have one

        if llm is None:
            return not_asked(questions, "no model was asked. Run it with --llm live, record or replay"), []
        asked_for, folder = test_case.input.instruction, Path(test_case.file or "").parent
        answers = await answer_rubric(questions, asked_for, answer, llm, self._model.parameters(), folder)
        return answers, closed_gates(answers)

    async def _process(
        self, test_case: EvalTestCase, mocks: Mocks, *, model: LanguageModel, clock: Clock, is_live: bool
    ) -> tuple[ProcessingResult, dict[str, Any], list[Check]]:
        """One mail: what the agent says came of it, what the mocks captured, and what was judged."""
        started = clock.monotonic()
        previous = test_case.input.previous_reply
        arrived_at = arrival_of(test_case.input.email)
        history = None
        if previous is not None:
            arrived_at = ARRIVED_AT if arrived_at is None else arrived_at
            history = MockReplyHistory(previous, arrived_at)
        # Somebody's own agent may take nothing but the mail.
        arrival: dict[str, Any] = (
            {"arrived_at": arrived_at} if previous is not None or says_date(test_case.input.email) else {}
        )
        processor = self.create_processor(mocks, model, clock, self._policy_for(test_case), history)
        if (settings := test_case.input.agent) is not None and settings.serial_format is not None:
            processor = replace(processor, instructions=_WithFormat(self._instructions, settings.serial_format))
        raw_email = test_case.input.email.raw or build_raw_email(test_case)
        with counted_waits() as held_back:
            report = await processor.process_email(raw_email, **arrival)
        elapsed_ms = round((clock.monotonic() - started - held_back.seconds) * 1000)
        captured = mocks.captured
        actual = observed_output(captured, report) | {"processing_time_ms": elapsed_ms}
        actual |= language_of_reply(test_case.expected_output, actual)
        more = [check_captured(test_case, captured)]
        if test_case.input.email.raw is not None:
            more.append(check_raw_file(test_case.input.email, previous))
        if previous is not None and report.scenario_used is not None:
            known = [scenario.name for scenario in self._instructions.load().scenarios]
            more.append(check_previous_reply(previous.scenario, known))
        more.append(check_agent_report(report, actual))
        checks = judge_output(test_case.expected_output, actual, test_case.recipient, *more)
        others_failed = bool(report.failed_step) and any(not check.passed for check in checks)
        stopped = run_checks(check_completed(report, others_failed))
        return report, actual, stopped if is_live and lacks_model(report) else [*checks, *stopped]

    def create_processor(
        self,
        mocks: Mocks,
        model: LanguageModel,
        clock: Clock,
        policy: AnswerPolicy,
        history: ReplyHistory | None = None,
        look_ups: Mapping[str, LookUpService] = MappingProxyType({}),
    ) -> EmailProcessor:
        """The production pipeline on the mocks. look_ups: by name, in place of their mocks."""
        mocked = {name: MockLookUpClient(name, *tool, mocks.tools) for name, tool in self._look_up_tools.items()}
        return EmailProcessor(
            mail=mocks.mail,
            look_ups={WARRANTY.name: mocks.warranty, **mocked, **look_ups},
            ticketing=mocks.ticketing,
            llm=model,
            instructions=self._instructions,
            model=self._model,
            clock=clock,
            policy=policy,
            history=history,
        )

    def _policy_for(self, test_case: EvalTestCase) -> AnswerPolicy:
        """The configuration's, with the scenario's own settings."""
        if (settings := test_case.input.agent) is None:
            return self._policy
        trusted, own = settings.trusted_forms, settings.own_addresses
        return replace(
            self._policy,
            mode=settings.mode or self._policy.mode,
            sender_check=settings.sender_check or self._policy.sender_check,
            authserv_id=settings.authserv_id or self._policy.authserv_id,
            trusted_forms=self._policy.trusted_forms if trusted is None else frozenset(map(str.lower, trusted)),
            own_addresses=self._policy.own_addresses if own is None else frozenset(own),
        )

    def validate_output(
        self,
        expected: EvalExpectedOutput,
        actual: Mapping[str, Any] | ProcessingResult,
        mocks: Mapping[str, Any] | None = None,
        processing_time_ms: int | None = None,
        sender: str | None = None,
    ) -> tuple[bool, list[str]]:
        """Whether `actual` is what is expected, and the text of every failed check.

        actual: as `EvalResult.actual_output` has it, or our agent's own result. mocks: those that the agent worked
        with, as `create_mock_clients` names them: what they captured is judged, and where the agent says otherwise,
        that is a miss, too. processing_time_ms: in place of the one in `actual`. sender: the only address that mail may
        go to; None for that of the mocks' scenario, and for any where there are none.
        """
        report = actual if isinstance(actual, ProcessingResult) else None
        output = dict(actual) if isinstance(actual, Mapping) else reported_output(actual)
        more: list[Iterator[Check]] = []
        if mocks is not None:
            ran = Mocks.of_clients(mocks)
            captured, test_case = ran.captured, replace(ran.mail.test_case, expected_output=expected)
            output |= captured_output(captured)
            output |= language_of_reply(expected, output)
            sender = test_case.recipient if sender is None else sender
            more.append(check_captured(test_case, captured))
            if report is not None:
                more.append(check_agent_report(report, output))
        if processing_time_ms is not None:
            output["processing_time_ms"] = processing_time_ms
        failures = [str(check) for check in judge_output(expected, output, sender, *more) if not check.passed]
        if report is not None:
            failures += map(str, run_checks(check_completed(report, bool(failures))))
        return not failures, failures

    def wants_record(self, test_case: EvalTestCase) -> bool:
        """Whether anybody looks at the record of a run."""
        return test_case.test is not None or self._records_dir is not None

    def judge(self, test_case: EvalTestCase, record: Mapping[str, Any]) -> Verdict | None:
        """Keeps the record of a run where that is wanted; the verdict of the scenario's own judge where it has one."""
        if self._records_dir is not None:
            from guarantee_email_agent.judging.record import write_record

            # Two files may claim one id, but not one name.
            name = Path(test_case.file).stem if test_case.file else test_case.scenario_id
            write_record(self._records_dir / f"{name}.json", record)
        if test_case.test is None:
            return None
        from guarantee_email_agent.judging.judge import judge

        return judge(Path(test_case.file or "").with_name(test_case.test), record)


def judgement_of(verdict: Verdict | None, rubric: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """What the scenario's own judge and a model said, as the log has it; None for nothing."""
    return {**({} if verdict is None else verdict.as_dict()), **({"rubric": list(rubric)} if rubric else {})} or None


def judge_output(
    expected: EvalExpectedOutput, actual: Mapping[str, Any], sender: str | None, *more: Iterator[Check]
) -> list[Check]:
    """What is expected, and what holds for every scenario. sender: as `EvalRunner.validate_output` has it."""
    return [
        *expected.checks(actual),
        *run_checks(
            check_recipients("email_sent", sender, actual.get("recipients", ())),
            check_recipients("draft_stored", sender, actual.get("draft_recipients", ())),
            check_single("ticket_created", "tickets were created", actual.get("tickets", 0)),
            *more,
        ),
    ]


def language_of_reply(expected: EvalExpectedOutput, actual: Mapping[str, Any]) -> dict[str, str | None]:
    """`reply_language`, read off the captured reply, where it is judged and there is one."""
    if expected.reply_language is None or actual["response_body"] is None:
        return {}
    return {"reply_language": read_language(actual["response_body"]).code}


def check_captured(test_case: EvalTestCase, captured: Captured) -> Iterator[Check]:
    """What no agent may do, whatever the scenario expects: notes on other tickets, calls that no mock knows, and what
    the scenario's own mode forbids.
    """
    previous = test_case.input.previous_reply
    yield from check_notes(previous.ticket_id if previous else None, captured.noted)
    yield from (Check("calls", problem) for problem in captured.unknown)
    if (settings := test_case.input.agent) is not None:
        yield from check_mode(settings.mode, [call.as_dict() for call in captured.calls])


def check_raw_file(email: EvalEmail, previous: PreviousReply | None = None) -> Iterator[Check]:
    """Every key of `input.email` that the raw mail is read as something else than, and a reply that it does not answer.

    Lines of the body count, since labels and quotations go by them; blanks and empty lines do not.

    email: with `raw`. previous: of the scenario.
    """
    assert email.raw is not None
    try:
        parsed = parse_email(email.raw)
    except ProcessingError as error:
        yield Check("raw_file", f"{email.raw_file} cannot be read: {error.message}")
        return
    pairs = {
        "from": (parse_address(email.from_address) or "", parsed.sender),
        "subject": (_one_line(email.subject), _one_line(parsed.subject)),
        "received": (_moment(email.received), _moment(parsed.received)),
        "body": (_lines(email.body), _lines("".join(span.text for span in parsed.spans))),
        "attachments": (", ".join(email.attachments), ", ".join(parsed.attachments)),
    }
    for name, (expected, actual) in pairs.items():
        if expected != actual:
            reason = f"{name} of {email.raw_file} reads otherwise"
            yield Check("raw_file", reason, format_value(expected), format_value(actual))
    if previous is not None and previous.message_id not in (answered := answered_message_ids(parsed)):
        reason = f"{email.raw_file} does not answer previous_reply by In-Reply-To or References"
        yield Check("raw_file", reason, format_value(previous.message_id), format_value(" ".join(answered)))


def _one_line(text: str) -> str:
    return " ".join(_lines(text).split())


def _lines(text: str) -> str:
    """As the parser leaves it: typographic signs count as plain ones."""
    return "\n".join(filter(None, (" ".join(line.split()) for line in normalize_text(text).split("\n"))))


def _moment(written: str) -> str:
    """In UTC where a zone is told, so that one moment is the same in each; as it is where that is no date."""
    try:
        moment = datetime.fromisoformat(written)
    except ValueError:
        return written
    return moment.isoformat() if moment.tzinfo is None else moment.astimezone(UTC).isoformat()


def observed_output(captured: Captured, report: ProcessingResult | None) -> dict[str, Any]:
    """What came out of a run: what the mocks captured, and the rest as our agent reports it.

    report: None for an agent that is not ours.
    """
    output = captured_output(captured)
    return output | unobservable_output(report, output["response_body"])


def captured_output(captured: Captured) -> dict[str, Any]:
    """Mails, tickets and calls. Raises TypeError for what no report could hold."""
    sent, drafts, tickets = captured.sent, captured.drafts, captured.tickets
    reply = next(iter((*sent, *drafts)), None)
    ticket_fields = dict(tickets[0]) if tickets else {}
    ticket_fields.pop("idempotency_key", None)
    output = {
        "email_sent": bool(sent),
        "recipients": [mail["to"] for mail in sent],
        "draft_stored": bool(drafts),
        "draft_recipients": [draft["to"] for draft in drafts],
        "response_subject": reply and reply["subject"],
        "response_body": reply and reply["body"],
        "ticket_created": bool(tickets),
        "tickets": len(tickets),
        "ticket_fields": ticket_fields,
        "note_added": bool(captured.noted),
        "calls": [call.as_dict() for call in captured.calls],
    }
    json.dumps(output)
    return output


def reading_of(report: ProcessingResult) -> dict[str, Any]:
    """How the agent read a mail, as far as it came: what it is about, in which language, its numbers, the look-up."""
    triage = report.triage
    read: dict[str, Any] = {} if triage is None else {"topic": triage.topic, "language": triage.language}
    if triage is not None and triage.look_up is not None:
        read |= {"number_kind": triage.look_up.number, "numbers": list(triage.numbers)}
    looked_up = {"look_up": report.look_up, "number": report.number, "status": report.status}
    why = {"skip_reason": report.skip_reason, "reply_language": report.reply_language}
    return read | {name: value for name, value in (looked_up | why).items() if value is not None}


def run_without_event_loop(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """The result of a coroutine that never waits, as all are whose clients are mocks or recordings.

    An event loop would add nothing here but 50 ms of imports, a fifth of what fifty scenarios may take.
    """
    try:
        coroutine.send(None)
    except StopIteration as stop:
        result: Result = stop.value
        return result
    coroutine.close()
    raise AssertionError("an offline scenario waited for something outside the process")
