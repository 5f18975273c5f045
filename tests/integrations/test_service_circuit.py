"""Which errors open a service's circuit, and what a call gets while it is open."""

from __future__ import annotations

import asyncio

import pytest

from guarantee_email_agent.integrations.service_circuit import ServiceCircuit, tells_of_the_service
from guarantee_email_agent.utils.clock import SkippingClock
from guarantee_email_agent.utils.errors import IntegrationError


def error(code: str, **details: bool) -> IntegrationError:
    return IntegrationError("It failed", code, details)


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
def test_what_tells_of_the_service_opens_it(failure: IntegrationError) -> None:
    async def fails() -> None:
        raise failure

    async def scene() -> None:
        circuit = ServiceCircuit("mail", SkippingClock())
        for _ in range(5):
            with pytest.raises(IntegrationError) as caught:
                await circuit.call(fails)
            assert caught.value is failure
        with pytest.raises(IntegrationError) as caught:
            await circuit.call(fails)
        assert caught.value.code == "mail_circuit_open"
        assert failure.details["outage"] is True  # the fifth of them opened it
        assert caught.value.details["outage"] is True
        assert not caught.value.retryable

    asyncio.run(scene())


@pytest.mark.parametrize(
    "failure", [error("mail_not_found"), error("mail_rejected"), error("mail_invalid_argument"), ValueError("bug")]
)
def test_what_tells_of_one_call_does_not(failure: Exception) -> None:
    assert not tells_of_the_service(failure)


@pytest.mark.parametrize(
    ("idle_s", "expected"),
    [(0, [False, False, False, False, True]), (700, [True] * 5)],
    ids=["that has just answered", "that has not answered for long"],
)
def test_a_failure_of_a_service_is_an_outage_or_perhaps_not(idle_s: float, expected: list[bool]) -> None:
    async def scene() -> None:
        clock = SkippingClock()
        circuit = ServiceCircuit("warranty_api", clock)

        async def works() -> None:
            return

        await circuit.call(works)
        await clock.sleep(idle_s)
        outages = []
        for _ in range(5):
            failure = error("warranty_api_timeout", retryable=True)

            async def fails(failure: IntegrationError = failure) -> None:
                raise failure

            with pytest.raises(IntegrationError):
                await circuit.call(fails)
            outages.append(failure.details.get("outage", False))
        assert outages == expected

    asyncio.run(scene())
