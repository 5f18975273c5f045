"""How much an agent may use up on one task, and what ends its work early."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from guarantee_email_agent.llm.port import TokenUsage
from guarantee_email_agent.utils.clock import Clock


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
            return FailureReason("max_cost", f"cost ${cost_usd:.4f}, more than the {allowed} allowed")
        return None

    def out_of_steps(self) -> FailureReason:
        return FailureReason("max_iterations", f"was not done after {self.max_iterations} steps")

    def out_of_time(self) -> FailureReason:
        return FailureReason("wall_time", f"was not done after {self.wall_time_s:g} s")


INTERRUPTED = FailureReason("interrupted", "the run was interrupted", retryable=True)


class Interruption:
    """Ctrl-C, for the threads that it does not reach."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._changed = threading.Condition()
        self._working = 0

    def request(self) -> None:
        self._event.set()

    def requested(self) -> bool:
        return self._event.is_set()

    @contextmanager
    def awaited(self, by: int = 1) -> Iterator[None]:
        """Work whose end `wait` waits for."""
        self._count(by)
        try:
            yield
        finally:
            self._count(-by)

    def not_awaited(self) -> AbstractContextManager[None]:
        """For a part of that work whose end `wait` does not wait for."""
        return self.awaited(-1)

    def wait(self, timeout_s: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._working <= 0, timeout_s)

    def _count(self, by: int) -> None:
        with self._changed:
            self._working += by
            self._changed.notify_all()


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
