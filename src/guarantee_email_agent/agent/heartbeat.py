"""What an agent tells the ledger every few seconds: that it runs, its inbox, what is down, what mails took."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final

from guarantee_email_agent.agent.mail_outcome import WorkResult
from guarantee_email_agent.agent.process_identity import has_ended
from guarantee_email_agent.agent.standing import Standing, wall_time
from guarantee_email_agent.config.settings import Mode
from guarantee_email_agent.ledger.agents import AgentReport, ReportedOutage, RunningAgents, Work, as_code
from guarantee_email_agent.ledger.database import LedgerError
from guarantee_email_agent.services.ports import InboxEntry
from guarantee_email_agent.utils.version import __version__

logger = logging.getLogger(__name__)

INTERVAL_S: Final = 15.0
_NO_WORK: Final = frozenset({"busy", "waiting"})


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
        self._work: dict[str, Work] = {}
        self._writing: asyncio.Task[None] | None = None

    def mail_worked(self, entry: InboxEntry, result: WorkResult) -> None:  # noqa: ARG002 - a MailListener; the ledger knows its key
        if result.mail_key and (result.tokens or result.cost_usd != 0 or result.disposition not in _NO_WORK):
            self._add(result.mail_key, Work(result.duration_ms / 1000, result.cost_usd))

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
                await self._beat()
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
        work, self._work = self._work, {}
        try:
            await asyncio.to_thread(self._ledger.beat, self._owner, report, work)
        except LedgerError as error:
            logger.debug("%s", error.message)
            for mail_key, done in work.items():
                self._add(mail_key, done)

    def _add(self, mail_key: str, done: Work) -> None:
        before = self._work.get(mail_key, Work(0.0, 0.0))
        cost_usd = None if before.cost_usd is None or done.cost_usd is None else before.cost_usd + done.cost_usd
        self._work[mail_key] = Work(before.seconds + done.seconds, cost_usd)
