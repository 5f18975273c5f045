"""How many requests and tokens a minute a model API allows: one limiter for all calls of a run.

The API has token buckets that refill all the time, so here are the same. What it says is left of them is as old as the
answer that says so: calls that were begun meanwhile are not in it. So an answer tells how large a bucket is, and its
level only when it is made; after that only a refusal corrects the level, since a bucket is known to be empty then.

Where nothing is known of the limits, one call goes first, at the start as after a refusal, and each answer lets two
more go: all at once would mostly be refused.

An API that is overloaded (HTTP 529) refuses some requests and answers others: only those wait that were refused.
"""

from __future__ import annotations

import asyncio
import logging
import re
import threading
import time
from bisect import insort
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from itertools import count
from math import ceil, inf
from random import random
from typing import Final, Literal, NamedTuple

from guarantee_email_agent.config.settings import Llm
from guarantee_email_agent.llm.port import TokenUsage
from guarantee_email_agent.utils.clock import Clock, count_wait
from guarantee_email_agent.utils.errors import LLMError
from guarantee_email_agent.utils.retry import Backoff

logger = logging.getLogger(__name__)

MAX_PAUSE_S: Final = 3600.0
"""The longest pause that one answer can cause, whatever it asks for: then one call finds out what holds now."""

RECHECK_S: Final = 0.25
"""How soon one who waits notices that it need not, or is not to, wait any longer."""

_UNANSWERED_S: Final = 30.0  # after which a call that was released alone is no longer waited for
_BACKOFF: Final = Backoff(1.0, longest_s=30.0)
_TOKENS_PER_CHARACTER: Final = 0.3
_USUAL_OUTPUT: Final = 256
JITTER_SHARE: Final = 0.1  # of a pause, by which several processes part
_NOTHING_S: Final = 1e-6  # less than a clock tells


class Cost(NamedTuple):
    """What one call takes of the limits. input: tokens without those that the prompt cache gave, which do not count."""

    requests: float = 0.0
    input: float = 0.0
    output: float = 0.0

    def of(self, kind: LimitKind) -> float:
        match kind:
            case "requests":
                return self.requests
            case "tokens":
                return self.input + self.output
            case "input-tokens":
                return self.input
            case "output-tokens":
                return self.output

    def plus(self, other: Cost, factor: int = 1) -> Cost:
        return Cost(*(mine + factor * theirs for mine, theirs in zip(self, other, strict=True)))


@dataclass(frozen=True, slots=True)
class Permit:
    """Leave to send one request. number: its place in the queue. sent: by all calls until then, this one included."""

    number: int
    cost: Cost
    characters: int
    at: float
    sent: Cost


@dataclass(slots=True)
class _Bucket:
    """Holds at most a minute's worth. The level falls below zero where a call takes more than was thought."""

    per_minute: float
    level: float
    at: float

    def refill(self, now: float) -> None:
        self.level = min(self.per_minute, self.level + (now - self.at) * self.per_minute / 60)
        self.at = now

    def wait_s(self, ahead: float, own: float) -> float:
        """Seconds until there is enough for those ahead in the queue and for the call itself; a full one always is."""
        return (ahead + min(own, self.per_minute) - self.level) * 60 / self.per_minute


