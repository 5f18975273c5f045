"""Watches the inbox: lists what waits, works on so many mails at a time, and rests while a service is down."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from guarantee_email_agent.agent.mail_worker import Disposition, MailWorker, WorkResult
from guarantee_email_agent.integrations.ports import InboxEntry, Mailbox
from guarantee_email_agent.ledger.database import LedgerError
from guarantee_email_agent.utils.clock import Clock
from guarantee_email_agent.utils.errors import AgentError
from guarantee_email_agent.utils.retry import Backoff

logger = logging.getLogger(__name__)

PAGE: Final = 500
"""Mails listed at a time; those that wait for another try come on top."""

MOST_LISTED: Final = 10_000
LONGEST_WAIT_S: Final = 3600.0
"""What the mail server takes."""

REST: Final = Backoff(2.0, longest_s=60.0)
"""While the inbox, the ledger or a service is down."""

PATIENCE: Final = 5
"""Failures of services in a row after which a drain gives up."""

SHUTDOWN_S: Final = 60.0
"""Seconds that mails in work have to come to their end."""


OnWorked: TypeAlias = Callable[[InboxEntry, WorkResult], None]


def nobody_listens(_entry: InboxEntry, _result: WorkResult) -> None:
    """The default of `Daemon.on_worked`."""


@dataclass
class Daemon:
    """The one loop of the daemon. `tally` counts the mails that ended by how they did; `left` has those that did not.

    concurrency: mails in work at a time. poll_s: seconds between two looks, if nothing wakes us earlier. on_worked: is
    told what became of each mail that was taken up.
    """

    inbox: Mailbox
    worker: MailWorker
    clock: Clock
    concurrency: int
    poll_s: float
    on_worked: OnWorked = nobody_listens
    tally: Counter[Disposition] = field(default_factory=Counter)
    left: dict[str, Disposition] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._in_work: dict[str, asyncio.Task[None]] = {}
        self._not_before: dict[str, float] = {}
        self._ended: set[str] = set()  # since the inbox was listed last
        self._changed = asyncio.Event()
        self._failures = 0
        self._rest_until = 0.0

    async def drain(self, stop: asyncio.Event) -> bool:
        """Take up every mail once. Whether each came to an outcome, or is gone.

        Raises the AgentError of an inbox that cannot be listed, once what is in work has come to its end.
        """
        async with self._in_our_hands():
            # What was busy at first may have been so because of its twin: a second copy of the same mail.
            for _ in range(2):
                for mail, disposition in self.left.items():
                    if disposition == "busy":
                        del self._not_before[mail]
                try:
                    while await self._round(stop, once=True) and not stop.is_set():
                        await self._until_free(1, stop)
                except AgentError:
                    await self._finish()
                    raise
                await self._finish()
        if self._failures >= PATIENCE:
            logger.warning("A service is down; the mails that are left stay unprocessed")
        return not self.left

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop` is set: then nothing new is begun, and what is in work has SHUTDOWN_S to finish."""
        failed_rounds = 0
        async with self._in_our_hands():
            while not stop.is_set():
                try:
                    if not await self._round_until(stop):
                        await self._wait(stop)
                    failed_rounds = 0
                except AgentError as error:
                    failed_rounds += 1
                    rest_s = REST.delay_s(failed_rounds)
                    what = "ledger" if isinstance(error, LedgerError) else "inbox"
                    logger.warning("The %s cannot be read (%s); next try in %d s", what, error.code, rest_s)
                    logger.debug("%s", error.message)
                    await _first_of(stop.wait(), timeout_s=rest_s)
            await self._finish()

    @asynccontextmanager
    async def _in_our_hands(self) -> AsyncIterator[None]:
        """Nothing is still in work once the block is left, however it is left."""
        try:
            yield
        finally:
            for task in self._in_work.values():
                task.cancel()
            await asyncio.gather(*self._in_work.values(), return_exceptions=True)

    async def _round_until(self, stop: asyncio.Event) -> int:
        """As `_round`, but given up as soon as `stop` is set: a mailbox may take its time to answer."""
        look = asyncio.create_task(self._round(stop, once=False))
        try:
            await _first_of(stop.wait(), _over(look))
            return look.result() if look.done() else 0
        finally:
            look.cancel()
            await asyncio.gather(look, return_exceptions=True)

    async def _round(self, stop: asyncio.Event, *, once: bool) -> int:
        """Look once, and begin with everything that may be begun; how many mails that were."""
        now = self.clock.monotonic()
        if not once:
            self._not_before = {mail: moment for mail, moment in self._not_before.items() if moment > now}
        self._ended.clear()
        listed_at = await asyncio.to_thread(self.worker.ledger.time)
        most = min(PAGE + len(self._not_before) + len(self._in_work), MOST_LISTED)
        entries = await self.inbox.list_unprocessed(most)
        if len(entries) < most:
            listed = {entry.id for entry in entries}
            self.left = {mail: disposition for mail, disposition in self.left.items() if mail in listed}
        # They take turns to find out whether a service is back: it may be down for one of them.
        turns = {mail: turn for turn, mail in enumerate(self.left, 1)}
        entries.sort(key=lambda entry: turns.get(entry.id, 0))
        begun = 0
        for entry in entries:
            if entry.id in self._in_work or entry.id in self._not_before or entry.id in self._ended:
                continue
            if not await self._admitted(stop, once):
                break
            self._in_work[entry.id] = asyncio.create_task(self._work(entry, listed_at, once))
            begun += 1
        return begun

    async def _admitted(self, stop: asyncio.Event, once: bool) -> bool:
        """Wait for a free place. While a service is down, one mail at a time finds out whether it is back."""
        await self._until_free(1 if self._failures else self.concurrency, stop)
        if once:
            return not stop.is_set() and self._failures < PATIENCE
        while not stop.is_set() and (rest_s := self._rest_until - self.clock.monotonic()) > 0:
            await _first_of(stop.wait(), timeout_s=rest_s)
        return not stop.is_set()

    async def _until_free(self, places: int, stop: asyncio.Event) -> None:
        """Until there are so few mails in work that another one has a place, or `stop` is set."""
        stopped = asyncio.create_task(stop.wait())
        try:
            while len(self._in_work) >= places and not stop.is_set():
                await asyncio.wait({stopped, *self._in_work.values()}, return_when=asyncio.FIRST_COMPLETED)
                await asyncio.sleep(0)  # lets the finished ones leave
        finally:
            stopped.cancel()

    async def _work(self, entry: InboxEntry, listed_at: float, once: bool) -> None:
        try:
            result = await self.worker.work(entry, listed_at)
            self._note(entry, result, once)
        except Exception as error:
            # A bug of ours in one mail must not end the watch over all others.
            logger.error("Email %s is left unprocessed: unexpected %s", entry.id, type(error).__name__)
            logger.debug("Unexpected failure", exc_info=True)
            self._note(entry, WorkResult("failed", REST.longest_s), once)
        finally:
            del self._in_work[entry.id]

    def _note(self, entry: InboxEntry, result: WorkResult, once: bool) -> None:
        self.on_worked(entry, result)
        self.left.pop(entry.id, None)
        now = self.clock.monotonic()
        if result.disposition in ("failed", "outage", "waiting", "busy"):
            self.left[entry.id] = result.disposition
            self._not_before[entry.id] = float("inf") if once else now + max(result.retry_s, 1.0)
        else:
            self.tally[result.disposition] += 1
        if result.disposition == "gone":
            self._not_before[entry.id] = now + 1.0
        if result.disposition == "outage":
            self._failures += 1
            if not once:
                rest_s = REST.delay_s(self._failures)
                self._rest_until = now + rest_s
                self._not_before[entry.id] += rest_s
                logger.warning("A service is down; next try in %d s", rest_s)
        elif result.disposition not in ("busy", "waiting"):
            self._failures, self._rest_until = 0, 0.0
            self._ended.add(entry.id)
        self._changed.set()

    async def _wait(self, stop: asyncio.Event) -> None:
        """Until the inbox may hold something new, a mail in work failed, or one may be tried again."""
        self._changed.clear()
        now = self.clock.monotonic()
        due_s = min((moment - now for moment in self._not_before.values()), default=self.poll_s)
        waits = [stop.wait(), self._news()]
        if self._in_work:
            waits.append(self._changed.wait())
        await _first_of(*waits, timeout_s=max(0.1, min(self.poll_s, due_s)))

    async def _news(self) -> None:
        try:
            await self.inbox.wait_for_mail(min(self.poll_s, LONGEST_WAIT_S))
        except AgentError as error:
            logger.debug("Waiting for mail failed: %s", error.message)
            await asyncio.sleep(self.poll_s)

    async def _finish(self) -> None:
        """Let what is in work come to its end; what does not is cancelled, and found again by the ledger."""
        if not self._in_work:
            return
        _, late = await asyncio.wait(self._in_work.values(), timeout=SHUTDOWN_S)
        for task in late:
            task.cancel()
        if late:
            logger.warning("%d mails did not come to their end within %d s", len(late), SHUTDOWN_S)
            await asyncio.wait(late)


async def _over(task: asyncio.Task[Any]) -> None:
    """Wait for a task without being it: who gives up waiting does not give up the task."""
    await asyncio.wait({task})


async def _first_of(*waits: Coroutine[Any, Any, object], timeout_s: float | None = None) -> None:
    """Return once one of `waits` is over, or after `timeout_s` seconds; the others are given up."""
    tasks = [asyncio.create_task(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
