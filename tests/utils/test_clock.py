from __future__ import annotations

import asyncio

import pytest

from guarantee_email_agent.utils.clock import SkippingClock


def test_skipped_time_counts_in_full() -> None:
    clock = SkippingClock()
    before = clock.monotonic()
    asyncio.run(clock.sleep(86_400))
    assert clock.monotonic() - before >= 86_400


def test_skipping_needs_no_event_loop() -> None:
    coroutine = SkippingClock().sleep(3)
    with pytest.raises(StopIteration):
        coroutine.send(None)