class RateLimiter:
    """Calls wait here for their turn, first come, first served. For any number of event loops and threads."""

    def __init__(
        self,
        clock: Clock,
        *,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        max_wait_s: float = inf,
        jitter: Callable[[], float] = random,
    ) -> None:
        """Limits that are None are learnt from the API's headers, and the lower one holds where both are known.

        tokens_per_minute: input and output. max_wait_s: the longest that a call waits for its turn. jitter: from 0 to
        1, by how much a pause is longer than the API asks for.
        """
        self.clock = clock
        self._jitter = jitter
        self._max_wait_s = max_wait_s
        given: dict[LimitKind, float | None] = {"requests": requests_per_minute, "tokens": tokens_per_minute}
        self._configured = {kind: limit for kind, limit in given.items() if limit is not None}
        now = clock.monotonic()
        self._buckets = {kind: _Bucket(limit, limit, now) for kind, limit in self._configured.items()}
        self._lock = threading.Lock()
        self._numbers = count()
        self._queue: list[tuple[int, Cost]] = []
        self._closed = False
        self.reported: dict[LimitKind, int] = {}
        """The limits that the API has told, a minute."""
        self._paused_until = self._learnt_at = -inf
        self._refusals = 0
        self._releasable, self._released_at = inf if self._buckets else 1, -inf
        self._sent, self._answered = Cost(), Cost()
        self._answered_characters = 0

    @classmethod
    def of(cls, llm: Llm, clock: Clock, *, max_wait_s: float = inf) -> RateLimiter:
        """With the limits of a configuration."""
        return cls(clock, requests_per_minute=llm.requests_per_minute, max_wait_s=max_wait_s)

    async def acquire(
        self, characters: int, max_tokens: int, number: int | None = None, *, not_before: float = -inf
    ) -> Permit:
        """Wait until one more request may be sent.

        characters, max_tokens: of the request and of its answer. number: of the permit with which the same request was
        refused, which keeps its place. not_before: of the clock's monotonic seconds, for this one alone.

        Raises LLMError where that takes too long, with the code that the API's own refusal would have
        (`llm_rate_limited`, `llm_overloaded`), and CancelledError where nobody is to wait any more.
        """
        place = next(self._numbers) if number is None else number
        entry = (place, self._estimate(characters, max_tokens))
        waited_s = 0.0
        with self._lock:
            insort(self._queue, entry)
        try:
            while True:
                with self._lock:
                    wait_s = max(self._wait_s(entry), not_before - self.clock.monotonic())
                    if wait_s <= _NOTHING_S:
                        return self._take(entry, characters)
                    if self._closed:
                        raise asyncio.CancelledError
                if waited_s + wait_s > self._max_wait_s:
                    raise self._held_back_error(wait_s, not_before)
                before = self.clock.monotonic()
                try:
                    # Whoever is ahead may give up, and what an answer took becomes known.
                    await self.clock.sleep(min(wait_s, RECHECK_S))
                finally:
                    slept_s = self.clock.monotonic() - before
                    waited_s += slept_s
                    count_wait(slept_s)
        finally:
            with self._lock:
                if entry in self._queue:
                    self._queue.remove(entry)

    def answered(self, permit: Permit, headers: Mapping[str, str], usage: TokenUsage) -> None:
        """A call is over: what it took in truth, and what the API says of its limits."""
        with self._lock:
            now = self.clock.monotonic()
            if usage.total:
                taken = Cost(1, usage.input_tokens + usage.cache_creation_input_tokens, usage.output_tokens)
                self._change_levels(now, permit.cost.plus(taken, -1))
                self._answered = self._answered.plus(taken)
                self._answered_characters += permit.characters
            self._refusals = 0
            self._releasable += 2
            self._learn(permit, headers, now)
            if self._buckets:
                self._releasable = inf

    def unanswered(self) -> None:
        """A call ended without a word of the API: another one finds out in its place."""
        with self._lock:
            self._releasable = max(self._releasable, 1)

    def refused(
        self, permit: Permit, headers: Mapping[str, str], retry_after_s: float | None, *, over_limit: bool
    ) -> float:
        """The API refused a call for now. The seconds of the pause that the call is to make, as the API asks for it.

        Where it was over a limit (HTTP 429), nobody sends anything meanwhile. retry_after_s: None where it does not
        say.
        """
        with self._lock:
            now = self.clock.monotonic()
            self._change_levels(now, permit.cost)
            self._releasable = max(self._releasable, 1)
            if permit.at >= self._paused_until:  # else it had been sent before the pause that holds already
                self._refusals += 1
            asked_s = _BACKOFF.delay_s(max(1, self._refusals)) if retry_after_s is None else retry_after_s
            if over_limit:
                self._learn(permit, headers, now)
                self._empty_buckets(permit, headers, now)
                self._releasable = inf if self._buckets else 1
                pause_s = asked_s * (1 + JITTER_SHARE * self._jitter())
                if now + pause_s > self._paused_until:
                    logger.info("The model API refuses requests for now: none is sent for %.3g s", pause_s)
                    self._paused_until = now + min(pause_s, MAX_PAUSE_S)
        return asked_s

    def held_back_s(self) -> float:
        """Seconds until the next of the calls that wait may be sent; 0 where none waits."""
        with self._lock:
            return max(0.0, self._wait_s(self._queue[0])) if self._queue else 0.0

    def close(self) -> None:
        """Nobody is to wait any more: whoever does, or would have to later, gets CancelledError."""
        self._closed = True

    def _estimate(self, characters: int, max_tokens: int) -> Cost:
        """By what the answers until now took for each character, and for each answer."""
        with self._lock:
            answers, asked = self._answered.requests, self._answered_characters
            per_character = self._answered.input / asked if asked else _TOKENS_PER_CHARACTER
            output = self._answered.output / answers if answers else _USUAL_OUTPUT
        return Cost(1, characters * per_character, min(output, max_tokens))

    def _wait_s(self, entry: tuple[int, Cost]) -> float:
        now = self.clock.monotonic()
        ahead, calls_ahead = Cost(), 0
        for number, cost in self._queue:
            if number >= entry[0]:
                break
            ahead, calls_ahead = ahead.plus(cost), calls_ahead + 1
        wait_s = self._paused_until - now
        if calls_ahead >= self._releasable and now - self._released_at < _UNANSWERED_S:
            wait_s = max(wait_s, RECHECK_S)
        for kind, bucket in self._buckets.items():
            bucket.refill(now)
            wait_s = max(wait_s, bucket.wait_s(ahead.of(kind), entry[1].of(kind)))
        return wait_s

    def _take(self, entry: tuple[int, Cost], characters: int) -> Permit:
        now = self.clock.monotonic()
        self._queue.remove(entry)
        self._change_levels(now, entry[1], -1)
        self._releasable, self._released_at = max(self._releasable - 1, 0), now
        self._sent = self._sent.plus(entry[1])
        return Permit(*entry, characters, now, self._sent)

    def _change_levels(self, now: float, cost: Cost, factor: int = 1) -> None:
        for kind, bucket in self._buckets.items():
            bucket.refill(now)
            bucket.level = min(bucket.per_minute, bucket.level + factor * cost.of(kind))

    def _learn(self, permit: Permit, headers: Mapping[str, str], now: float) -> None:
        if permit.at < self._learnt_at:
            return  # what was asked later knows better
        self._learnt_at = permit.at
        for kind, reported, remaining in reported_limits(headers):
            self.reported[kind] = reported
            limit = min(float(reported), self._configured.get(kind, inf))
            bucket = self._buckets.get(kind)
            if bucket is not None:
                bucket.refill(now)
                bucket.per_minute, bucket.level = limit, min(bucket.level, limit)
            else:  # of what is left the calls since then have taken more
                since = self._sent.plus(permit.sent, -1).of(kind)
                left = limit if remaining is None else min(remaining, limit)
                self._buckets[kind] = _Bucket(limit, left - since, permit.at)

    def _empty_buckets(self, permit: Permit, headers: Mapping[str, str], now: float) -> None:
        """Those that refused the call were empty when it came; where none is named, it may have been any."""
        left = {kind: reported_remaining(headers, kind) for kind in self._buckets}
        enough = {kind for kind, rest in left.items() if rest is not None and rest >= permit.cost.of(kind)}
        for kind, bucket in self._buckets.items():
            if kind not in enough or len(enough) == len(self._buckets):
                bucket.refill(now)
                bucket.level = min(bucket.level, (now - permit.at) * bucket.per_minute / 60)

    def _held_back_error(self, wait_s: float, not_before: float) -> LLMError:
        # Of a call that waits alone the API said that it is overloaded.
        is_overloaded = self._paused_until <= self.clock.monotonic() < not_before
        why, code = (
            ("It is overloaded", "llm_overloaded") if is_overloaded else ("Its limit is reached", "llm_rate_limited")
        )
        what = f"is not asked for another {ceil(wait_s)} s. {why}: run fewer at a time, or try again later"
        error = LLMError(f"The model API {what}", code, retryable=True)
        error.retry_after_s = wait_s
        return error


