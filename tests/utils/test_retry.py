from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from guarantee_email_agent.utils.errors import IntegrationError
from guarantee_email_agent.utils.retry import Backoff, RetryPolicy, call_with_retry


class RecordingClock:
    """Time stands still; what would have been slept is written down."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return sum(self.slept)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


class Service:
    """Fails with the given errors, one a call, then answers."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.calls = 0

    async def __call__(self) -> str:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return "answer"


@pytest.fixture
def clock() -> RecordingClock:
    return RecordingClock()


def failure(retryable: bool | None = True) -> IntegrationError:
    details = {} if retryable is None else {"retryable": retryable}
    return IntegrationError("The service is away", "warranty_api_unavailable", details)


def run(service: Callable[[], object], clock: RecordingClock, policy: RetryPolicy | None = None) -> object:
    return asyncio.run(call_with_retry(service, policy or RetryPolicy(), clock))  # type: ignore[arg-type]


def test_an_answer_comes_at_once(clock: RecordingClock) -> None:
    service = Service()

    assert run(service, clock) == "answer"
    assert (service.calls, clock.slept) == (1, [])


def test_waits_one_second_and_then_two(clock: RecordingClock) -> None:
    service = Service(failure(), failure())

    assert run(service, clock) == "answer"
    assert (service.calls, clock.slept) == (3, [1.0, 2.0])


def test_gives_up_after_three_attempts_and_says_how_many_there_were(clock: RecordingClock) -> None:
    last = failure()
    service = Service(failure(), failure(), last)

    with pytest.raises(IntegrationError) as caught:
        run(service, clock)

    assert caught.value is last
    assert caught.value.details["attempts"] == 3
    assert (service.calls, clock.slept) == (3, [1.0, 2.0])


@pytest.mark.parametrize("retryable", [False, None])
def test_does_not_repeat_what_no_retry_can_heal(retryable: bool | None, clock: RecordingClock) -> None:
    service = Service(failure(retryable))

    with pytest.raises(IntegrationError) as caught:
        run(service, clock)

    assert caught.value.details["attempts"] == 1
    assert (service.calls, clock.slept) == (1, [])


def test_stops_as_soon_as_a_failure_cannot_heal(clock: RecordingClock) -> None:
    service = Service(failure(), failure(retryable=False))

    with pytest.raises(IntegrationError) as caught:
        run(service, clock)

    assert caught.value.details["attempts"] == 2
    assert clock.slept == [1.0]


def test_lets_any_other_error_through_unchanged(clock: RecordingClock) -> None:
    service = Service(KeyError("bug"))

    with pytest.raises(KeyError):
        run(service, clock)
    assert service.calls == 1


def test_a_policy_sets_attempts_and_delays(clock: RecordingClock) -> None:
    service = Service(*[failure() for _ in range(5)])

    with pytest.raises(IntegrationError):
        run(service, clock, RetryPolicy(attempts=5, backoff=Backoff(0.5)))

    assert clock.slept == [0.5, 1.0, 2.0, 4.0]


@pytest.mark.parametrize(
    ("backoff", "expected"),
    [
        (Backoff(0.5, longest_s=8.0), [0.5, 1.0, 2.0, 4.0, 8.0, 8.0]),
        (Backoff(300.0, growth=12.0, longest_s=3600.0), [300.0, 3600.0, 3600.0]),
        (Backoff(0.25, growth=1.5, longest_s=2.0), [0.25, 0.375, 0.5625]),
    ],
)
def test_delays_grow_up_to_the_longest(backoff: Backoff, expected: list[float]) -> None:
    assert [backoff.delay_s(attempt) for attempt in range(1, len(expected) + 1)] == expected
    assert backoff.delay_s(100_000) == backoff.longest_s
