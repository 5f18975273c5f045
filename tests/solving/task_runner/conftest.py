"""A task runner whose agents do as they are told."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from guarantee_email_agent.judging.task import Task
from guarantee_email_agent.solving.agents.agent import Step, TaskContext
from guarantee_email_agent.solving.run_limits import RunLimits
from guarantee_email_agent.solving.task_runner import TaskRunner
from guarantee_email_agent.solving.tools import ToolResult
from guarantee_email_agent.utils.clock import SkippingClock


class Agent:
    """Gives its steps one after the other; a step may also be an error, or a function that looks around first."""

    def __init__(self, context: TaskContext, steps: Sequence[Any]) -> None:
        self.context = context
        self.steps = list(steps)
        self.told: list[Sequence[ToolResult]] = []
        self.closed = 0

    def opening(self) -> Sequence[Mapping[str, Any]]:
        return [{"role": "user", "content": self.context.instruction}]

    def next_step(self, tool_results: Sequence[ToolResult]) -> Step:
        self.told.append(tool_results)
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
        self.agents: list[Agent] = []

    def runner(self, *steps: Any, limits: RunLimits | None = None, **settings: Any) -> TaskRunner:
        def make(context: TaskContext) -> Agent:
            self.agents.append(Agent(context, steps))
            return self.agents[-1]

        return TaskRunner(
            settings.pop("controller", make),
            "script",
            settings.pop("open_sandbox", self.sandboxes),
            limits or RunLimits(),
            self.out_dir,
            started=lambda: "2026-01-18T10:00:00Z",
            connect=self.sandboxes.connect,
            clock=self.clock,
            **settings,
        )

    def run(self, task: Task, *steps: Any, **settings: Any) -> dict[str, Any]:
        self.runner(*steps, **settings).run(task)
        return self.record(task)

    def record(self, task: Task) -> dict[str, Any]:
        record: dict[str, Any] = json.loads((self.out_dir / f"{task.name}.json").read_text())
        return record


@pytest.fixture
def bench(sandboxes: Any, tmp_path: Path) -> Bench:
    (tmp_path / "results").mkdir()
    return Bench(sandboxes, tmp_path / "results")