LimitKind = Literal["requests", "tokens", "input-tokens", "output-tokens"]
LIMIT_KINDS: Final[tuple[LimitKind, ...]] = ("requests", "tokens", "input-tokens", "output-tokens")

_COUNT: Final = re.compile(r"[0-9]{1,12}", re.ASCII)
_SECONDS: Final = re.compile(r"[0-9]+(?:\.[0-9]+)?", re.ASCII)
_YEAR_S: Final = 365 * 86_400.0


class ReportedLimit(NamedTuple):
    """One of the API's limits. per_minute: above 0. remaining: what was left of it; None where that is not told."""

    kind: LimitKind
    per_minute: int
    remaining: int | None


def reported_limits(headers: Mapping[str, str]) -> Iterator[ReportedLimit]:
    """Those that `anthropic-ratelimit-*` name. A header that is no count says nothing.

    OpenAI's `x-ratelimit-*` are not read: other servers of its shape count by the day under the same names.
    """
    for kind in LIMIT_KINDS:
        if limit := _count(headers.get(f"anthropic-ratelimit-{kind}-limit")):
            yield ReportedLimit(kind, limit, reported_remaining(headers, kind))


def reported_remaining(headers: Mapping[str, str], kind: LimitKind) -> int | None:
    """What is left of a limit; None where that is not told."""
    return _count(headers.get(f"anthropic-ratelimit-{kind}-remaining"))


def retry_after_s(headers: Mapping[str, str], now: Callable[[], float] = time.time) -> float | None:
    """Seconds to wait, from `retry-after-ms` or `retry-after` (seconds or a date, RFC 9110 §10.2.3).

    Above 0 and at most a year; None where neither says so. A date is held against the answer's own `date`, so that the
    two clocks may differ, and only without one against `now`, in seconds since 1970.
    """
    for name, factor in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        text = headers.get(name, "").strip()
        if _SECONDS.fullmatch(text):
            wait_s = float(text) * factor
        elif factor == 1.0 and (until := _seconds_since_1970(text)) is not None:
            answered = _seconds_since_1970(headers.get("date", ""))
            wait_s = until - (now() if answered is None else answered)
        else:
            continue
        if wait_s > 0:
            return min(wait_s, _YEAR_S)
    return None


def _count(text: str | None) -> int | None:
    return int(text) if text is not None and _COUNT.fullmatch(text.strip()) else None


def _seconds_since_1970(text: str) -> float | None:
    try:
        date = parsedate_to_datetime(text)
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
