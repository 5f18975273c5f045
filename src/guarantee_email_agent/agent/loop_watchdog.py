"""Whether the main loop still gets round."""

from __future__ import annotations

from guarantee_email_agent.utils.clock import Clock


class LoopWatchdog:
    """The loop says before it waits for how long it means to; whoever looks sees by how much it is overdue."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due_at = clock.monotonic()

    def beat(self, wait_s: float = 0.0) -> None:
        """wait_s: seconds until the next beat, where the loop knows that nothing has to happen before."""
        self._due_at = self._clock.monotonic() + wait_s

    @property
    def overdue_s(self) -> float:
        """Seconds since the next beat was due; 0 before."""
        return max(0.0, self._clock.monotonic() - self._due_at)
