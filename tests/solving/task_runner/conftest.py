"""An executor whose agents do as they are told."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from guarantee_email_agent.judging.task import Task
from guarantee_email_agent.solving.agents.agent import Briefing, Turn
from guarantee_email_agent.solving.deadline import Limits
from guarantee_email_agent.solving.task_runner import TaskExecutor
from guarantee_email_agent.solving.tools import Outcome
from guarantee_email_agent.utils.clock import SkippingClock


class Agent:
    """Gives its turns one after the other; a turn may also be an error, or a function that looks around first."""

    def __init__(self, briefing: Briefing, turns: Sequence[Any]) -> None:
        self.briefing = briefing
        self.turns = list(turns)
        self.told: list[Sequence[Outcome]] = []
        self.closed = 0

    def opening(self) -> Sequence[Mapping[str, Any]]:
        return [{"role": "user", "content": self.briefing.instruction}]

    def next_turn(self, outcomes: Sequence[Outcome]) -> Turn:
        self.told.append(outcomes)
        turn = self.turns.pop(0) if self.turns else Turn("still thinking")
        if callable(turn):
            turn = turn()
        if isinstance(turn, BaseException):
            raise turn
        assert isinstance(turn, Turn)
        return turn

    def close(self) -> None:
        self.closed += 1


class Bench:
    """An executor whose agents are kept, and its records."""

    def __init__(self, sandboxes: Any, out_dir: Path) -> None:
        self.sandboxes = sandboxes
        self.out_dir = out_dir
        self.clock = SkippingClock()
        self.agents: list[Agent] = []

    def executor(self, *turns: Any, limits: Limits | None = None, **settings: Any) -> TaskExecutor:
        def make(briefing: Briefing) -> Agent:
            self.agents.append(Agent(briefing, turns))
            return self.agents[-1]

        return TaskExecutor(
            settings.pop("controller", make),
            "script",
            settings.pop("open_sandbox", self.sandboxes),
            limits or Limits(),
            self.out_dir,
            started=lambda: "2026-01-18T10:00:00Z",
            connect=self.sandboxes.connect,
            clock=self.clock,
            **settings,
        )

    def run(self, task: Task, *turns: Any, **settings: Any) -> dict[str, Any]:
        self.executor(*turns, **settings).run(task)
        return self.record(task)

    def record(self, task: Task) -> dict[str, Any]:
        record: dict[str, Any] = json.loads((self.out_dir / f"{task.name}.json").read_text())
        return record


@pytest.fixture
def bench(sandboxes: Any, tmp_path: Path) -> Bench:
    (tmp_path / "results").mkdir()
    return Bench(sandboxes, tmp_path / "results")
