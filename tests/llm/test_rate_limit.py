"""One limiter and many calls, in virtual time."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from math import ceil
from random import Random
from typing import Any

import pytest
from virtual_time import VirtualClock, run_in_virtual_time

from guarantee_email_agent.llm.port import NO_TOKENS, TokenUsage
from guarantee_email_agent.llm.rate_limit import (
    MAX_PAUSE_S,
    Permit,
    RateLimiter,
    ReportedLimit,
    reported_limits,
    retry_after_s,
)
from guarantee_email_agent.utils.clock import SkippingClock, counted_waits
from guarantee_email_agent.utils.errors import LLMError

CLOCK = VirtualClock()
LOOSE = {"tokens_per_minute": 1_000_000_000}
Headers = Mapping[str, str]


def limit_headers(kind: str, limit: int, remaining: int | None = None) -> dict[str, str]:
    name = f"anthropic-ratelimit-{kind}"
    return {f"{name}-limit": f"{limit}"} | ({} if remaining is None else {f"{name}-remaining": f"{remaining}"})


def limiter_with(**limits: Any) -> RateLimiter:
    return RateLimiter(CLOCK, jitter=lambda: 0.0, **limits)


async def send(limiter: RateLimiter, characters: int = 100, number: int | None = None) -> Permit:
    return await limiter.acquire(characters, 1024, number)


def times_of(scene: Callable[[], Coroutine[Any, Any, list[Permit]]]) -> list[float]:
    """Seconds from the beginning at which requests were sent."""
    return [round(permit.at - 1000.0, 2) for permit in run_in_virtual_time(scene())]


def test_a_minutes_requests_may_go_at_once_and_then_as_many_as_come_back() -> None:
    async def scene() -> list[Permit]:
        limiter = limiter_with(requests_per_minute=30)
        return await asyncio.gather(*(send(limiter) for _ in range(33)))

    assert times_of(scene) == [0.0] * 30 + [2.0, 4.0, 6.0]


def test_tokens_are_counted_as_estimated_and_then_as_they_were() -> None:
    async def scene() -> list[Permit]:
        limiter = limiter_with(tokens_per_minute=6000)
        first = await send(limiter, 10_000)  # thought to take 3,000 and 256
        limiter.answered(first, {}, TokenUsage(input_tokens=5000, output_tokens=400))  # 600 are left
        second = await send(limiter, 2000)  # now known to take 1,000 and 400
        limiter.answered(second, {}, NO_TOKENS)  # counts nothing: the estimate holds
        return [first, second, await send(limiter, 2000)]

    assert times_of(scene) == [0.0, 8.0, 22.0]


def test_what_the_prompt_cache_gave_does_not_count() -> None:
    async def scene() -> list[Permit]:
        limiter = limiter_with(tokens_per_minute=6000)
        first = await send(limiter, 10_000)
        usage = TokenUsage(1000, 0, cache_read_input_tokens=50_000, cache_creation_input_tokens=500)
        limiter.answered(first, {}, usage)
        return [first, await send(limiter, 30_000)]  # 4,500 are left, and as many are needed

    assert times_of(scene) == [0.0, 0.0]


def test_a_request_larger_than_a_minutes_tokens_goes_when_nothing_was_used_for_a_minute() -> None:
    async def scene() -> list[Permit]:
        limiter = limiter_with(tokens_per_minute=600)
        return [await send(limiter, 10_000), await send(limiter, 100)]

    first, second = times_of(scene)
    assert first == 0.0
    assert second > 60


def test_limits_are_learnt_from_the_first_answer_with_what_was_sent_meanwhile() -> None:
    async def scene() -> list[Permit]:
        limiter = limiter_with(**LOOSE)
        first, _, third = [await send(limiter) for _ in range(3)]
        limiter.answered(first, limit_headers("requests", 60, 3), NO_TOKENS)  # one is left after the other two
        assert limiter.limits() == {"requests": 60, "tokens": LOOSE["tokens_per_minute"]}
        return [third, await send(limiter), await send(limiter), await send(limiter)]

    assert times_of(scene) == [0.0, 0.0, 1.0, 2.0]


def test_a_limit_without_what_is_left_began_full() -> None:
    async def scene() -> list[Permit]:
        limiter = limiter_with(**LOOSE)
        permits = [await send(limiter) for _ in range(59)]
        limiter.answered(permits[-1], limit_headers("requests", 60), NO_TOKENS)
        return [await send(limiter), await send(limiter)]

    assert times_of(scene) == [0.0, 1.0]


def test_what_an_answer_says_is_left_is_old_and_slows_nothing() -> None:
    async def scene() -> list[Permit]:
        limiter = limiter_with(requests_per_minute=60)
        permits = [await send(limiter) for _ in range(10)]
        for permit in permits:
            limiter.answered(permit, limit_headers("requests", 60, 0), NO_TOKENS)
        return [await send(limiter)]

    assert times_of(scene) == [0.0]


@pytest.mark.parametrize(("configured", "reported", "holds"), [(30, 60, 30), (60, 30, 30)])
def test_the_lower_of_configured_and_reported_limit_holds(configured: int, reported: int, holds: int) -> None:
    async def scene() -> Mapping[Any, float]:
        limiter = limiter_with(requests_per_minute=configured)
        limiter.answered(await send(limiter), limit_headers("requests", reported, 9), NO_TOKENS)
        return limiter.limits()

    assert run_in_virtual_time(scene()) == {"requests": holds}


def test_a_limit_that_changes_holds_from_then_on_whatever_older_answers_say() -> None:
    async def scene() -> list[Permit]:
        limiter = limiter_with(**LOOSE)
        old, new = await send(limiter), await send(limiter)
        limiter.answered(old, limit_headers("requests", 60, 60), NO_TOKENS)
        await CLOCK.sleep(1)
        later = await send(limiter)
        limiter.answered(later, limit_headers("requests", 2, 1), NO_TOKENS)
        limiter.answered(new, limit_headers("requests", 60, 60), NO_TOKENS)
        return [await send(limiter) for _ in range(3)]

    assert times_of(scene) == [1.0, 1.0, 31.0]


def test_a_refusal_holds_back_everybody_for_as_long_as_the_api_asks() -> None:
    async def scene() -> list[Permit]:
        limiter = limiter_with()
        refused = await send(limiter)
        assert limiter.refused(refused, {}, 12.0, over_limit=True) == 12.0
        again = await send(limiter, number=refused.number)
        limiter.unanswered()
        return [again, await send(limiter)]

    assert times_of(scene) == [12.0, 12.0]


@pytest.mark.parametrize("is_answered", [True, False])
@pytest.mark.parametrize("is_refused", [True, False])
def test_where_nobody_tells_a_limit_one_call_goes_first_and_each_answer_lets_two_more_go(
    is_answered: bool, is_refused: bool
) -> None:
    async def scene() -> list[Permit]:
        limiter = limiter_with()
        if is_refused:
            limiter.refused(await send(limiter), {}, 10.0, over_limit=True)
        else:
            await CLOCK.sleep(10.0)
        permits: list[Permit] = []

        async def call() -> None:
            permits.append(permit := await send(limiter))
            await CLOCK.sleep(1.0)
            if is_answered:
                limiter.answered(permit, {}, NO_TOKENS)

        await asyncio.gather(*(call() for _ in range(7)))
        return permits

    assert times_of(scene) == (
        [10.0] + [11.0] * 2 + [12.0] * 3 + [12.25] if is_answered else [10.0 + 30 * n for n in range(7)]
    )


def test_a_shorter_pause_does_not_end_a_longer_one() -> None:
    async def scene() -> list[Permit]:
        limiter = limiter_with(**LOOSE)
        first, second = await send(limiter), await send(limiter)
        limiter.refused(first, {}, 12.0, over_limit=True)
        limiter.refused(second, {}, 1.0, over_limit=True)
        return [await send(limiter)]

    assert times_of(scene) == [12.0]


def test_after_a_refusal_the_bucket_was_empty_and_fills_from_then_on() -> None:
    async def scene() -> list[Permit]:
        limiter = limiter_with(requests_per_minute=60)
        refused = await send(limiter)
        limiter.refused(refused, {}, 2.0, over_limit=True)
        return await asyncio.gather(*(send(limiter) for _ in range(4)))

    assert times_of(scene) == [2.0, 2.0, 3.0, 4.0]


def test_only_the_bucket_that_refused_was_empty() -> None:
    async def scene() -> list[Permit]:
        limiter = limiter_with(requests_per_minute=60, tokens_per_minute=60_000)
        refused = await send(limiter)
        headers = limit_headers("requests", 60, 0) | limit_headers("tokens", 60_000, 50_000)
        limiter.refused(refused, headers, 1.0, over_limit=True)
        return [await send(limiter, 100_000)]

    assert times_of(scene) == [1.0]


def test_who_finds_the_api_overloaded_waits_alone_while_others_are_answered() -> None:
    async def scene() -> list[Permit]:
        limiter = limiter_with()
        for _ in range(20):
            limiter.answered(await send(limiter), {}, NO_TOKENS)
        refused = await send(limiter)
        assert limiter.refused(refused, {}, 12.0, over_limit=False) == 12.0
        again = limiter.acquire(100, 1024, refused.number, not_before=CLOCK.monotonic() + 12.0)
        return await asyncio.gather(send(limiter), again)

    assert times_of(scene) == [0.0, 12.0]


def test_once_more_than_a_few_find_the_api_overloaded_nobody_asks() -> None:
    async def scene() -> list[Permit]:
        limiter = limiter_with()
        for _ in range(20):
            limiter.answered(await send(limiter), {}, NO_TOKENS)
        for _ in range(6):
            limiter.refused(await send(limiter), {}, 12.0, over_limit=False)
        return [await send(limiter)]

    assert times_of(scene) == [12.0]


def test_answers_of_a_minute_ago_say_nothing_of_an_api_that_is_overloaded_now() -> None:
    async def scene() -> list[Permit]:
        limiter = limiter_with()
        for _ in range(20):
            limiter.answered(await send(limiter), {}, NO_TOKENS)
        await CLOCK.sleep(60)
        limiter.refused(await send(limiter), {}, 12.0, over_limit=False)
        return [await send(limiter)]

    assert times_of(scene) == [72.0]


def test_an_overloaded_api_says_nothing_of_limits() -> None:
    async def scene() -> list[Permit]:
        limiter = limiter_with(requests_per_minute=60)
        refused = await send(limiter)
        limiter.refused(refused, limit_headers("requests", 1, 0), 0.5, over_limit=False)
        return await asyncio.gather(*(send(limiter) for _ in range(60)))  # it took nothing

    assert times_of(scene) == [0.5] * 60


def test_who_was_refused_comes_first() -> None:
    async def scene() -> list[Permit]:
        limiter = limiter_with(requests_per_minute=60)
        refused = await send(limiter)
        limiter.refused(refused, {}, 1.0, over_limit=True)
        later = [asyncio.create_task(send(limiter)) for _ in range(3)]
        await CLOCK.sleep(0.5)
        again = await send(limiter, number=refused.number)
        return [again, *[await task for task in later]]

    assert times_of(scene) == [1.0, 2.0, 3.0, 4.0]


def test_without_a_word_the_pauses_grow_until_there_is_an_answer() -> None:
    async def scene() -> list[float]:
        limiter = limiter_with()
        pauses = []
        for _ in range(7):
            herd = [await send(limiter) for _ in range(5)]
            pauses.append([limiter.refused(permit, {}, None, over_limit=True) for permit in herd][-1])
        limiter.answered(await send(limiter), {}, NO_TOKENS)
        pauses.append(limiter.refused(await send(limiter), {}, None, over_limit=True))
        return pauses

    assert run_in_virtual_time(scene()) == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 1.0]


def test_no_answer_stops_everything_for_more_than_an_hour() -> None:
    async def scene() -> list[Permit]:
        limiter = limiter_with()
        assert limiter.refused(await send(limiter), {}, 31_536_000.0, over_limit=True) == 31_536_000.0
        return [await send(limiter)]

    assert times_of(scene) == [MAX_PAUSE_S]


@pytest.mark.parametrize(("over_limit", "code"), [(True, "llm_rate_limited"), (False, "llm_overloaded")])
def test_who_cannot_wait_long_is_told_at_once_and_leaves_the_queue(over_limit: bool, code: str) -> None:
    async def scene() -> tuple[LLMError, float]:
        limiter = limiter_with(max_wait_s=15.0)
        limiter.refused(await send(limiter), {}, 20.0, over_limit=over_limit)
        with pytest.raises(LLMError) as caught:
            await send(limiter)
        assert limiter.held_back_s() == 0.0
        return caught.value, CLOCK.monotonic()

    error, now = run_in_virtual_time(scene())
    assert (error.code, error.retry_after_s, now) == (code, 20.0, 1000.0)
    assert error.message.startswith("The model API is not asked for another 20 s. ")


def test_a_turn_that_comes_in_time_is_waited_for() -> None:
    async def scene() -> list[Permit]:
        limiter = limiter_with(requests_per_minute=6, max_wait_s=15.0)
        return [await send(limiter) for _ in range(8)]

    assert times_of(scene) == [0.0] * 6 + [10.0, 20.0]


def test_once_closed_nobody_waits_but_who_need_not_wait_goes() -> None:
    async def scene() -> float:
        limiter = limiter_with(requests_per_minute=2)
        await send(limiter)
        limiter.close()
        await send(limiter)
        with pytest.raises(asyncio.CancelledError):
            await send(limiter)
        return CLOCK.monotonic()

    assert run_in_virtual_time(scene()) == 1000.0


def test_closing_ends_the_waiting_of_those_who_do() -> None:
    async def scene() -> float:
        limiter = limiter_with()
        limiter.refused(await send(limiter), {}, 300.0, over_limit=True)
        waiting = [asyncio.create_task(send(limiter)) for _ in range(3)]
        await CLOCK.sleep(1)
        limiter.close()
        await asyncio.wait(waiting)
        assert all(task.cancelled() for task in waiting)
        return CLOCK.monotonic()

    assert run_in_virtual_time(scene()) < 1002


def test_one_who_gives_up_makes_room_for_those_behind() -> None:
    async def scene() -> list[Permit]:
        limiter = limiter_with(tokens_per_minute=60_000)
        first = await send(limiter, 200_000)
        large = asyncio.create_task(send(limiter, 100_000))
        await asyncio.sleep(0)
        small = asyncio.create_task(send(limiter, 100))
        await CLOCK.sleep(1)
        large.cancel()
        return [first, await small]

    first, small = times_of(scene)
    assert first == 0.0
    assert 1.0 <= small < 2.0


def test_it_tells_how_long_the_next_one_is_held_back() -> None:
    async def scene() -> list[float]:
        limiter = limiter_with()
        limiter.refused(await send(limiter), {}, 12.0, over_limit=True)
        told = [limiter.held_back_s()]  # nobody waits
        waiting = asyncio.create_task(send(limiter))
        await CLOCK.sleep(2)
        told.append(limiter.held_back_s())
        await waiting
        return [*told, limiter.held_back_s()]

    assert run_in_virtual_time(scene()) == pytest.approx([0.0, 10.0, 0.0])


def test_what_is_waited_is_counted_for_each_caller_and_for_all_around_it() -> None:
    async def scene() -> list[float]:
        limiter = limiter_with()
        limiter.refused(await send(limiter), {}, 5.0, over_limit=True)

        async def call(begins_s: float) -> float:
            await CLOCK.sleep(begins_s)
            with counted_waits() as outer, counted_waits() as inner:
                limiter.answered(await send(limiter), {}, NO_TOKENS)
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
            await limiter.acquire(100, 100)

    threads = [threading.Thread(target=lambda: asyncio.run(calls())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert clock.monotonic() - started >= 99  # 160 requests, of which 60 go at once


# Against an API in virtual time --------------------------------------------------------------------------------------


@dataclass
class SimulatedApi:
    """Token buckets of `burst_s` seconds; answers take 0.5 to 3 s, and tell what was left when they were asked for."""

    per_minute: float
    burst_s: float = 10.0
    tells_limit: bool = False
    tells_wait: bool = True
    overloaded: float = 0.0
    refuses_after_s: float = 0.0
    random: Random = field(default_factory=lambda: Random(7))
    overloads: int = 0
    level: float = field(init=False)
    at: float = 1000.0
    granted: float = field(init=False)
    taken: int = 0
    refused: int = 0

    def __post_init__(self) -> None:
        self.level = self.granted = self.per_minute * self.burst_s / 60

    def refill(self) -> None:
        new = (CLOCK.monotonic() - self.at) * self.per_minute / 60
        self.at = CLOCK.monotonic()
        self.level = min(self.per_minute * self.burst_s / 60, self.level + new)
        self.granted += new

    def headers(self) -> Headers:
        return limit_headers("requests", round(self.per_minute), int(self.level)) if self.tells_limit else {}

    async def call(self, limiter: RateLimiter, number: int) -> None:
        permit = await send(limiter)
        while True:
            if self.refuses_after_s:
                await CLOCK.sleep(self.refuses_after_s)
            self.refill()
            if self.random.random() < self.overloaded:
                self.overloads += 1
                pause_s = limiter.refused(permit, {}, 1.0, over_limit=False)
                again_at = CLOCK.monotonic() + pause_s
                permit = await limiter.acquire(100, 1024, permit.number, not_before=again_at)
                continue
            if self.level >= 1:
                break
            self.refused += 1
            wait_s = ceil((1 - self.level) * 60 / self.per_minute) if self.tells_wait else None
            limiter.refused(permit, self.headers(), wait_s, over_limit=True)
            permit = await send(limiter, number=permit.number)
        self.level -= 1
        self.taken += 1
        headers = self.headers()
        await CLOCK.sleep(0.5 + number * 7919 % 2500 / 1000)
        limiter.answered(permit, headers, NO_TOKENS)


def utilisation(api: SimulatedApi, limiter: RateLimiter, jobs: int = 40, seconds: float = 150.0) -> float:
    async def scene() -> float:
        async def work(job: int) -> None:
            for number in range(1_000_000):
                await api.call(limiter, job * 31 + number)

        workers = [asyncio.create_task(work(job)) for job in range(jobs)]
        await CLOCK.sleep(seconds)
        api.refill()
        for worker in workers:
            worker.cancel()
        return api.taken / api.granted

    return run_in_virtual_time(scene())


@pytest.mark.parametrize("burst_s", [3.0, 10.0, 60.0])
@pytest.mark.parametrize("source", ["config", "headers", "retry-after"])
def test_at_least_95_percent_of_what_the_limits_allow_is_used(source: str, burst_s: float) -> None:
    api = SimulatedApi(600, burst_s, tells_limit=source == "headers")
    limiter = limiter_with(requests_per_minute=600 if source == "config" else None)
    assert utilisation(api, limiter) >= 0.95
    assert api.refused < (0.2 if source == "retry-after" else 0.03) * api.taken


@pytest.mark.parametrize("tells_wait", [True, False])
@pytest.mark.parametrize(("per_minute", "burst_s"), [(20, 10.0), (60, 10.0), (60, 1.0), (300, 1.0), (600, 3.0)])
def test_eighty_answers_cost_few_refusals_where_nobody_tells_the_limit(
    per_minute: int, burst_s: float, tells_wait: bool
) -> None:
    async def scene() -> None:
        api = SimulatedApi(per_minute, burst_s, tells_wait=tells_wait, refuses_after_s=0.2)
        limiter = limiter_with()
        await asyncio.gather(*(api.call(limiter, number) for number in range(80)))
        assert (api.taken, api.refused < 15) == (80, True)

    run_in_virtual_time(scene())


def test_a_pause_is_longer_by_chance_than_the_api_asks_for() -> None:
    async def scene() -> list[Permit]:
        limiter = RateLimiter(CLOCK, jitter=lambda: 0.5, **LOOSE)
        assert limiter.refused(await send(limiter), {}, 10.0, over_limit=True) == 10.0  # what it asks for
        return [await send(limiter)]

    assert times_of(scene) == [10.5]


def test_also_where_one_call_in_twenty_finds_the_api_overloaded() -> None:
    api = SimulatedApi(600, tells_limit=True, overloaded=0.05)
    assert utilisation(api, limiter_with()) >= 0.95
    assert api.overloads > 50


def test_an_api_that_answers_nobody_is_asked_by_no_more_than_the_callers_there_are_each_second() -> None:
    api = SimulatedApi(600, tells_limit=True, overloaded=1.0)
    utilisation(api, limiter_with(), jobs=5, seconds=30)
    assert api.overloads <= 5 * 31


def test_also_where_the_configured_limit_is_twice_the_real_one() -> None:
    api = SimulatedApi(300)
    assert utilisation(api, limiter_with(requests_per_minute=600)) >= 0.95


def test_also_where_refusals_do_not_say_how_long_to_wait() -> None:
    assert utilisation(SimulatedApi(600, tells_wait=False), limiter_with()) >= 0.95


NOW = 1_795_000_000.0  # Wed, 18 Nov 2026 11:06:40 GMT


def test_each_limit_comes_with_what_is_left_of_it() -> None:
    headers = {
        "anthropic-ratelimit-requests-limit": "50",
        "anthropic-ratelimit-requests-remaining": "49",
        "anthropic-ratelimit-requests-reset": "2026-11-18T11:07:00Z",
        "anthropic-ratelimit-input-tokens-limit": "30000",
        "anthropic-ratelimit-output-tokens-limit": "8000",
        "anthropic-ratelimit-output-tokens-remaining": "0",
    }
    assert list(reported_limits(headers)) == [
        ReportedLimit("requests", 50, 49),
        ReportedLimit("input-tokens", 30_000, None),
        ReportedLimit("output-tokens", 8_000, 0),
    ]


@pytest.mark.parametrize("text", ["", "0", "-3", "1e3", "nan", "lots", "9" * 40, "5.5", "٣"])
def test_what_is_no_count_is_no_limit(text: str) -> None:
    assert list(reported_limits({"anthropic-ratelimit-requests-limit": text})) == []


@pytest.mark.parametrize("text", ["", "-1", "many"])
def test_what_is_no_count_does_not_say_what_is_left(text: str) -> None:
    headers = {"anthropic-ratelimit-tokens-limit": "7", "anthropic-ratelimit-tokens-remaining": text}
    assert list(reported_limits(headers)) == [ReportedLimit("tokens", 7, None)]


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
