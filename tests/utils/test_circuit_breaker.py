"""When the breaker opens, what it lets through, and what closes it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest

from guarantee_email_agent.utils.circuit_breaker import CircuitBreaker, CircuitOpenError
from guarantee_email_agent.utils.clock import SkippingClock


class ServiceError(Exception):
    """The service is down."""


class ArgumentError(Exception):
    """The call is wrong."""


async def works() -> str:
    return "answer"


async def fails() -> str:
    raise ServiceError


async def refuses() -> str:
    raise ArgumentError


def tells_of_the_service(error: Exception) -> bool:
    return isinstance(error, ServiceError)


class Circuit:
    """A breaker whose clock goes only where it is told to; `asked` counts what came through."""

    def __init__(self) -> None:
        self.clock = SkippingClock()
        self.breaker = CircuitBreaker("oracle", self.clock)
        self.asked = 0

    async def call(self, fn: Callable[[], Awaitable[str]]) -> str:
        async def counted() -> str:
            self.asked += 1
            return await fn()

        return await self.breaker.call(counted, tells_of_the_service)

    async def fail(self, times: int) -> None:
        for _ in range(times):
            with pytest.raises(ServiceError):
                await self.call(fails)


def test_opens_after_five_failures_in_a_row() -> None:
    async def scene() -> None:
        circuit = Circuit()
        await circuit.fail(5)
        with pytest.raises(CircuitOpenError) as caught:
            await circuit.call(works)
        assert circuit.asked == 5
        assert caught.value.code == "oracle_circuit_open"
        assert caught.value.details["outage"] is True
        assert caught.value.details["retryable"] is False
        assert 0 < caught.value.details["retry_in_s"] <= 60

    asyncio.run(scene())


@pytest.mark.parametrize("between", [works, refuses])
def test_an_answer_between_failures_keeps_it_closed(between: Callable[[], Awaitable[str]]) -> None:
    async def scene() -> None:
        circuit = Circuit()
        await circuit.fail(4)
        with suppress(ArgumentError):
            await circuit.call(between)
        await circuit.fail(4)
        assert await circuit.call(works) == "answer"

    asyncio.run(scene())


def test_errors_that_tell_nothing_of_the_service_never_open_it() -> None:
    async def scene() -> None:
        circuit = Circuit()
        for _ in range(20):
            with pytest.raises(ArgumentError):
                await circuit.call(refuses)
        assert await circuit.call(works) == "answer"

    asyncio.run(scene())


def test_one_probe_goes_through_after_a_minute_and_closes_it() -> None:
    async def scene() -> None:
        circuit = Circuit()
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
        assert caught.value.details["retry_in_s"] == 0
        answered.set()
        assert await probe == "probe"
        assert not circuit.breaker.is_open
        await circuit.fail(4)  # what failed before counts no more
        assert await circuit.call(works) == "answer"

    asyncio.run(scene())


def test_a_failed_probe_keeps_it_open_for_another_minute() -> None:
    async def scene() -> None:
        circuit = Circuit()
        await circuit.fail(5)
        await circuit.clock.sleep(61)
        await circuit.fail(1)
        with pytest.raises(CircuitOpenError):
            await circuit.call(works)
        await circuit.clock.sleep(61)
        assert await circuit.call(works) == "answer"

    asyncio.run(scene())


def test_a_cancelled_probe_leaves_its_place_to_the_next_call() -> None:
    async def scene() -> None:
        circuit = Circuit()
        await circuit.fail(5)
        await circuit.clock.sleep(61)
        probe = asyncio.create_task(circuit.call(lambda: asyncio.sleep(60, "too late")))
        await asyncio.sleep(0)
        probe.cancel()
        with pytest.raises(asyncio.CancelledError):
            await probe
        assert await circuit.call(works) == "answer"

    asyncio.run(scene())


def test_calls_from_before_the_opening_do_not_disturb_the_probe() -> None:
    async def scene() -> None:
        circuit = Circuit()
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

    asyncio.run(scene())
