"""Time as something that is passed in, so that no test has to wait for it; and moments as people read them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from time import perf_counter
from typing import Protocol

DAY: timedelta = timedelta(days=1)


class Clock(Protocol):
    """Seconds that only go forward, and a way to let them pass."""

    def monotonic(self) -> float: ...
    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The machine's own clock."""

    def monotonic(self) -> float:
        return perf_counter()

    async def sleep(self, seconds: float) -> None:
        import asyncio

        await asyncio.sleep(seconds)


def utc_now(timespec: str = "seconds") -> str:
    """As `utc_text` has it."""
    return utc_text(datetime.now(UTC), timespec)


def utc_text(moment: datetime, timespec: str = "seconds") -> str:
    """ISO 8601 of a moment in UTC: 2026-01-18T10:00:00Z. timespec: as `datetime.isoformat` has it."""
    return moment.isoformat(timespec=timespec).replace("+00:00", "Z")


class SkippingClock:
    """The machine's clock, except that sleeping takes no time: the seconds are added at once."""

    def __init__(self) -> None:
        self._skipped = 0.0

    def monotonic(self) -> float:
        return perf_counter() + self._skipped

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


class LocalTime:
    """Moments in a zone.

    zone: such as Europe/Berlin; None is the machine's, by $TZ or its settings. Raises KeyError for one unknown.
    """

    def __init__(self, zone: str | None = None) -> None:
        self._zone: tzinfo | None = None
        if zone is not None:
            from zoneinfo import ZoneInfo

            self._zone = ZoneInfo(zone)

    def at(self, seconds: float) -> datetime:
        """seconds: since 1970; a moment that no calendar has becomes the nearest that has one."""
        try:
            return datetime.fromtimestamp(seconds, UTC).astimezone(self._zone)
        except (ValueError, OverflowError, OSError):  # a clock that was wrong, or a damaged row
            return datetime(1970, 1, 1, tzinfo=UTC)

    def text(self, seconds: float) -> str:
        """`2026-01-18 10:23:45`."""
        return f"{self.at(seconds):%Y-%m-%d %H:%M:%S}"

    def zone_at(self, seconds: float) -> str:
        """`CET, UTC+01:00`."""
        moment = self.at(seconds)
        offset = f"{moment:%z}"
        name, numeric = moment.tzname() or "", f"UTC{offset[:3]}:{offset[3:5]}"
        if name == "UTC":
            return name
        return numeric if not name or name[0] in "+-" else f"{name}, {numeric}"

    def seconds(self, day: date, clock: time = time()) -> float:
        """When it is `clock` on that day, in seconds since 1970; of two such moments the first.

        One that the change to summer time leaves out comes as much later as that change.
        """
        moment = datetime.combine(day, clock)
        return (moment.replace(tzinfo=self._zone) if self._zone is not None else moment).timestamp()
