"""Time as something that is passed in, so that no test and no evaluation has to wait for it."""

from __future__ import annotations

import time
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


class SkippingClock:
    """The machine's clock, except that sleeping takes no time: the seconds are added at once."""

    def __init__(self) -> None:
        self._skipped = 0.0

    def monotonic(self) -> float:
        return time.perf_counter() + self._skipped

    async def sleep(self, seconds: float) -> None:
        self._skipped += seconds
