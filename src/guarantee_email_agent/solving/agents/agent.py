"""The port to whoever works on a task: it says what to do next, and is told what came of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from guarantee_email_agent.llm.port import NO_TOKENS, TokenUsage
from guarantee_email_agent.solving.tools import Tool, ToolCall, ToolResult
from guarantee_email_agent.utils.errors import AgentError


class AgentStepError(AgentError):
    """A controller that cannot go on. Message and code are the reason in the record.

    `details["again"]` is true where the agent is not to blame (the model cannot be reached), so that the task is to be
    tried again.
    """

    @property
    def again(self) -> bool:
        return bool(self.details.get("again", False))


class Stop(Protocol):
    """What ends a controller early; whoever waits looks at it several times a second."""

    def remaining_s(self) -> float:
        """Seconds that are left for the task; 0 once it is over."""

    def requested(self) -> bool:
        """Whether somebody asked for the end, by Ctrl-C."""


@dataclass(frozen=True, slots=True)
class TaskContext:
    """What a controller is told at the start. tools: none where the task has no sandbox but `task_complete`."""

    task_name: str
    instruction: str
    tools: tuple[Tool, ...]
    sandbox: Mapping[str, Any]
    base_url: str | None
    stop: Stop


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a controller: what it says, and the tools it wants used, all of them, in this order.

    usage, cost_usd: of this step; the cost is None where the model has no known price. reply: what it is told where
    it wants no tool. record: what a program tells of its own run, with the record's own keys. failure: why there is no
    further step, though this one happened.
    """

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: TokenUsage = NO_TOKENS
    cost_usd: float | None = 0.0
    model: str | None = None
    reply: str | None = None
    record: Mapping[str, Any] = field(default_factory=dict)
    failure: AgentStepError | None = None


class Agent(Protocol):
    """Works on one task. Raises AgentStepError from `next_step` where it cannot go on."""

    def next_step(self, tool_results: Sequence[ToolResult]) -> Step:
        """The next step. tool_results: of the calls of the step before, in their order; empty at first."""

    def opening(self) -> Sequence[Mapping[str, Any]]:
        """The messages that the conversation starts with."""

    def close(self) -> None:
        """Give back what it holds; called once, whatever happened."""


AgentFactory = Callable[[TaskContext], Agent]
