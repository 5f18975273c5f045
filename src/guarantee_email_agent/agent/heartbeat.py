"""What an agent tells the ledger every few seconds: that it runs, its inbox, what is down."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final

from guarantee_email_agent.agent.process_identity import has_ended
from guarantee_email_agent.agent.standing import Standing, wall_time
from guarantee_email_agent.config.settings import Mode
from guarantee_email_agent.ledger.agents import AgentReport, ReportedOutage, RunningAgents, as_code
from guarantee_email_agent.ledger.database import LedgerError
from guarantee_email_agent.utils.version import __version__

logger = logging.getLogger(__name__)

INTERVAL_S: Final = 15.0


class Heartbeat:
    """Tells the ledger how the agent stands. owner: names this process there.

    silence: seconds since the inbox was last looked at, where that is too long ago: a main loop that stands still has
    found nothing down.
    """

    def __init__(
        self,
        ledger: RunningAgents,
        owner: str,
        mode: Mode,
        standing: Standing,
        silence: Callable[[], float | None] | None = None,
    ) -> None:
        self._ledger, self._owner, self._mode, self._silence = ledger, owner, mode, silence
        self._standing = standing
        self._writing: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def beating(self) -> AsyncIterator[None]:
        """Until the block is left; then the agent is no longer listed."""
        with suppress(LedgerError):
            await asyncio.to_thread(self._forget_killed)
        task: asyncio.Task[None] | None = None
        try:
            await self._beat()  # a start that is cancelled meanwhile leaves no entry either
            task = asyncio.create_task(self._beat_forever())
            yield
        finally:
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            if self._writing is not None:  # a thread cannot be cancelled: it must not write after the entry went
                await asyncio.gather(self._writing, return_exceptions=True)
            with suppress(LedgerError):
                await asyncio.to_thread(self._ledger.leave, self._owner)

    def _forget_killed(self) -> None:
        """Those on this machine that run no more: this one takes their place."""
        for owner in filter(has_ended, self._ledger.names()):
            self._ledger.leave(owner)

    async def _beat_forever(self) -> None:
        while True:
            await asyncio.sleep(INTERVAL_S)
            await self._beat()

    async def _beat(self) -> None:
        self._writing = asyncio.create_task(self._write())
        await asyncio.shield(self._writing)

    async def _write(self) -> None:
        """A ledger that cannot be written now gets it next time: the mails themselves wait for it, too."""
        standing = self._standing
        outages = [
            ReportedOutage(as_code(each.service), as_code(each.code), round(wall_time(each.since), 1))
            for each in standing.outages
        ]
        if self._silence is not None and (silent_s := self._silence()) is not None:
            outages.append(ReportedOutage("inbox", "not_listed", round(time.time() - silent_s, 1)))
        report = AgentReport(__version__, self._mode, standing.waiting, standing.oldest_received, outages)
        try:
            await asyncio.to_thread(self._ledger.beat, self._owner, report)
        except LedgerError as error:
            logger.debug("%s", error.message)
