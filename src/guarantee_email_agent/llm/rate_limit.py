"""How many requests a minute a model API allows: one limiter for all calls of a run.

The API has a token bucket that refills all the time, so here is the same, where the configuration says how large.
Whatever else is limited, tokens above all, shows by a refusal: then nobody sends anything for as long as the API asks,
one call goes first, and each answer lets two more go, since all at once would mostly be refused. So it is at the start,
too, where nothing is configured. An API that is overloaded (HTTP 529) refuses some requests and answers others: only
those wait that were refused.
"""

from __future__ import annotations

import asyncio
import logging
import re
import threading
import time
from bisect import bisect_left, insort
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from itertools import count
from math import ceil, inf
from random import random
from typing import Final

from guarantee_email_agent.config.settings import Llm
from guarantee_email_agent.utils.clock import Clock, count_wait
from guarantee_email_agent.utils.errors import LLMError
from guarantee_email_agent.utils.retry import Backoff

logger = logging.getLogger(__name__)

MAX_PAUSE_S: Final = 3600.0
"""The longest pause that one answer can cause, whatever it asks for: then one call finds out what holds now."""

RECHECK_S: Final = 0.25
"""How soon one who waits notices that it need not, or is not to, wait any longer."""

JITTER_SHARE: Final = 0.1  # of a pause, by which several processes part
_UNANSWERED_S: Final = 30.0  # after which a call that was released alone is no longer waited for
_BACKOFF: Final = Backoff(1.0, longest_s=30.0)
_NOTHING_S: Final = 1e-6  # less than a clock tells


@dataclass(frozen=True, slots=True)
class Permit:
    """Leave to send one request. number: its place in the queue."""

    number: int
    at: float


@dataclass(slots=True)
class _Bucket:
    """Holds at most a minute's worth."""

    per_minute: float
    level: float
    at: float

    def refill(self, now: float, more: float = 0.0) -> None:
        self.level = min(self.per_minute, self.level + more + (now - self.at) * self.per_minute / 60)
        self.at = now


class RateLimiter:
    """Calls wait here for their turn, first come, first served. For any number of event loops and threads."""

    def __init__(
        self,
        clock: Clock,
        *,
        requests_per_minute: float | None = None,
        max_wait_s: float = inf,
        jitter: Callable[[], float] = random,
    ) -> None:
        """max_wait_s: the longest that a call waits for its turn.

        jitter: from 0 to 1, by how much a pause is longer than the API asks for.
        """
        self.clock = clock
        self._jitter = jitter
        self._max_wait_s = max_wait_s
        self._bucket: _Bucket | None = None
        if requests_per_minute is not None:
            self._bucket = _Bucket(requests_per_minute, requests_per_minute, clock.monotonic())
        self._lock = threading.Lock()
        self._numbers = count()
        self._queue: list[int] = []
        self._closed = False
        self._paused_until = -inf
        self._refusals = 0
        self._releasable, self._released_at = 1 if self._bucket is None else inf, -inf

    @classmethod
    def of(cls, llm: Llm, clock: Clock, *, max_wait_s: float = inf) -> RateLimiter:
        """With the limits of a configuration."""
        return cls(clock, requests_per_minute=llm.requests_per_minute, max_wait_s=max_wait_s)

    async def acquire(self, number: int | None = None, *, not_before: float = -inf) -> Permit:
        """Wait until one more request may be sent.

        number: of the permit with which the same request was refused, which keeps its place. not_before: of the clock's
        monotonic seconds, for this one alone.

        Raises LLMError where that takes too long, with the code that the API's own refusal would have
        (`llm_rate_limited`, `llm_overloaded`), and CancelledError where nobody is to wait any more.
        """
        number = next(self._numbers) if number is None else number
        waited_s = 0.0
        with self._lock:
            insort(self._queue, number)
        try:
            while True:
                with self._lock:
                    wait_s = max(self._wait_s(number), not_before - self.clock.monotonic())
                    if wait_s <= _NOTHING_S:
                        return self._take(number)
                    if self._closed:
                        raise asyncio.CancelledError
                if waited_s + wait_s > self._max_wait_s:
                    raise self._held_back_error(wait_s, not_before)
                before = self.clock.monotonic()
                try:
                    # Whoever is ahead may give up.
                    await self.clock.sleep(min(wait_s, RECHECK_S))
                finally:
                    slept_s = self.clock.monotonic() - before
                    waited_s += slept_s
                    count_wait(slept_s)
        finally:
            with self._lock:
                if number in self._queue:
                    self._queue.remove(number)

    def answered(self) -> None:
        """A call is over."""
        with self._lock:
            self._refusals = 0
            self._releasable += 2

    def unanswered(self) -> None:
        """A call ended without a word of the API: another one finds out in its place."""
        with self._lock:
            self._releasable = max(self._releasable, 1)

    def refused(self, permit: Permit, retry_after_s: float | None, *, over_limit: bool) -> float:
        """The API refused a call for now. The seconds of the pause that the call is to make, as the API asks for it.

        Where it was over a limit (HTTP 429), nobody sends anything meanwhile. retry_after_s: None where it does not
        say.
        """
        with self._lock:
            now = self.clock.monotonic()
            if self._bucket is not None:
                self._bucket.refill(now, 1.0)  # it took nothing
            self._releasable = max(self._releasable, 1)
            if permit.at >= self._paused_until:  # else it had been sent before the pause that holds already
                self._refusals += 1
            asked_s = _BACKOFF.delay_s(max(1, self._refusals)) if retry_after_s is None else retry_after_s
            if over_limit:
                self._releasable = 1
                if self._bucket is not None:  # it was empty when the call came
                    self._bucket.level = min(self._bucket.level, (now - permit.at) * self._bucket.per_minute / 60)
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

    def _wait_s(self, number: int) -> float:
        now, ahead = self.clock.monotonic(), bisect_left(self._queue, number)
        wait_s = self._paused_until - now
        if ahead >= self._releasable and now - self._released_at < _UNANSWERED_S:
            wait_s = max(wait_s, RECHECK_S)
        if (bucket := self._bucket) is not None:
            bucket.refill(now)
            own = min(1.0, bucket.per_minute)  # a full one lets a call through, however small it is
            wait_s = max(wait_s, (ahead + own - bucket.level) * 60 / bucket.per_minute)
        return wait_s

    def _take(self, number: int) -> Permit:
        now = self.clock.monotonic()
        self._queue.remove(number)
        if self._bucket is not None:
            self._bucket.refill(now, -1.0)
        self._releasable, self._released_at = max(self._releasable - 1, 0), now
        return Permit(number, now)

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


_SECONDS: Final = re.compile(r"[0-9]+(?:\.[0-9]+)?", re.ASCII)
_YEAR_S: Final = 365 * 86_400.0


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


def _seconds_since_1970(text: str) -> float | None:
    try:
        date = parsedate_to_datetime(text)
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
