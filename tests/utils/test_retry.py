import pytest
from virtual_time import SleptClock

from guarantee_email_agent.utils.errors import IntegrationError
from guarantee_email_agent.utils.retry import Backoff, call_with_retry

pytestmark = pytest.mark.anyio


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
def clock() -> SleptClock:
    return SleptClock()


def failure(retryable: bool = True) -> IntegrationError:
    return IntegrationError("The service is away", "warranty_api_unavailable", retryable=retryable)


@pytest.mark.parametrize("slept", [[], [1.0], [1.0, 2.0]])
async def test_an_answer_comes_after_waits_of_one_and_two_seconds(slept: list[float], clock: SleptClock) -> None:
    service = Service(*(failure() for _ in slept))
    assert await call_with_retry(service, clock) == "answer"
    assert (service.calls, clock.slept) == (len(slept) + 1, slept)


@pytest.mark.parametrize(
    ("errors", "slept"),
    [
        ([failure(), failure(), failure()], [1.0, 2.0]),
        ([failure(retryable=False)], []),
        ([failure(), failure(retryable=False)], [1.0]),
    ],
    ids=["three attempts", "not retryable", "no longer retryable"],
)
async def test_the_last_error_is_raised_after_all_attempts(
    errors: list[IntegrationError], slept: list[float], clock: SleptClock
) -> None:
    service = Service(*errors)
    with pytest.raises(IntegrationError) as caught:
        await call_with_retry(service, clock)
    assert caught.value is errors[-1]
    assert service.calls == len(errors)
    assert clock.slept == slept


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
