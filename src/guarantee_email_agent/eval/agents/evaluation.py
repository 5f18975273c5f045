"""Scenarios for an agent that is reached from outside: served, given to it, and judged by what the mocks captured."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from guarantee_email_agent.email.parsing.parse import parse_email
from guarantee_email_agent.eval.agents.agent import AgentRun, AgentTask, AgentUnderTest
from guarantee_email_agent.eval.agents.command_agent import CommandAgent, McpTransport, PythonAgent
from guarantee_email_agent.eval.agents.http_agent import HttpAgent
from guarantee_email_agent.eval.agents.model_gateway import GatewayRun, ModelGateway
from guarantee_email_agent.eval.agents.span_receiver import as_call
from guarantee_email_agent.eval.case_result import as_usage, judged_case, unusable_case, with_failed
from guarantee_email_agent.eval.checks import check_at_most, check_verdict, crash_of, run_checks
from guarantee_email_agent.eval.mocks import Captured, mail_as_json
from guarantee_email_agent.eval.models import EvalResult, EvalTestCase, InvalidScenario
from guarantee_email_agent.eval.runner import (
    EvalRunner,
    check_captured,
    judge_output,
    judgement_of,
    language_of_reply,
    observed_output,
)
from guarantee_email_agent.eval.served_mocks import MAX_REQUEST_BYTES, ServedMocks, raw_mail
from guarantee_email_agent.eval.tool_mocks import ToolMocks
from guarantee_email_agent.eval.trace import RunTrace, build_record
from guarantee_email_agent.eval.turns import checks_of_turn, next_mail, reply_text, unreached
from guarantee_email_agent.files.problems import suggestion
from guarantee_email_agent.judging.record import Record
from guarantee_email_agent.mcp_servers.loopback import LoopbackServer
from guarantee_email_agent.runlog.records import CaseResult, Check
from guarantee_email_agent.runlog.views.run_report import RunStoppedError
from guarantee_email_agent.utils.errors import ConfigurationError, ProcessingError, TaskError
from guarantee_email_agent.utils.field_path import MISSING, json_or_missing
from guarantee_email_agent.utils.parallel import Interruption, map_in_order
from guarantee_email_agent.utils.text import printable, truncate

logger = logging.getLogger(__name__)

_KINDS: Final = ("command", "http", "python")
_FORMS: Final = "command:'PROGRAM ARGS', http://127.0.0.1:PORT/path, or python:module:function"
_STOP_S: Final = 10.0  # that what is under way may take to end after Ctrl-C


class AgentEvaluation:
    """One run of a suite against one agent."""

    def __init__(
        self, agent: AgentUnderTest, timeout_s: float, models: ModelGateway, stopping: threading.Event | None
    ) -> None:
        """timeout_s: seconds that the agent has for a scenario. models: which it may reach through them. stopping: once
        set, what is under way is ended.

        Raises ConfigurationError where there is no such agent.
        """
        self._agent, self._timeout_s, self.models = agent, timeout_s, models
        self._agent.check()
        self._server = LoopbackServer(MAX_REQUEST_BYTES)
        self._stopping = Interruption(stopping)

    def results(
        self,
        runner: EvalRunner,
        entries: Iterable[EvalTestCase | InvalidScenario],
        total: int,
        *,
        jobs: int,
        repeat: int,
    ) -> Generator[EvalResult, None, None]:
        """One result an entry, in their order; `total` of them. What is under way is ended where the caller stops."""
        self._server.start()
        numbered_entries = list(enumerate(entries, 1))

        def run(numbered: tuple[int, EvalTestCase | InvalidScenario]) -> EvalResult | None:
            """None where no scenario is to begin any more."""
            number, entry = numbered
            if not self._server.in_loop(self.models.limit.may_begin()):
                return None
            try:
                with self._stopping.awaited():
                    logger.info("Executing %d/%d: %s", number, total, entry.scenario_id)
                    if isinstance(entry, InvalidScenario):
                        return EvalResult.of(entry, [self._report(runner, 1, unusable_case(entry))])
                    return self._run_repeatedly(entry, repeat, runner)
            finally:
                self._server.in_loop(self.models.end())

        try:
            for result in map_in_order(run, numbered_entries, jobs):
                if result is not None:
                    yield result
            if self.models.limit.stop_reason is not None:
                raise RunStoppedError(self.models.limit.stop_reason)
        finally:
            self._stopping.request()
            self._stopping.wait(_STOP_S)
            self._server.in_loop(self.models.aclose())
            self._server.stop()

    def _report(self, runner: EvalRunner, number: int, run: CaseResult) -> CaseResult:
        """Nobody gets what was stopped: it has not failed."""
        return run._replace(repetition=number) if self._stopping.requested() else runner.report_run(number, run)

    def _run_repeatedly(self, case: EvalTestCase, repeat: int, runner: EvalRunner) -> EvalResult:
        runs = runner.earlier_runs(case)
        model = self.models.of_case(case)
        while len(runs) < repeat and not (runs and self._stopping.requested()):
            number = len(runs) + 1
            run = self._run_once(case, runner, model.begin(number))._replace(usage=as_usage(model.usage()))
            is_over = number == repeat and not self._stopping.requested()
            if is_over and (problem := model.finish()) is not None:
                run = with_failed(run, Check("recording", problem))
            runs.append(self._report(runner, number, run))
        return EvalResult.of(case, runs)

    def _run_once(self, case: EvalTestCase, runner: EvalRunner, model: GatewayRun) -> CaseResult:
        logger.info("Executing eval: %s", case.scenario_id)
        try:
            return self._run_and_judge(case, runner, model)
        except (ConfigurationError, TaskError):  # as in a run in process
            raise
        except Exception as error:
            logger.debug("Scenario %s crashed", case.scenario_id, exc_info=True)
            return judged_case(case, [crash_of(error)])

    def _run_and_judge(self, case: EvalTestCase, runner: EvalRunner, model: GatewayRun) -> CaseResult:
        mail = mail_as_json(case) if case.input.has_email else None
        served = ServedMocks(case)
        urls = self._server.publish(served.servers)
        gateway = self._server.publish_app(model)

        def stopped_by() -> str | None:
            return "the evaluation was interrupted" if self._stopping.requested() else served.stopped_by

        started = time.monotonic()
        run = AgentRun("it ended before its time")
        try:
            environment = model.environment(gateway)
            task = AgentTask(mail, urls, self._timeout_s, stopped_by, case.input.task, environment)
            run, captured, said, turn_checks = self._converse(case, task, served)
        finally:
            self._server.withdraw({**urls, "": gateway})
            model.end(is_whole=run.failure is None)
        elapsed_ms = round((time.monotonic() - started) * 1000)
        failure = served.stopped_by or model.failure or run.failure
        actual = _output(case, captured, served.world.as_dict(), said[0].pop("output")) | {"error": failure}
        actual["processing_time_ms"] = elapsed_ms
        if case.turns:
            actual["turns"] = said
        if others := model.spans.other_calls(served.tools.calls):
            actual["other_calls"] = [as_call(step) for step in others]
        checks = [] if failure is None else [Check("agent", failure)]  # first: what is missing may follow from it
        checks += [*_checks(case, captured, actual), *turn_checks]
        took = actual | {"calls": served.tools.calls}
        checks += run_checks(check_at_most(case.at_most, took, model.meter.total))
        trace = _trace_of(run, served.tools, model.spans.record(), others)
        record = build_record(case, trace, actual, mail)
        verdict = runner.judge(case, record) if runner.wants_record(case) else None
        if verdict is not None:
            checks += check_verdict(str(case.test), verdict)
        rubric: list[dict[str, Any]] = []
        if case.expected_output.rubric:
            answer = actual["response_body"] if actual["answer"] is None else actual["answer"]
            asking = runner.ask_rubric(case, answer, model.judge())
            rubric, closed = self._server.in_loop(asking)
            checks += closed
        return judged_case(
            case,
            checks,
            actual,
            trace=trace.as_dict(conversation=True),
            judgement=judgement_of(verdict, rubric),
            step_ms=trace.step_ms,
        )

    def _converse(
        self, case: EvalTestCase, task: AgentTask, served: ServedMocks
    ) -> tuple[AgentRun, Captured, list[dict[str, Any]], list[Check]]:
        """The last run; what the mocks captured of the first turn, and where a task goes on the calls of all; what was
        said and answered in each turn; and what was judged of those after the first.
        """
        is_mail, mocks, turn_case = case.input.task is None, served.mocks, case
        run = self._agent.run(task)
        first, checks = mocks.captured, list[Check]()
        answer = _answer_of(run)
        goes_on = reply_text(first) if is_mail else answer
        said = [{"says": case.input.email.body if is_mail else task.task, "answer": goes_on, "output": answer}]
        for number, turn in enumerate(case.turns, 2):
            failure = served.stopped_by or run.failure
            if (missed := unreached(turn, number, said[-1]["answer"], failure)) is not None:
                checks.append(missed)
                break
            if is_mail:
                turn_case = next_mail(turn_case, turn, number, mocks, None)
                served.mailbox.deliver(turn_case)
                task = replace(task, email=mail_as_json(turn_case))
            else:
                turn_case = replace(case, expected_output=turn.expected_output)
                task = replace(task, email=None, task=turn.says)
            mocks, began = mocks.next_turn(), time.monotonic()
            served.world.begin_turn()
            run = self._agent.run(replace(task, said=tuple(said)))
            captured, answer = mocks.captured, _answer_of(run)
            actual = _output(turn_case, captured, served.world.as_dict(of_turn=True), answer)
            took = {"processing_time_ms": round((time.monotonic() - began) * 1000)}
            checks += checks_of_turn(number, _checks(turn_case, captured, actual | took))
            said.append({"says": turn.says, "answer": reply_text(captured) if is_mail else answer, "output": actual})
        return run, first if is_mail else first._replace(calls=served.mocks.captured.calls), said, checks


def _output(case: EvalTestCase, captured: Captured, world: Mapping[str, Any], answer: object) -> dict[str, Any]:
    """What came of a turn."""
    actual = observed_output(captured, None) | {"answer": answer}
    if case.input.world:
        actual["world"] = world
    return actual | language_of_reply(case.expected_output, actual)


def find_agent(agent: str | AgentUnderTest, transport: McpTransport = "http") -> AgentUnderTest:
    """agent: as `--agent` has it, or one that is there. transport: by which its MCP servers are reached.

    Raises ConfigurationError for what names no agent, or none that the transport reaches.
    """
    kind, colon, place = agent.partition(":") if isinstance(agent, str) else ("http", "", "")
    if transport == "stdio" and kind == "http":
        problem = "--agent-mcp stdio is for command: and python: agents; others reach their servers over HTTP. "
        raise ConfigurationError(f"{problem}Leave --agent-mcp out", "eval_bad_agent")
    if not isinstance(agent, str):
        return agent
    if kind in ("command", "python") and colon:
        return (CommandAgent if kind == "command" else PythonAgent)(place, transport)
    if kind == "http" and colon:
        return HttpAgent(agent)
    hint = suggestion(kind, _KINDS) or "."
    problem = f"--agent {printable(truncate(agent, 60))} names no agent{hint} Write {_FORMS}"
    raise ConfigurationError(problem, "eval_bad_agent")


def _checks(case: EvalTestCase, captured: Captured, actual: Mapping[str, Any]) -> list[Check]:
    """What an agent that is not ours can be judged by: what the mocks captured."""
    expected = replace(case.expected_output, scenario_instruction_used=None, hand_over_reason=None)
    more = check_captured(case, captured)
    return judge_output(expected, actual, case.recipient, check_thread(case, captured.sent), more)


def check_thread(case: EvalTestCase, sent: Iterable[Mapping[str, Any]]) -> Iterator[Check]:
    """A reply may leave out what it answers, but names no other mail. Also the id that the agent was given will do."""
    answered = [reply["in_reply_to"].strip() for reply in sent if reply["in_reply_to"]]
    if not answered:
        return
    try:
        own = parse_email(raw_mail(case)).original_message_id or ""
    except ProcessingError:  # a mail of nobody, for agents that are to leave it alone
        return
    for message_id in answered:
        if message_id.strip("<>") not in (own.strip("<>"), f"eval-{case.scenario_id}"):
            reason = "the reply stands in another thread"
            yield Check("email_sent", reason, repr(own), repr(truncate(message_id, 100)))


def _answer_of(run: AgentRun) -> object:
    """What the agent answers, as JSON; NaN and the like as text, since JSON has no such numbers."""
    given = run.record.get("task_result")
    if given is None or isinstance(given, str):
        return given
    text = json.dumps(given, ensure_ascii=False)
    return text if (content := json_or_missing(text)) is MISSING else content


def _trace_of(run: AgentRun, tools: ToolMocks, traced: Record, others: Sequence[dict[str, Any]]) -> RunTrace:
    """The calls that the mocks noted, and what the agent reports of itself, as far as it has the right form.

    traced: what its spans tell, where it does not report that itself. others: calls that only they tell of.
    """
    conversation, iterations, result = (run.record.get(name) for name in ("conversation", "iterations", "task_result"))
    if not (result is None or isinstance(result, str)):
        result = json.dumps(result, ensure_ascii=False)
    return RunTrace(
        tools,
        conversation if isinstance(conversation, list) else traced.get("conversation", []),
        iterations if type(iterations) is int else traced.get("iterations", len(tools.calls)),
        result,
        run.printed,
        others=others,
        is_own=False,
    )
