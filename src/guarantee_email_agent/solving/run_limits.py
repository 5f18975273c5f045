"""How much an agent may use up on one task, and what ends its work early."""

from __future__ import annotations

from dataclasses import dataclass

from guarantee_email_agent.llm.port import TokenUsage
from guarantee_email_agent.utils.clock import Clock
from guarantee_email_agent.utils.parallel import Interruption
from guarantee_email_agent.utils.text import amount


@dataclass(frozen=True, slots=True)
class FailureReason:
    """Why a run failed. code: for programs. retryable: the agent is not to blame, so the task is to be repeated."""

    code: str
    message: str
    retryable: bool = False


@dataclass(frozen=True, slots=True)
class RunLimits:
    """max_iterations: steps of the agent. wall_time_s: seconds from its first step on. None: no limit."""

    max_iterations: int = 50
    wall_time_s: float = 1800.0
    max_tokens: int | None = None
    max_cost_usd: float | None = None

    def exceeded_by(self, tokens: TokenUsage, cost_usd: float | None) -> FailureReason | None:
        """The limit that tokens or cost are over, or may be."""
        if tokens.uncounted and (self.max_tokens is not None or self.max_cost_usd is not None):
            code = "max_cost" if self.max_tokens is None else "max_tokens"
            return FailureReason(code, "the model did not say how many tokens an answer took, and a limit is set")
        if self.max_tokens is not None and tokens.total > self.max_tokens:
            return FailureReason("max_tokens", f"used {tokens.total} tokens, more than the {self.max_tokens} allowed")
        if self.max_cost_usd is None:
            return None
        allowed = f"${self.max_cost_usd:g}"
        if cost_usd is None:
            return FailureReason("max_cost", f"the model has no known price, but no more than {allowed} is allowed")
        if cost_usd > self.max_cost_usd:
            return FailureReason("max_cost", f"cost ${amount(cost_usd)}, more than the {allowed} allowed")
        return None

    def out_of_steps(self) -> FailureReason:
        return FailureReason("max_iterations", f"was not done after {self.max_iterations} steps")

    def out_of_time(self) -> FailureReason:
        return FailureReason("wall_time", f"was not done after {self.wall_time_s:g} s")


INTERRUPTED = FailureReason("interrupted", "the run was interrupted", retryable=True)


class Deadline:
    """The end of the work on one task: by the clock, or by an interruption. Agents that wait poll it."""

    def __init__(self, seconds: float, clock: Clock, interruption: Interruption) -> None:
        self._clock = clock
        self._end = clock.monotonic() + seconds
        self._interruption = interruption

    def remaining_s(self) -> float:
        return max(0.0, self._end - self._clock.monotonic())

    def extend(self, seconds: float) -> None:
        """Give back time in which nobody worked."""
        self._end += seconds

    def is_over(self) -> bool:
        """Whether the time is over, or the run was interrupted."""
        return self.remaining_s() <= 0 or self._interruption.requested()
