"""Time as something that is passed in, so that no test and no evaluation has to wait for it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol


class Clock(Protocol):
    """Seconds that only go forward, and a way to let them pass."""

    def monotonic(self) -> float: ...
    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The machine's own clock."""

    def monotonic(self) -> float:
        return time.perf_counter()

    async def sleep(self, seconds: float) -> None:
        import asyncio

        await asyncio.sleep(seconds)


def utc_now() -> str:
    """ISO 8601, to the millisecond: 2026-01-18T10:00:00.000Z."""
    from datetime import UTC, datetime

    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class SkippingClock:
    """The machine's clock, except that sleeping takes no time: the seconds are added at once."""

    def __init__(self) -> None:
        self._skipped = 0.0

    def monotonic(self) -> float:
        return time.perf_counter() + self._skipped

    async def sleep(self, seconds: float) -> None:
        self._skipped += seconds


@dataclass(slots=True)
class WaitCounter:
    """Seconds that calls were held back before they were sent.

    lost: attempts that were sent and brought no answer, so that nobody knows what they took.
    """

    seconds: float = 0.0
    lost: int = 0


_counters: ContextVar[tuple[WaitCounter, ...]] = ContextVar("wait_counters", default=())


@contextmanager
def counted_waits() -> Iterator[WaitCounter]:
    """Counts for how long the calls made inside it wait for a rate limit: a time in which nobody works on them."""
    counter = WaitCounter()
    outer = _counters.set((*_counters.get(), counter))
    try:
        yield counter
    finally:
        _counters.reset(outer)


def count_wait(seconds: float, *, lost: int = 0) -> None:
    """Tell everybody who counts, in this task or around it, that a call was held back, or what of it was lost."""
    for counter in _counters.get():
        counter.seconds += seconds
        counter.lost += lost
