"""By how much the main loop is late."""

from __future__ import annotations

import asyncio

from virtual_time import VirtualClock, run_in_virtual_time

from guarantee_email_agent.agent.loop_watchdog import LoopWatchdog


def test_a_loop_that_waits_as_long_as_it_said_is_not_late() -> None:
    async def wait() -> float:
        watchdog = LoopWatchdog(VirtualClock())
        watchdog.beat(3600)
        await asyncio.sleep(3600)
        return watchdog.overdue_s

    assert run_in_virtual_time(wait()) == 0


def test_what_goes_beyond_is_late() -> None:
    async def wait() -> float:
        watchdog = LoopWatchdog(VirtualClock())
        watchdog.beat(30)
        await asyncio.sleep(100)
        return watchdog.overdue_s

    assert run_in_virtual_time(wait()) == 70
