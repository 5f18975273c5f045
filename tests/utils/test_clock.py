from __future__ import annotations

import asyncio

import pytest

from guarantee_email_agent.utils.clock import Clock, SkippingClock, SystemClock


@pytest.mark.parametrize("clock", [SystemClock(), SkippingClock()], ids=["system", "skipping"])
def test_time_only_goes_forward(clock: Clock) -> None:
    moments = [clock.monotonic() for _ in range(100)]
    assert moments == sorted(moments)


def test_skipped_time_counts_in_full() -> None:
    clock = SkippingClock()
    before = clock.monotonic()
    asyncio.run(clock.sleep(86_400))
    assert clock.monotonic() - before >= 86_400


def test_skipping_needs_no_event_loop() -> None:
    coroutine = SkippingClock().sleep(3)
    with pytest.raises(StopIteration):
        coroutine.send(None)


def test_one_clock_skips_nothing_for_another() -> None:
    skipping, other = SkippingClock(), SkippingClock()
    asyncio.run(skipping.sleep(86_400))
    assert skipping.monotonic() - other.monotonic() > 86_000


def test_the_systems_clock_really_waits() -> None:
    clock = SystemClock()
    before = clock.monotonic()
    asyncio.run(clock.sleep(0.001))
    assert clock.monotonic() - before >= 0.001
