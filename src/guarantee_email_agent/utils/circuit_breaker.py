"""Leave a service alone that keeps failing, and let one call find out whether it is back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from guarantee_email_agent.utils.clock import Clock
from guarantee_email_agent.utils.errors import AgentError

FAILURES: Final = 5
OPEN_S: Final = 60.0
WORKS_S: Final = 600.0
"""Seconds for which an answer shows that a service works: what fails in them may be the fault of what was asked."""

_Answer = TypeVar("_Answer")


class CircuitOpenError(AgentError):
    """The service was not asked, since it kept failing.

    `code` is `{name}_circuit_open`; `details` hold `outage` (true), `retryable` (false) and `retry_in_s`, the seconds
    until the next call may go through: 0 while one is on its way to find out.
    """


class CircuitBreaker:
    """Opens after so many failures in a row, and after some seconds lets one call through: success closes it again.

    For one event loop; calls may overlap. What a call that began before the breaker changed its state comes to says
    nothing about now, and does not count.
    """

    def __init__(self, name: str, clock: Clock, failures: int = FAILURES, open_s: float = OPEN_S) -> None:
        """name: of the service, in the form that error codes have. failures: in a row. open_s: seconds."""
        self._name = name
        self._clock = clock
        self._limit = failures
        self._open_s = open_s
        self._failures = 0
        self._opened_at: float | None = None
        self._probing = False
        self._worked_at: float | None = None
        self._period = 0  # goes up with every opening, closing and probe

    @property
    def is_open(self) -> bool:
        """Whether the service counts as down; a probe may be due all the same."""
        return self._opened_at is not None

    @property
    def is_doubtful(self) -> bool:
        """Whether a failure now is to be put down to the service: it is down, or has not answered for WORKS_S."""
        return self.is_open or self._worked_at is None or self._clock.monotonic() - self._worked_at > WORKS_S

    async def call(self, fn: Callable[[], Awaitable[_Answer]], counts: Callable[[Exception], bool]) -> _Answer:
        """What `fn` gives or raises.

        counts: whether an error tells of the service (a timeout, say) and not of this one call (a bad argument). An
        error that does not count shows that the service answers, as a success does.

        Raises CircuitOpenError without calling `fn` while the breaker is open.
        """
        probing = self._admitted()
        period = self._period
        try:
            answer = await fn()
        except Exception as error:
            if period == self._period:
                if counts(error):
                    self._failed(probing)
                else:
                    self._worked()
            raise
        except BaseException:
            # A call that was cancelled has found out nothing: the next one may try.
            if probing and period == self._period:
                self._probing = False
            raise
        if period == self._period:
            self._worked()
        return answer

    def _admitted(self) -> bool:
        """Whether the call is a probe. Raises CircuitOpenError where it may not go through."""
        if self._opened_at is None:
            return False
        left_s = max(0.0, self._opened_at + self._open_s - self._clock.monotonic())
        if self._probing or left_s > 0:
            when = f"for another {left_s:.0f} s" if left_s > 0 else "until the call that is on its way has answered"
            raise CircuitOpenError(
                f"{self._name} failed {self._limit} times in a row and is not asked {when}",
                f"{self._name}_circuit_open",
                {"outage": True, "retryable": False, "retry_in_s": left_s},
            )
        self._probing = True
        self._period += 1
        return True

    def _failed(self, probing: bool) -> None:
        self._failures += 1
        if probing or self._failures >= self._limit:
            self._opened_at = self._clock.monotonic()
            self._probing = False
            self._period += 1

    def _worked(self) -> None:
        self._failures = 0
        self._worked_at = self._clock.monotonic()
        if self._opened_at is not None:
            self._opened_at = None
            self._probing = False
            self._period += 1
