"""One task, from an empty sandbox to a verdict: the agent works turn by turn, and its run becomes a record."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Final, Protocol

from guarantee_email_agent.judging.grading import grade_task
from guarantee_email_agent.judging.judge import Verdict
from guarantee_email_agent.judging.record import read_record
from guarantee_email_agent.judging.task import Graded, Task
from guarantee_email_agent.solving.agents.agent import (
    Briefing,
    Controller,
    ControllerError,
    ControllerFactory,
    Turn,
)
from guarantee_email_agent.solving.deadline import INTERRUPTED, Interruption, Limits, Reason, Watch
from guarantee_email_agent.solving.run_recorder import RECORD_UNWRITABLE, Journal, kept_verdict
from guarantee_email_agent.solving.sandbox_tools import ClientType, SandboxApi, is_alive, tools_for
from guarantee_email_agent.solving.tools import Outcome, Tools
from guarantee_email_agent.utils.clock import Clock, SystemClock
from guarantee_email_agent.utils.errors import AgentError, TaskError
from guarantee_email_agent.utils.printable import printable

logger = logging.getLogger(__name__)

TOOL_TIMEOUT_S: Final = 300.0
"""Seconds that one tool call may take, if the task has that long."""

END_S: Final = 60.0
"""Seconds that runs have to clean up after an interruption."""

# Whoever ends the sandbox that it works in has failed; it is no reason to let it try again.
SANDBOX_LOST: Final = Reason("sandbox_lost", "the sandbox ended before the agent was done")


class RunningSandbox(Protocol):
    """What an executor has to know of a sandbox."""

    @property
    def base_url(self) -> str: ...
    @property
    def docker_port(self) -> int: ...
    @property
    def gaps(self) -> tuple[str, ...]:
        """What could not be had on this machine, a sentence each."""

    def stop(self) -> None:
        """Ends it; may be called twice, and from another thread."""


OpenSandbox = Callable[[Task], AbstractContextManager[RunningSandbox]]


class TaskExecutor:
    """Works through tasks with one kind of agent; `run` may be called from several threads at once.

    controller: makes an agent for a task; controller_name is what the record calls it. out_dir: where the records go,
    as `<task_name>.json`. connect: a client for the address of a sandbox. started: says when a run began (ISO 8601).
    """

    def __init__(
        self,
        controller: ControllerFactory,
        controller_name: str,
        open_sandbox: OpenSandbox,
        limits: Limits,
        out_dir: Path,
        *,
        started: Callable[[], str],
        connect: Callable[[str], SandboxApi],
        sandbox_kind: str = "embedded",
        judge_timeout_s: float | None = None,
        clock: Clock | None = None,
        interruption: Interruption | None = None,
    ) -> None:
        self._controller = controller
        self._controller_name = controller_name
        self._open_sandbox = open_sandbox
        self._limits = limits
        self._out_dir = out_dir
        self._started = started
        self._connect = connect
        self._sandbox_kind = sandbox_kind
        self._judge_timeout_s = judge_timeout_s
        self._clock = clock or SystemClock()
        self._interruption = interruption or Interruption()
        self._running: set[RunningSandbox] = set()
        self._told: set[str] = set()

    def interrupt(self) -> None:
        """End all runs as soon as possible, from another thread than theirs; a judge at work is not waited for."""
        self._interruption.request()
        for sandbox in tuple(self._running):
            # Whatever it was told to do would be waited for.
            with suppress(AgentError):
                sandbox.stop()
        self._interruption.wait(END_S)

    def record_file(self, task: Task) -> Path:
        return self._out_dir / f"{task.name}.json"

    def finished(self, task: Task) -> Graded | None:
        """The verdict of an earlier call, if the task was finished and judged then."""
        file = self.record_file(task)
        if not file.exists():
            return None
        try:
            verdict = kept_verdict(read_record(file), task)
        except TaskError:  # half a record of an older program, or none at all: then it is made anew
            return None
        return None if verdict is None else Graded(task.name, verdict)

    def run(self, task: Task) -> Graded:
        """Let the agent work on the task, and judge what it did while its sandbox still lives.

        Raises TaskError where the record cannot be written, and KeyboardInterrupt; the record on disk is then as of
        the step before. Whatever else goes wrong is part of the record and of the verdict.
        """
        with self._interruption.awaited():
            if self._interruption.requested():  # then the former record, if there is one, stays as it is
                return Graded(task.name, _not_done(INTERRUPTED))
            return Graded(task.name, self._run(task))

    def _run(self, task: Task) -> Verdict:
        journal = Journal(self.record_file(task), task, self._controller_name, self._limits, self._started())
        try:
            client_type = ClientType.of(task)
        except TaskError as error:
            return Verdict("error", error=error.message)
        journal.write()
        verdict: Verdict | None = None
        began = self._clock.monotonic()
        try:
            with self._open_sandbox(task) as sandbox:
                journal.took("sandbox_s", self._clock.monotonic() - began)
                self._tell_gaps(sandbox.gaps)
                self._running.add(sandbox)
                try:
                    reason = self._work(task, sandbox, client_type, journal)
                    journal.end(reason)
                    if reason is not None and not reason.again:  # of the others the verdict tells
                        logger.warning("%s: the agent failed: %s", printable(task.name), printable(reason.message))
                    verdict = self._verdict(task, journal, reason)
                    # Ctrl-C ends the judges too, so an error after it says nothing about this one.
                    if verdict.verdict != "error" or self._interrupted() is None:
                        journal.judged(verdict)
                finally:
                    self._running.discard(sandbox)
        except Exception as error:  # a bug costs one task, not those beside it
            if isinstance(error, AgentError) and error.code == RECORD_UNWRITABLE:
                raise
            logger.debug("%s", printable(task.name), exc_info=True)
            reason = self._interrupted() or _reason_of(error)
            if verdict is None:
                journal.end(reason)
                verdict = _not_done(reason)
                journal.judged(verdict)
            else:
                logger.warning(
                    "%s: the sandbox did not end cleanly: %s", printable(task.name), printable(reason.message)
                )
        return verdict

    def _tell_gaps(self, gaps: Sequence[str]) -> None:
        """Once for all tasks: the machine is the same for each."""
        for gap in gaps:
            if gap not in self._told:
                self._told.add(gap)
                logger.warning("The sandbox is not all that it should be: %s", gap)

    def _verdict(self, task: Task, journal: Journal, reason: Reason | None) -> Verdict:
        if reason is not None and reason.again:
            return _not_done(reason)
        began = self._clock.monotonic()
        with self._interruption.not_awaited():
            verdict = grade_task(task, journal.record, timeout_s=self._judge_timeout_s)
        journal.took("judge_s", self._clock.monotonic() - began)
        return verdict

    def _work(self, task: Task, sandbox: RunningSandbox, client_type: ClientType, journal: Journal) -> Reason | None:
        """Why the agent did not finish the task; None where it did."""
        tools = Tools(tools_for(client_type), self._connect(sandbox.base_url))
        facts = {
            "docker_port": sandbox.docker_port,
            "client_type": client_type.value,
            "base_url": sandbox.base_url,
            "kind": self._sandbox_kind,
            "gaps": list(sandbox.gaps),
        }
        watch = Watch(self._limits.wall_time_s, self._clock, self._interruption)
        briefing = Briefing(task.name, task.instruction, tools.all, facts, sandbox.base_url, watch)
        try:
            controller = self._controller(briefing)
        except ControllerError as error:
            return Reason(error.code, error.message, error.again)
        try:
            journal.open(controller.opening(), facts)
            return self._turns(controller, tools, watch, journal)
        finally:
            controller.close()

    def _turns(self, controller: Controller, tools: Tools, watch: Watch, journal: Journal) -> Reason | None:
        outcomes: Sequence[Outcome] = ()
        for _ in range(self._limits.max_iterations):
            if reason := self._over(watch):
                return reason
            began = self._clock.monotonic()
            try:
                turn = controller.next_turn(outcomes)
            except ControllerError as error:
                return self._over(watch) or Reason(error.code, error.message, error.again)
            finally:
                journal.took("agent_s", self._clock.monotonic() - began)
            self._note(turn, journal)
            outcomes = self._use(turn, tools, watch, journal)
            if turn.failure is not None:
                return self._over(watch) or Reason(turn.failure.code, turn.failure.message, turn.failure.again)
            if reason := self._limits.spent(journal.tokens, journal.cost_usd):
                return reason
            if any(outcome.done for outcome in outcomes):
                return None
            if any(outcome.error for outcome in outcomes) and not is_alive(tools.sandbox):
                return self._over(watch) or SANDBOX_LOST
            if turn.reply is not None:
                journal.told(turn.reply)
        return self._over(watch) or self._limits.out_of_turns()

    def _note(self, turn: Turn, journal: Journal) -> None:
        if turn.model is not None:
            journal.model(turn.model)
        journal.turn(turn.text, turn.calls, turn.usage, turn.cost_usd)
        journal.merge(turn.record)

    def _use(self, turn: Turn, tools: Tools, watch: Watch, journal: Journal) -> list[Outcome]:
        """What came of each call of a turn, in their order; the result of the first `task_complete` is kept.

        A turn that broke a limit is not carried out any more, but its answer counts as the last word.
        """
        is_over = self._limits.spent(journal.tokens, journal.cost_usd) is not None
        outcomes: list[Outcome] = []
        is_done = False
        for call in turn.calls:
            if is_over and not tools.completes(call):
                continue
            if self._over(watch):
                break
            began = self._clock.monotonic()
            outcome = tools.use(call, min(TOOL_TIMEOUT_S, watch.remaining_s()))
            seconds = self._clock.monotonic() - began
            journal.took("tools_s", seconds)
            if outcome.done and not is_done:
                is_done = True
                journal.result(outcome.message)
            outcomes.append(outcome)
            journal.outcome(outcome, tools.action(call), seconds)
        return outcomes

    def _over(self, watch: Watch) -> Reason | None:
        return self._interrupted() or (self._limits.out_of_time() if watch.remaining_s() <= 0 else None)

    def _interrupted(self) -> Reason | None:
        return INTERRUPTED if self._interruption.requested() else None


def _not_done(reason: Reason) -> Verdict:
    return Verdict("error", error=f"{reason.message}. The next call repeats this task")


def _reason_of(error: Exception) -> Reason:
    if isinstance(error, AgentError):
        return Reason("sandbox_error", error.message, again=True)
    return Reason("crashed", f"unexpected {type(error).__name__}: {error}", again=True)
