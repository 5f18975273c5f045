"""Leave a service alone that keeps failing, and let one call find out whether it is back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from math import inf
from typing import Final, TypeVar

from guarantee_email_agent.utils.clock import Clock
from guarantee_email_agent.utils.errors import AgentError, IntegrationError, ServiceError

FAILURES: Final = 5
OPEN_S: Final = 60.0
HEALTHY_S: Final = 600.0
"""Seconds for which an answer proves a service healthy: what fails in them may be the fault of the request."""

# One such error may be a mail's own fault; five in a row are not.
_SERVICE_ERRORS: Final = ("_timeout", "_unavailable", "_failed", "_malformed")
_Answer = TypeVar("_Answer")


def is_service_failure(error: Exception) -> bool:
    """Whether a service failed, by a time-out, say; one that refuses a single call (a bad argument) still answers."""
    return isinstance(error, IntegrationError) and (
        error.retryable or error.outage or error.code.endswith(_SERVICE_ERRORS)
    )


class CircuitOpenError(IntegrationError):
    """The service was not called, since it kept failing.

    `code` is `{name}_circuit_open`, `cause` that of the last failure. retry_in_s: seconds until the next call may go
    through; 0 while one is on its way to find out.
    """

    def __init__(self, name: str, cause: str, retry_in_s: float) -> None:
        when = f"for another {retry_in_s:.0f} s" if retry_in_s else "until the call that is on its way has answered"
        message = f"{name} failed {FAILURES} times in a row and is not asked {when}"
        super().__init__(message, f"{name}_circuit_open", outage=True)
        self.cause, self.retry_in_s = cause, retry_in_s


class CircuitBreaker:
    """Opens after FAILURES in a row, and after OPEN_S lets one call through: success closes it again.

    For one event loop; calls may overlap. The outcome of a call that began before the breaker changed its state
    does not count.
    """

    def __init__(self, name: str, clock: Clock, is_failure: Callable[[Exception], bool] = is_service_failure) -> None:
        """name: of the service, as its error codes begin. is_failure: of the service; any other error is an answer."""
        self.name = name
        self._clock = clock
        self._is_failure = is_failure
        self._failures = 0
        self._opened_at: float | None = None
        self._probing = False
        self._last_success_at = -inf
        self._cause = ""
        self._period = 0  # goes up with every opening, closing and probe

    @property
    def is_open(self) -> bool:
        """Whether the service counts as down; a probe may be due all the same."""
        return self._opened_at is not None

    async def call(self, fn: Callable[[], Awaitable[_Answer]]) -> _Answer:
        """What `fn` gives or raises. Raises CircuitOpenError without calling `fn` while the breaker is open.

        A failure that opens the breaker, or leaves it open, is an `outage`, too: the service fails whatever the
        request. So is one of a service that has given no answer for long: nothing shows that the mail is to blame.
        """
        self._admit()
        period = self._period
        try:
            answer = await fn()
        except Exception as error:
            is_failure = self._is_failure(error)
            if is_failure and isinstance(error, AgentError):
                self._cause = error.code
            self._record(period, is_failure)
            silent_s = self._clock.monotonic() - self._last_success_at
            if is_failure and (self.is_open or silent_s > HEALTHY_S) and isinstance(error, ServiceError):
                error.outage = True
            raise
        except BaseException:
            # A call that was cancelled has found out nothing: the next one may try.
            if period == self._period:
                self._probing = False
            raise
        self._record(period, is_failure=False)
        return answer

    def _admit(self) -> None:
        """Raises CircuitOpenError where a call may not go through; one that may while it is open is the probe."""
        if self._opened_at is None:
            return
        left_s = max(0.0, self._opened_at + OPEN_S - self._clock.monotonic())
        if self._probing or left_s > 0:
            raise CircuitOpenError(self.name, self._cause, left_s)
        self._change_state(self._opened_at, probing=True)

    def _record(self, period: int, is_failure: bool) -> None:
        if period != self._period:
            return
        now = self._clock.monotonic()
        if not is_failure:
            self._failures = 0
            self._last_success_at = now
            if self.is_open:
                self._change_state(opened_at=None)
            return
        self._failures += 1
        if self._failures >= FAILURES:  # so that a failed probe opens it anew
            self._change_state(opened_at=now)

    def _change_state(self, opened_at: float | None, *, probing: bool = False) -> None:
        self._opened_at = opened_at
        self._probing = probing
        self._period += 1
