"""How long to wait before a further attempt, and calls that are repeated."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from math import inf
from typing import Final, NamedTuple, TypeVar

from guarantee_email_agent.utils.clock import Clock
from guarantee_email_agent.utils.errors import IntegrationError

Answer = TypeVar("Answer")


class Backoff(NamedTuple):
    """Exponential: seconds after the first failed attempt, the factor for each further one, and the most."""

    first_s: float
    growth: float = 2.0
    longest_s: float = inf

    def delay_s(self, attempt: int) -> float:
        """Seconds to wait after `attempt` failures in a row, at least one."""
        try:
            return min(self.first_s * float(self.growth) ** (attempt - 1), self.longest_s)
        except OverflowError:
            return self.longest_s


ATTEMPTS: Final = 3
_BACKOFF: Final = Backoff(1.0)


async def call_with_retry(call: Callable[[], Awaitable[Answer]], clock: Clock) -> Answer:
    """The call's answer, or the IntegrationError of the last of `ATTEMPTS`.

    Our own few lines, since the known libraries load for longer (57 to 87 ms) than a whole suite of scenarios runs,
    and take no clock.
    """
    for attempt in range(1, ATTEMPTS):
        try:
            return await call()
        except IntegrationError as error:
            if not error.retryable:
                raise
        await clock.sleep(_BACKOFF.delay_s(attempt))
    return await call()
