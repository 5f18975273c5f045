"""One limiter and many calls, in virtual time."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from math import ceil
from typing import Any

import pytest
from virtual_time import VirtualClock, run_in_virtual_time

from guarantee_email_agent.llm.rate_limit import MAX_PAUSE_S, Permit, RateLimiter, retry_after_s
from guarantee_email_agent.utils.clock import SkippingClock, counted_waits
from guarantee_email_agent.utils.errors import LLMError

CLOCK = VirtualClock()
LOOSE = {"requests_per_minute": 1_000_000}


def limiter_with(**limits: Any) -> RateLimiter:
    return RateLimiter(CLOCK, jitter=lambda: 0.0, **limits)


def times_of(scene: Callable[[], Coroutine[Any, Any, list[Permit]]]) -> list[float]:
    """Seconds from the beginning at which requests were sent."""
    return [round(permit.at - 1000.0, 2) for permit in run_in_virtual_time(scene())]


def test_a_minutes_requests_may_go_at_once_and_then_as_many_as_come_back() -> None:
    async def scene() -> list[Permit]:
        limiter = limiter_with(requests_per_minute=30)
        return await asyncio.gather(*(limiter.acquire() for _ in range(33)))

    assert times_of(scene) == [0.0] * 30 + [2.0, 4.0, 6.0]


@pytest.mark.parametrize(("asked_s", "waited_s"), [(12.0, 12.0), (31_536_000.0, MAX_PAUSE_S)])
def test_a_refusal_holds_back_everybody_for_as_long_as_the_api_asks_and_an_hour_at_most(
    asked_s: float, waited_s: float
) -> None:
    async def scene() -> list[Permit]:
        limiter = limiter_with()
        refused = await limiter.acquire()
        assert limiter.refused(refused, asked_s, over_limit=True) == asked_s
        again = await limiter.acquire(refused.number)
        limiter.unanswered()
        return [again, await limiter.acquire()]

    assert times_of(scene) == [waited_s] * 2


@pytest.mark.parametrize("is_answered", [True, False])
@pytest.mark.parametrize("is_refused", [True, False])
def test_where_nobody_tells_a_limit_one_call_goes_first_and_each_answer_lets_two_more_go(
    is_answered: bool, is_refused: bool
) -> None:
    async def scene() -> list[Permit]:
        limiter = limiter_with()
        if is_refused:
            limiter.refused(await limiter.acquire(), 10.0, over_limit=True)
        else:
            await CLOCK.sleep(10.0)
        permits: list[Permit] = []

        async def call() -> None:
            permits.append(await limiter.acquire())
            await CLOCK.sleep(1.0)
            if is_answered:
                limiter.answered()

        await asyncio.gather(*(call() for _ in range(7)))
        return permits

    assert times_of(scene) == (
        [10.0] + [11.0] * 2 + [12.0] * 3 + [12.25] if is_answered else [10.0 + 30 * n for n in range(7)]
    )


def test_a_shorter_pause_does_not_end_a_longer_one() -> None:
    async def scene() -> list[Permit]:
        limiter = limiter_with(**LOOSE)
        first, second = await limiter.acquire(), await limiter.acquire()
        limiter.refused(first, 12.0, over_limit=True)
        limiter.refused(second, 1.0, over_limit=True)
        return [await limiter.acquire()]

    assert times_of(scene) == [12.0]


async def call(limiter: RateLimiter, number: int | None = None) -> Permit:
    permit = await limiter.acquire(number)
    limiter.answered()
    return permit


def test_after_a_refusal_the_bucket_was_empty_and_fills_from_then_on() -> None:
    async def scene() -> list[Permit]:
        limiter = limiter_with(requests_per_minute=60)
        limiter.refused(await limiter.acquire(), 2.0, over_limit=True)
        return [await call(limiter) for _ in range(4)]

    assert times_of(scene) == [2.0, 2.0, 3.0, 4.0]


def test_who_was_refused_comes_first_and_who_gives_up_makes_room() -> None:
    async def scene() -> list[Permit]:
        limiter = limiter_with(requests_per_minute=60)
        refused = await limiter.acquire()
        limiter.refused(refused, 1.0, over_limit=True)
        gone, *later = [asyncio.create_task(call(limiter)) for _ in range(3)]
        await CLOCK.sleep(0.5)
        gone.cancel()
        again = await call(limiter, refused.number)
        return [again, *[await task for task in later]]

    assert times_of(scene) == [1.0, 2.0, 3.0]


def test_who_finds_the_api_overloaded_waits_alone_while_others_are_answered() -> None:
    async def scene() -> list[Permit]:
        limiter = limiter_with()
        for _ in range(20):
            await limiter.acquire()
            limiter.answered()
        refused = await limiter.acquire()
        assert limiter.refused(refused, 12.0, over_limit=False) == 12.0
        again = limiter.acquire(refused.number, not_before=CLOCK.monotonic() + 12.0)
        return await asyncio.gather(limiter.acquire(), again)

    assert times_of(scene) == [0.0, 12.0]


def test_without_a_word_the_pauses_grow_until_there_is_an_answer() -> None:
    async def scene() -> list[float]:
        limiter = limiter_with()
        pauses = []
        for _ in range(7):
            herd = [await limiter.acquire() for _ in range(5)]
            pauses.append([limiter.refused(permit, None, over_limit=True) for permit in herd][-1])
        await limiter.acquire()
        limiter.answered()
        pauses.append(limiter.refused(await limiter.acquire(), None, over_limit=True))
        return pauses

    assert run_in_virtual_time(scene()) == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 1.0]


@pytest.mark.parametrize(("over_limit", "code"), [(True, "llm_rate_limited"), (False, "llm_overloaded")])
def test_who_cannot_wait_long_is_told_at_once_and_leaves_the_queue(over_limit: bool, code: str) -> None:
    async def scene() -> tuple[LLMError, float]:
        limiter = limiter_with(max_wait_s=15.0)
        limiter.refused(await limiter.acquire(), 20.0, over_limit=over_limit)
        with pytest.raises(LLMError) as caught:
            await limiter.acquire(not_before=1020.0)
        assert limiter.held_back_s() == 0.0
        return caught.value, CLOCK.monotonic()

    error, now = run_in_virtual_time(scene())
    assert (error.code, error.retry_after_s, now) == (code, 20.0, 1000.0)
    assert error.message.startswith("The model API is not asked for another 20 s. ")


def test_once_closed_nobody_waits_but_who_need_not_wait_goes() -> None:
    async def scene() -> float:
        limiter = limiter_with(requests_per_minute=2)
        await limiter.acquire()
        limiter.close()
        await limiter.acquire()
        with pytest.raises(asyncio.CancelledError):
            await limiter.acquire()
        return CLOCK.monotonic()

    assert run_in_virtual_time(scene()) == 1000.0


def test_it_tells_how_long_the_next_one_is_held_back() -> None:
    async def scene() -> list[float]:
        limiter = limiter_with()
        limiter.refused(await limiter.acquire(), 12.0, over_limit=True)
        told = [limiter.held_back_s()]  # nobody waits
        waiting = asyncio.create_task(limiter.acquire())
        await CLOCK.sleep(2)
        told.append(limiter.held_back_s())
        await waiting
        return [*told, limiter.held_back_s()]

    assert run_in_virtual_time(scene()) == pytest.approx([0.0, 10.0, 0.0])


def test_what_is_waited_is_counted_for_each_caller_and_for_all_around_it() -> None:
    async def scene() -> list[float]:
        limiter = limiter_with()
        limiter.refused(await limiter.acquire(), 5.0, over_limit=True)

        async def call(begins_s: float) -> float:
            await CLOCK.sleep(begins_s)
            with counted_waits() as outer, counted_waits() as inner:
                await limiter.acquire()
            limiter.answered()
            assert outer.seconds == inner.seconds
            return inner.seconds

        return await asyncio.gather(call(0), call(3), call(6))

    assert run_in_virtual_time(scene()) == pytest.approx([5.0, 2.25, 0.0])  # the second goes once the first is answered


def test_threads_with_loops_of_their_own_share_one_limit() -> None:
    clock = SkippingClock()
    limiter = RateLimiter(clock, requests_per_minute=60)
    started = clock.monotonic()

    async def calls() -> None:
        for _ in range(40):
            await limiter.acquire()

    threads = [threading.Thread(target=lambda: asyncio.run(calls())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert clock.monotonic() - started >= 99  # 160 requests, of which 60 go at once


@pytest.mark.parametrize("tells", ["config", "headers"])
def test_at_least_95_percent_of_what_a_limit_allows_is_used(tells: str) -> None:
    """Of an API with a bucket of 10 s, whose answers take 0.5 to 3 s."""
    per_second, taken = 10.0, 0
    level, at = 100.0, CLOCK.monotonic()

    async def call(limiter: RateLimiter, number: int, permit: Permit) -> None:
        nonlocal level, at, taken
        level, at = min(100.0, level + (CLOCK.monotonic() - at) * per_second), CLOCK.monotonic()
        if level < 1:
            limiter.refused(permit, ceil((1 - level) / per_second), over_limit=True)
            await call(limiter, number, await limiter.acquire(permit.number))
            return
        level, taken = level - 1, taken + 1
        await CLOCK.sleep(0.5 + number * 7919 % 2500 / 1000)
        limiter.answered()

    async def scene() -> None:
        limiter = limiter_with(requests_per_minute=600 if tells == "config" else None)

        async def work(job: int) -> None:
            for number in range(1_000_000):
                await call(limiter, job * 31 + number, await limiter.acquire())

        workers = [asyncio.create_task(work(job)) for job in range(40)]
        await CLOCK.sleep(150)
        for worker in workers:
            worker.cancel()

    run_in_virtual_time(scene())
    assert taken >= 0.95 * (100 + 150 * per_second)


NOW = 1_795_000_000.0  # Wed, 18 Nov 2026 11:06:40 GMT


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({"retry-after": "12"}, 12.0),
        ({"retry-after": " 0.5 "}, 0.5),
        ({"retry-after-ms": "1500", "retry-after": "2"}, 1.5),
        ({"retry-after-ms": "soon", "retry-after": "2"}, 2.0),
        ({"retry-after": "3600"}, 3600.0),
        ({"retry-after": "9" * 400}, 31_536_000.0),
        ({"retry-after": "Wed, 18 Nov 2026 11:06:45 GMT"}, 5.0),
        ({"retry-after": "Wed, 18 Nov 2026 11:06:45 -0000"}, 5.0),
        ({"retry-after": "Wed, 18 Nov 2026 13:06:45 +0200"}, 5.0),
        ({"retry-after": "Wed, 18 Nov 2026 09:00:07 GMT", "date": "Wed, 18 Nov 2026 09:00:00 GMT"}, 7.0),
        ({"retry-after": "Wed, 18 Nov 2026 11:06:45 GMT", "date": "yesterday"}, 5.0),
    ],
)
def test_seconds_and_dates_say_how_long_to_wait(headers: dict[str, str], wait_s: float) -> None:
    assert retry_after_s(headers, lambda: NOW) == wait_s


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0",
        "-5",
        "nan",
        "inf",
        "1e9",
        "1_0",
        "soon",
        "Fri, 99 Nov 2026 11:00:00 GMT",
        "Wed, 18 Nov 2026 11:06:39 GMT",
    ],
)
def test_garbage_and_what_is_over_say_nothing(text: str) -> None:
    assert retry_after_s({"retry-after": text}, lambda: NOW) is None
