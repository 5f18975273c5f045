"""The port to an agent that works on a task: it decides on the next step, and gets the results of its tool calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from guarantee_email_agent.llm.port import NO_TOKENS, TokenUsage
from guarantee_email_agent.solving.run_limits import Deadline, FailureReason
from guarantee_email_agent.solving.tools import Tool, ToolCall, ToolResult
from guarantee_email_agent.utils.errors import AgentError


class AgentStepError(AgentError):
    """An agent that cannot go on.

    `details["retryable"]` is true where it is not to blame (the model cannot be reached), so that the task is repeated;
    `details["lost"]` counts the answers of a model that were asked for and did not come.
    """

    @property
    def reason(self) -> FailureReason:
        return FailureReason(self.code, self.message, bool(self.details.get("retryable", False)))


@dataclass(frozen=True, slots=True)
class TaskContext:
    """What an agent gets to know at the start. sandbox: as in the record."""

    task_name: str
    instruction: str
    tools: tuple[Tool, ...]
    sandbox: Mapping[str, Any]
    deadline: Deadline


@dataclass(frozen=True, slots=True)
class Step:
    """One step of an agent: its text, and the tool calls that are to be carried out, all of them, in this order.

    usage, cost_usd: of this step; the cost is None where the model has no known price. reply: the message that follows
    where there is no call. record: what a program reports of its own run, with the record's own keys. failure: why
    there is no further step, though this one happened.
    """

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: TokenUsage = NO_TOKENS
    cost_usd: float | None = 0.0
    model: str | None = None
    reply: str | None = None
    record: Mapping[str, Any] = field(default_factory=dict)
    failure: FailureReason | None = None


class Agent(Protocol):
    """Works on one task."""

    context: TaskContext

    def next_step(self, results: Sequence[ToolResult]) -> Step:
        """The next step. results: of the calls of the step before, in their order; empty at first.

        Raises AgentStepError where there is none.
        """

    def opening_messages(self) -> Sequence[Mapping[str, Any]]:
        """The messages that the conversation starts with."""
        return [{"role": "user", "content": self.context.instruction}]

    def close(self) -> None:
        """Release its resources; called once, whatever happened."""
        return


AgentFactory = Callable[[TaskContext], Agent]
