"""A task runner whose agents do as they are told."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tasks_and_sandboxes import read_json

from guarantee_email_agent.judging.task import Task
from guarantee_email_agent.solving.agents.agent import Agent, Step, TaskContext
from guarantee_email_agent.solving.run_limits import RunLimits
from guarantee_email_agent.solving.task_runner import TaskRunner
from guarantee_email_agent.solving.tools import ToolResult
from guarantee_email_agent.utils.clock import SkippingClock


class ReplayAgent(Agent):
    """Gives its steps one after the other; a step may also be an error, or a function that looks around first."""

    def __init__(self, context: TaskContext, steps: Sequence[Any]) -> None:
        self.context = context
        self.steps = list(steps)
        self.results: list[Sequence[ToolResult]] = []
        self.closed = 0

    def next_step(self, results: Sequence[ToolResult]) -> Step:
        self.results.append(results)
        step = self.steps.pop(0) if self.steps else Step("still thinking")
        if callable(step):
            step = step()
        if isinstance(step, BaseException):
            raise step
        assert isinstance(step, Step)
        return step

    def close(self) -> None:
        self.closed += 1


class Bench:
    """A task runner whose agents are kept, and its records."""

    def __init__(self, sandboxes: Any, out_dir: Path) -> None:
        self.sandboxes = sandboxes
        self.out_dir = out_dir
        self.clock = SkippingClock()
        self.agents: list[ReplayAgent] = []

    def runner(self, *steps: Any, limits: RunLimits | None = None, **settings: Any) -> TaskRunner:
        def make(context: TaskContext) -> ReplayAgent:
            self.agents.append(ReplayAgent(context, steps))
            return self.agents[-1]

        return TaskRunner(
            settings.pop("make_agent", make),
            "script",
            settings.pop("open_sandbox", self.sandboxes),
            limits or RunLimits(),
            self.out_dir,
            started=lambda: "2026-01-18T10:00:00Z",
            clock=self.clock,
            **settings,
        )

    def run(self, task: Task, *steps: Any, **settings: Any) -> dict[str, Any]:
        self.runner(*steps, **settings).run(task)
        return self.record(task)

    def record(self, task: Task) -> dict[str, Any]:
        return read_json(self.out_dir / f"{task.name}.json")


@pytest.fixture
def bench(sandboxes: Any, tmp_path: Path) -> Bench:
    (tmp_path / "results").mkdir()
    return Bench(sandboxes, tmp_path / "results")
