"""One task, from an empty sandbox to a verdict: the agent works step by step, and its run becomes a record."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final

from guarantee_email_agent.config.task_allowance import NOTHING_MORE, TaskAllowance
from guarantee_email_agent.judging.grading import grade_task, refused_timeout
from guarantee_email_agent.judging.record import RECORD_DIR, Record
from guarantee_email_agent.judging.record_files import Extent, RecordPlace, SingleRecordFile
from guarantee_email_agent.judging.task import Task
from guarantee_email_agent.judging.verdict import Graded, Verdict
from guarantee_email_agent.llm.port import TokenUsage
from guarantee_email_agent.sandbox.client import SandboxClient
from guarantee_email_agent.sandbox.sandbox import Sandbox
from guarantee_email_agent.solving.agents.agent import Agent, AgentFactory, AgentStepError, Step, TaskContext
from guarantee_email_agent.solving.run_limits import INTERRUPTED, Deadline, FailureReason, RunLimits
from guarantee_email_agent.solving.run_recorder import (
    RECORD_UNWRITABLE,
    EarlierRun,
    RunRecorder,
    earlier_run,
    judge_again,
    usage_of,
)
from guarantee_email_agent.solving.sandbox_tools import ClientType, is_alive, tools_for
from guarantee_email_agent.solving.tools import TASK_COMPLETE, ToolResult, Toolset
from guarantee_email_agent.utils.clock import Clock, SystemClock
from guarantee_email_agent.utils.errors import AgentError, TaskError
from guarantee_email_agent.utils.parallel import Interruption
from guarantee_email_agent.utils.text import printable

logger = logging.getLogger(__name__)

TOOL_TIMEOUT_S: Final = 300.0
"""Seconds that one tool call may take, if the task has that long."""

CLEANUP_TIMEOUT_S: Final = 60.0
"""Seconds that runs have to clean up after an interruption."""

# What a sandbox is refused for until somebody changes the task, or what is allowed.
_REFUSALS: Final = frozenset({"sandbox_assets", "sandbox_exposes_host", "sandbox_not_allowed", "sandbox_setting"})

# Whoever ends the sandbox that it works in has failed; it is no reason to let it try again.
SANDBOX_LOST: Final = FailureReason("sandbox_lost", "the sandbox ended before the agent was done")

OpenSandbox = Callable[[Task], AbstractContextManager[Sandbox]]


@dataclass(eq=False, slots=True)
class TaskRunner:
    """Works through tasks with one kind of agent; `run` may be called from several threads at once.

    agent_name: in the record. out_dir: where the records go, as `<task_name>.json`. started: when a run began (ISO).
    judge_timeout_s: None as the task says. allowed: the most that the
    judge of a task may ask for; `open_sandbox` sees to its sandbox.
    """

    make_agent: AgentFactory
    agent_name: str
    open_sandbox: OpenSandbox
    limits: RunLimits
    out_dir: Path
    _: KW_ONLY
    started: Callable[[], str]
    sandbox_kind: str = "embedded"
    judge_timeout_s: float | None = None
    allowed: TaskAllowance = NOTHING_MORE
    clock: Clock = field(default_factory=SystemClock)
    interruption: Interruption = field(default_factory=Interruption)
    _running: set[Sandbox] = field(default_factory=set, init=False)
    _logged_limitations: set[str] = field(default_factory=set, init=False)

    def interrupt(self) -> None:
        """End all runs as soon as possible, from another thread than theirs; a judge at work is not waited for."""
        self.interruption.request()
        for sandbox in tuple(self._running):
            # What it is carrying out would be waited for.
            with suppress(AgentError):
                sandbox.stop()
        self.interruption.wait(CLEANUP_TIMEOUT_S)

    def record_file(self, task: Task) -> Path:
        return self.out_dir / f"{task.name}.json"

    def record_place(self, task_name: str) -> RecordPlace:
        """Where the record of a task lies, once there is one."""
        return RecordPlace(SingleRecordFile(self.out_dir / f"{task_name}.json", task_name), Extent())

    def earlier_run(self, task: Task) -> EarlierRun | None:
        """The run of an earlier call, if the task was finished then and still is what it was."""
        file = self.record_file(task)
        if not file.exists():
            return None
        try:
            return earlier_run(file, task)
        except TaskError:  # half a record of an older program, or none at all: then it is made anew
            return None

    def judge_again(self, task: Task) -> Graded:
        """Judge what an agent did in an earlier call, without its sandbox.

        Raises TaskError where the record cannot be written.
        """
        if (problem := refused_timeout(task, self.judge_timeout_s, self.allowed)) is not None:
            return Graded(task.name, Verdict("error", error=problem))
        with self.interruption.not_awaited():
            verdict = judge_again(self.record_file(task), task, partial(self._verdict, task), self._is_to_be_kept)
        return Graded(task.name, verdict)

    def run(self, task: Task) -> Graded:
        """Let the agent work on the task, and judge what it did while its sandbox still lives.

        Raises TaskError where the record cannot be written, and KeyboardInterrupt; the record on disk is then as of
        the step before. Whatever else goes wrong is part of the record and of the verdict.
        """
        with self.interruption.awaited():
            if self.interruption.requested():  # then the former record, if there is one, stays as it is
                return Graded(task.name, _unfinished(INTERRUPTED))
            return Graded(task.name, self._run(task))

    def _run(self, task: Task) -> Verdict:
        recorder = RunRecorder(self.record_file(task), task, self.agent_name, self.limits, self.started())
        try:
            client_type = ClientType.of(task)
        except TaskError as error:
            return Verdict("error", error=error.message)
        # Before an agent works for a verdict that cannot be had.
        if (problem := refused_timeout(task, self.judge_timeout_s, self.allowed)) is not None:
            return Verdict("error", error=problem)
        return replace(self._work(task, recorder, client_type), usage=usage_of(recorder.record))

    def _work(self, task: Task, recorder: RunRecorder, client_type: ClientType) -> Verdict:
        recorder.write()
        verdict: Verdict | None = None
        began = self.clock.monotonic()
        try:
            with self.open_sandbox(task) as sandbox:
                recorder.add_time("sandbox_s", self.clock.monotonic() - began)
                self._log_limitations(sandbox.limitations)
                self._running.add(sandbox)
                port = sandbox.docker_port  # an interruption may end it at any moment
                try:
                    reason = self._run_agent(task, sandbox, client_type, recorder)
                    recorder.finish(reason)
                    if reason is not None and not reason.retryable:  # the others stand in the verdict
                        logger.warning("%s: the agent failed: %s", printable(task.name), printable(reason.message))
                    verdict = self._judge(task, recorder, reason, port)
                    if self._is_to_be_kept(verdict):
                        recorder.add_verdict(verdict)
                finally:
                    self._running.discard(sandbox)
        except Exception as error:  # a bug costs one task, not those beside it
            if isinstance(error, AgentError) and error.code == RECORD_UNWRITABLE:
                raise
            logger.debug("%s", printable(task.name), exc_info=True)
            reason = INTERRUPTED if self.interruption.requested() else _failure_reason(error)
            if verdict is not None:
                message = printable(reason.message)
                logger.warning("%s: the sandbox did not end cleanly: %s", printable(task.name), message)
                return verdict
            if reason is INTERRUPTED and recorder.record["finished"]:
                return _unfinished(INTERRUPTED)
            recorder.finish(reason)
            is_refused = isinstance(error, TaskError) and error.code in _REFUSALS
            verdict = Verdict("error", error=reason.message) if is_refused else _unfinished(reason)
            recorder.add_verdict(verdict)
        return verdict

    def _log_limitations(self, limitations: Sequence[str]) -> None:
        """Once for all tasks: the machine is the same for each."""
        for limitation in limitations:
            if limitation not in self._logged_limitations:
                self._logged_limitations.add(limitation)
                logger.warning("Gap in the sandbox: %s", limitation)

    def _judge(self, task: Task, recorder: RunRecorder, reason: FailureReason | None, sandbox_port: int) -> Verdict:
        if reason is not None and reason.retryable:
            return _unfinished(reason)
        if self.interruption.requested():  # what the agent did is kept, and judged by the next call
            return _unfinished(INTERRUPTED)
        began = self.clock.monotonic()
        with self.interruption.not_awaited():
            recorder.before_judging()
            verdict = self._verdict(task, recorder.record, sandbox_port)
        recorder.add_time("judge_s", self.clock.monotonic() - began)
        return verdict

    def _is_to_be_kept(self, verdict: Verdict) -> bool:
        """Ctrl-C ends the judges too, so an error after it says nothing about this one."""
        return verdict.verdict != "error" or not self.interruption.requested()

    def _verdict(self, task: Task, record: Record, sandbox_port: int | None = None) -> Verdict:
        record = {**record, RECORD_DIR: str(self.out_dir.absolute())}
        return grade_task(task, record, timeout_s=self.judge_timeout_s, allowed=self.allowed, sandbox_port=sandbox_port)

    def _run_agent(
        self, task: Task, sandbox: Sandbox, client_type: ClientType, recorder: RunRecorder
    ) -> FailureReason | None:
        """Why the agent did not finish the task; None where it did."""
        tools = Toolset(tools_for(client_type), SandboxClient(sandbox.base_url))
        facts = {
            "docker_port": sandbox.docker_port,
            "client_type": client_type.value,
            "base_url": sandbox.base_url,
            "kind": self.sandbox_kind,
            "gaps": list(sandbox.limitations),
        }
        deadline = Deadline(self.limits.wall_time_s, self.clock, self.interruption)
        context = TaskContext(task.name, task.instruction, tools.all, facts, deadline)
        try:
            agent = self.make_agent(context)
        except AgentStepError as error:
            return error.reason
        with closing(agent):
            recorder.start(agent.opening_messages(), facts)
            return self._run_steps(agent, tools, deadline, recorder)

    def _run_steps(
        self, agent: Agent, tools: Toolset, deadline: Deadline, recorder: RunRecorder
    ) -> FailureReason | None:
        results: Sequence[ToolResult] = ()
        for _ in range(self.limits.max_iterations):
            if reason := self._out_of_time(deadline):
                return reason
            began = self.clock.monotonic()
            try:
                step = agent.next_step(results)
            except AgentStepError as error:
                if lost := error.details.get("lost"):
                    recorder.add_usage(TokenUsage(uncounted=lost), None)
                return self._out_of_time(deadline) or error.reason
            finally:
                recorder.add_time("agent_s", self.clock.monotonic() - began)
            recorder.add_step(step)
            results = self._use_tools(step, tools, deadline, recorder)
            if step.failure is not None:
                return self._out_of_time(deadline) or step.failure
            if reason := self.limits.exceeded_by(recorder.tokens, recorder.cost_usd):
                return reason
            if any(result.done for result in results):
                return None
            if any(result.error for result in results) and not is_alive(tools.sandbox):
                return self._out_of_time(deadline) or SANDBOX_LOST
            if step.reply is not None:
                recorder.add_reply(step.reply)
        return self._out_of_time(deadline) or self.limits.out_of_steps()

    def _use_tools(self, step: Step, tools: Toolset, deadline: Deadline, recorder: RunRecorder) -> list[ToolResult]:
        """The result of each call of a step, in their order; that of the first `task_complete` is the answer.

        A step that broke a limit is not carried out any more, but its answer counts as the last word.
        """
        is_over_limit = self.limits.exceeded_by(recorder.tokens, recorder.cost_usd) is not None
        results: list[ToolResult] = []
        for call in step.calls:
            if is_over_limit and call.name != TASK_COMPLETE:
                continue
            if deadline.is_over():
                break
            began = self.clock.monotonic()
            result = tools.use(call, min(TOOL_TIMEOUT_S, deadline.remaining_s()))
            seconds = self.clock.monotonic() - began
            recorder.add_time("tools_s", seconds)
            if result.done and not any(earlier.done for earlier in results):
                recorder.set_answer(result.message)
            results.append(result)
            recorder.add_result(result, tools.action(call), seconds)
        return results

    def _out_of_time(self, deadline: Deadline) -> FailureReason | None:
        if self.interruption.requested():
            return INTERRUPTED
        return self.limits.out_of_time() if deadline.is_over() else None


def _unfinished(reason: FailureReason) -> Verdict:
    return Verdict("error", error=f"{reason.message}. The next call repeats this task")


def _failure_reason(error: Exception) -> FailureReason:
    if isinstance(error, AgentError):
        return FailureReason("sandbox_error", error.message, retryable=True)
    return FailureReason("crashed", f"unexpected {type(error).__name__}: {error}", retryable=True)
