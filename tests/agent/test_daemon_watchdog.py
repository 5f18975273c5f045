"""The main loop says when it means to be back, so that one that hangs can be told from one that waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from mailbox_in_memory import KEY, MailboxInMemory, Tickets, Warranties, worker_on

from guarantee_email_agent.agent.daemon import Daemon
from guarantee_email_agent.agent.health import LoopWatchdog
from guarantee_email_agent.ledger.opening import open_ledger
from guarantee_email_agent.utils.clock import SystemClock


def watch(
    folder: Path, mailbox: MailboxInMemory, moment: Callable[[LoopWatchdog], Coroutine[Any, Any, None]]
) -> tuple[float, int]:
    """How late the loop is at a moment, and how many mails it works on; it polls once an hour."""

    async def run() -> tuple[float, int]:
        watchdog, stop = LoopWatchdog(SystemClock()), asyncio.Event()
        with closing(open_ledger(str(folder / "ledger.db"), key=KEY)) as ledger:
            worker = worker_on(mailbox, ledger, Warranties(), Tickets())
            worker = replace(worker, settings=replace(worker.settings, poll_interval_s=3600))
            daemon = Daemon(worker, SystemClock(), stop, watchdog=watchdog)
            watching = asyncio.create_task(daemon.run())
            await moment(watchdog)
            seen = watchdog.overdue_s, daemon.standing.in_progress
            stop.set()
            mailbox.hangs.set()
            await watching
        return seen

    return asyncio.run(run())


def test_one_whose_inbox_gives_no_answer_gets_later_and_later(tmp_path: Path) -> None:
    mailbox = MailboxInMemory("first")
    mailbox.hangs.clear()

    async def gets_late(watchdog: LoopWatchdog) -> None:
        while watchdog.overdue_s < 0.05:
            await asyncio.sleep(0.01)

    late_s, _ = watch(tmp_path, mailbox, gets_late)
    assert late_s >= 0.05
