"""When the breaker opens, what it lets through, what closes it, and which errors are the service's."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest

from guarantee_email_agent.utils.circuit_breaker import CircuitBreaker, CircuitOpenError
from guarantee_email_agent.utils.clock import SkippingClock
from guarantee_email_agent.utils.errors import IntegrationError

pytestmark = pytest.mark.anyio


class ServiceError(Exception):
    """The service is down."""


class ArgumentError(Exception):
    """The call is wrong."""


async def works() -> str:
    return "answer"


def failing(error: Exception) -> Callable[[], Awaitable[str]]:
    async def fails() -> str:
        raise error

    return fails


fails, refuses = failing(ServiceError()), failing(ArgumentError())


class Circuit:
    """A breaker with its clock; `calls` counts what came through."""

    def __init__(self) -> None:
        self.clock = SkippingClock()
        self.breaker = CircuitBreaker("oracle", self.clock, lambda error: isinstance(error, ServiceError))
        self.calls = 0

    async def call(self, fn: Callable[[], Awaitable[str]]) -> str:
        async def counted() -> str:
            self.calls += 1
            return await fn()

        return await self.breaker.call(counted)

    async def fail(self, times: int) -> None:
        for _ in range(times):
            with pytest.raises(ServiceError):
                await self.call(fails)


@pytest.fixture
def circuit() -> Circuit:
    return Circuit()


@pytest.mark.parametrize("between", [works, refuses])
async def test_an_answer_between_failures_keeps_it_closed(
    circuit: Circuit, between: Callable[[], Awaitable[str]]
) -> None:
    await circuit.fail(4)
    with suppress(ArgumentError):
        await circuit.call(between)
    await circuit.fail(4)
    assert await circuit.call(works) == "answer"


async def test_one_probe_goes_through_after_a_minute_and_closes_it(circuit: Circuit) -> None:
    await circuit.fail(5)
    await circuit.clock.sleep(59)
    with pytest.raises(CircuitOpenError):
        await circuit.call(works)
    await circuit.clock.sleep(1.1)
    answered = asyncio.Event()

    async def slow() -> str:
        await answered.wait()
        return "probe"

    probe = asyncio.create_task(circuit.call(slow))
    await asyncio.sleep(0)
    with pytest.raises(CircuitOpenError) as caught:
        await circuit.call(works)
    assert caught.value.retry_in_s == 0
    answered.set()
    assert await probe == "probe"
    assert not circuit.breaker.is_open
    await circuit.fail(4)  # what failed before counts no more
    assert await circuit.call(works) == "answer"


async def test_a_cancelled_probe_leaves_its_place_to_the_next_call(circuit: Circuit) -> None:
    await circuit.fail(5)
    await circuit.clock.sleep(61)
    probe = asyncio.create_task(circuit.call(lambda: asyncio.sleep(60, "too late")))
    await asyncio.sleep(0)
    probe.cancel()
    with pytest.raises(asyncio.CancelledError):
        await probe
    assert await circuit.call(works) == "answer"


async def test_calls_from_before_the_opening_do_not_disturb_the_probe(circuit: Circuit) -> None:
    over = asyncio.Event()

    async def fails_late() -> str:
        await over.wait()
        raise ServiceError

    late = asyncio.create_task(circuit.call(fails_late))
    await asyncio.sleep(0)
    await circuit.fail(5)
    await circuit.clock.sleep(61)
    over.set()
    with pytest.raises(ServiceError):
        await late
    assert await circuit.call(works) == "answer"


def error(code: str, **flags: bool) -> IntegrationError:
    return IntegrationError("It failed", code, **flags)


@pytest.mark.parametrize(
    "failure",
    [
        error("mail_timeout", retryable=True),
        error("mail_timeout", retryable=False, uncertain=True),
        error("mail_unavailable", uncertain=True),
        error("mail_rate_limited", retryable=True),
        error("mail_auth", outage=True),
    ],
)
async def test_a_failure_of_the_service_opens_it(failure: IntegrationError) -> None:
    breaker = CircuitBreaker("mail", SkippingClock())
    for _ in range(5):
        with pytest.raises(IntegrationError) as caught:
            await breaker.call(failing(failure))
        assert caught.value is failure
    with pytest.raises(IntegrationError) as caught:
        await breaker.call(works)
    assert caught.value.code == "mail_circuit_open"
    assert failure.outage is True  # the fifth of them opened it
    assert caught.value.outage is True
    assert not caught.value.retryable


@pytest.mark.parametrize(
    ("idle_s", "expected"),
    [(0, [False, False, False, False, True]), (700, [True] * 5)],
    ids=["that has just answered", "that has not answered for long"],
)
async def test_a_failure_is_an_outage_unless_the_service_answered_lately(idle_s: float, expected: list[bool]) -> None:
    clock = SkippingClock()
    circuit = CircuitBreaker("warranty_api", clock)
    await circuit.call(works)
    await clock.sleep(idle_s)
    outages = []
    for _ in range(5):
        with pytest.raises(IntegrationError) as caught:
            await circuit.call(failing(error("warranty_api_timeout", retryable=True)))
        outages.append(caught.value.outage)
    assert outages == expected
