"""The circuit breaker of one service, with errors as the ports have them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from guarantee_email_agent.utils.circuit_breaker import FAILURES, OPEN_S, CircuitBreaker, CircuitOpenError
from guarantee_email_agent.utils.clock import Clock
from guarantee_email_agent.utils.errors import IntegrationError

_Answer = TypeVar("_Answer")


# One of the last two may be a mail's own fault; five in a row are not.
_OF_THE_SERVICE: Final = ("_timeout", "_unavailable", "_failed", "_malformed")


class ServiceCircuit:
    """Opens after so many failures in a row that tell of the service, and then fails at once for some seconds."""

    def __init__(self, name: str, clock: Clock, failures: int = FAILURES, open_s: float = OPEN_S) -> None:
        self._breaker = CircuitBreaker(name, clock, failures, open_s)

    async def call(self, fn: Callable[[], Awaitable[_Answer]]) -> _Answer:
        """What `fn` gives or raises; IntegrationError `{name}_circuit_open`, an outage, without asking.

        A failure that opens the circuit, or leaves it open, is an outage, too: the service fails whatever it is asked.
        So is one of a service that has given no answer for long: nothing shows that the mail is to blame.
        """
        try:
            return await self._breaker.call(fn, tells_of_the_service)
        except CircuitOpenError as error:
            raise IntegrationError(error.message, error.code, error.details) from None
        except IntegrationError as error:
            if self._breaker.is_doubtful and tells_of_the_service(error):
                error.details["outage"] = True
            raise


def tells_of_the_service(error: Exception) -> bool:
    """A time-out, say, but not a refusal of this one call: that shows that the service answers."""
    return isinstance(error, IntegrationError) and (
        error.retryable or error.details.get("outage") is True or error.code.endswith(_OF_THE_SERVICE)
    )
