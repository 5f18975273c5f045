"""Watches the inbox: lists new mails, processes several at a time, and pauses while a service is down."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import Any, Final, cast

from guarantee_email_agent.agent.identity_key import key_of_location, key_of_mailbox
from guarantee_email_agent.agent.inbox import MAX_LISTED, answer_since, count_inbox, inbox_filter
from guarantee_email_agent.agent.mail_outcome import Disposition, WorkResult
from guarantee_email_agent.agent.mail_queue import MailQueue
from guarantee_email_agent.agent.mail_worker import MailWorker
from guarantee_email_agent.agent.standing import Standing
from guarantee_email_agent.ledger.database import LedgerError
from guarantee_email_agent.services.ports import InboxEntry, InboxFilter
from guarantee_email_agent.utils.clock import Clock, LocalTime
from guarantee_email_agent.utils.errors import AgentError, ConfigurationError, IntegrationError
from guarantee_email_agent.utils.retry import Backoff

logger = logging.getLogger(__name__)

PAGE_SIZE: Final = 500
"""Mails listed at a time. Twice those that wait or were observed come on top, so that few lists get past many."""

MAX_WAIT_S: Final = 3600.0
"""Limit of the mail server's tool."""

OWNER_CHECK_S: Final = 15.0
"""Seconds after which the agents of a ledger notice that another one has taken over."""

OUTAGE_BACKOFF: Final = Backoff(2.0, longest_s=60.0)
"""While the inbox, the ledger or a service is down."""

MAX_OUTAGES: Final = 5
"""Outages in a row after which a drain gives up."""

SHUTDOWN_TIMEOUT_S: Final = 60.0
"""Seconds that mails in progress have to finish."""


class Daemon:
    """The main loop. `queue` has the mails that it knows of, `standing` what others may know of it.

    stop: once it is set, no mail is started. answer_since: when the oldest mail that is answered may have come, in
    seconds since 1970. require_ours: asked every OWNER_CHECK_S; raises ConfigurationError once the mailbox is served
    with another ledger, which ends the agent. first_start: reads that of the ledger anew, where `answer_since` is that
    one.
    """

    def __init__(
        self,
        worker: MailWorker,
        clock: Clock,
        stop: asyncio.Event,
        standing: Standing | None = None,
        answer_since: float = 0.0,
        require_ours: Callable[[], Awaitable[None]] | None = None,
        first_start: Callable[[], float] | None = None,
    ) -> None:
        self.worker = worker
        self.queue = MailQueue()
        self._clock, self._stop = clock, stop
        self.standing = standing or Standing()
        self._counted = 0  # mails that waited at the last count, and those that had ended by then
        self._listed: AbstractSet[str] = frozenset()
        self._beyond = 0  # of the mails that waited at the last list, those that it had no room for
        self.answer_since = answer_since
        self._require_ours, self._first_start = require_ours, first_start
        self._owner_error: IntegrationError | None = None  # why nobody can tell whose mailbox it is
        self._tasks: set[asyncio.Task[None]] = set()
        self._failures = 0  # for an outage, in a row
        self._paused_until = 0.0
        self._warned_of_length = self._told_of_first_start = False

    @property
    def not_begun(self) -> int:
        """Mails that the agent did not come to, as far as the last list and count tell."""
        return self._beyond + sum(mail_id not in self.queue for mail_id in self._listed)

    async def drain(self) -> bool:
        """Process every mail once; whether each came to an outcome, or is gone.

        Raises the AgentError of an inbox that cannot be listed, once the mails in progress have finished.
        """
        self.queue.is_draining = True
        async with self._cancelling_tasks():
            for round_number in count():
                if round_number and not self._free_for_another_round(with_busy=round_number == 1):
                    break
                try:
                    while await self._poll() and not self._stop.is_set():
                        await self._wait_for_slot(1)
                except ConfigurationError:
                    raise
                except AgentError as error:
                    self.standing.failed(error, listing=True)
                    await self._finish_tasks()
                    raise
                await self._finish_tasks()
        if self._failures >= MAX_OUTAGES:
            logger.warning("A service is down; the mails that are left stay unprocessed")
        return not self.queue.unfinished

    def _free_for_another_round(self, *, with_busy: bool) -> bool:
        """Let a drain try mails again, until MAX_OUTAGES in a row; whether there are any.

        What was busy may have been so because of a second copy of the same mail. A service that was down for one mail
        may answer the next, if only by the templates that stand in for a language model.
        """
        again: set[Disposition] = {"busy"} if with_busy else set()
        if self._failures < MAX_OUTAGES:
            again.add("outage")
        return self.queue.free(again) and not self._stop.is_set()

    async def run(self) -> None:
        """Process mails until stopped; those in progress then have SHUTDOWN_TIMEOUT_S to finish."""
        failed_polls = 0
        async with self._cancelling_tasks():
            while not self._stop.is_set():
                try:
                    if not await self._poll_until_stopped():
                        await self._wait_for_work()
                    failed_polls = 0
                except ConfigurationError:
                    raise
                except AgentError as error:
                    failed_polls += 1
                    self.standing.failed(error, listing=True)
                    pause_s = OUTAGE_BACKOFF.delay_s(failed_polls)
                    what = "ledger" if isinstance(error, LedgerError) else "inbox"
                    logger.warning("The %s cannot be read (%s); next try in %d s", what, error.code, pause_s)
                    logger.debug("%s", error.message)
                    await self._wait(timeout_s=pause_s)
            await self._finish_tasks()

    @asynccontextmanager
    async def _cancelling_tasks(self) -> AsyncIterator[None]:
        """However the block is left, no mail is in progress afterwards."""
        self._stopped = asyncio.create_task(self._stop.wait())
        self._owner_watch = asyncio.create_task(self._watch_owner())
        try:
            yield
        finally:
            tasks = [self._stopped, self._owner_watch, *self._tasks]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _watch_owner(self) -> None:
        """Until `stop` is set; raises ConfigurationError once the mailbox is served with another ledger."""
        while self._require_ours is not None:
            await self._clock.sleep(OWNER_CHECK_S)
            try:
                await self._require_ours()
                self._owner_error = None
            except IntegrationError as error:
                self._owner_error = error
        await self._stop.wait()

    async def _poll_until_stopped(self) -> int:
        """As `_poll`, but cancelled as soon as `stop` is set: a mailbox may take its time to answer."""
        poll = asyncio.create_task(self._poll())
        try:
            await self._wait(tasks=[poll])
            return poll.result() if poll.done() else 0
        finally:
            poll.cancel()
            await asyncio.gather(poll, return_exceptions=True)

    async def _poll(self) -> int:
        """List the inbox and start every mail that is due; returns how many were started, or need no start."""
        now = self._clock.monotonic()
        self.queue.begin_round(now)
        self._listed, self._beyond = frozenset(), 0
        if self._owner_error is not None:
            raise self._owner_error
        listed_at = await asyncio.to_thread(self.worker.ledger.time)
        if self.answer_since > listed_at and self._first_start is not None:
            await self._correct_first_start(self._first_start)
        limit = min(PAGE_SIZE + 2 * len(self.queue), MAX_LISTED)
        entries = await self.worker.mailbox.list_unprocessed(limit, self._inbox_filter(listed_at))
        if len(entries) == MAX_LISTED and not self._warned_of_length:
            self._warned_of_length = True
            logger.warning(
                "%d mails are listed, most of them observed before; newer ones cannot be seen. Set agent.answer_since "
                "to a later date",
                MAX_LISTED,
            )
        self._listed = {entry.id for entry in entries}
        self.queue.listed(self._listed, is_complete=(is_complete := len(entries) < limit))
        location_keys = {entry.id: self._location_key(entry.id) for entry in entries}
        known = await self.worker.inbox(list(location_keys.values()), listed_at, is_complete=is_complete)
        entries = self.queue.in_order(entries, lambda entry: known.crashed.get(location_keys[entry.id], 0.0))
        if known.released and not self.queue.is_draining:  # the ledger knows, and this agent may remember a longer wait
            self.queue.release(lambda mail_id: self._location_key(mail_id) in known.released)
        observed = (mail for mail, key in location_keys.items() if key in known.observed)
        started = self.queue.pass_over(observed, now)
        self._look_over(entries, limit, listed_at)
        for entry in entries:
            if not self.queue.is_due(entry.id, now):
                continue
            if not await self._may_start():
                break
            is_new = location_keys[entry.id] not in known.seen
            self._start(entry.id, self._work(entry, listed_at, is_new=is_new))
            started += 1
        return started + await self._settle_unlisted(known.unlisted, now)

    def _start(self, mail_id: str, work: Coroutine[Any, Any, None]) -> None:
        self.queue.start(mail_id)
        self._tasks.add(asyncio.create_task(work))
        self.standing.in_progress = len(self._tasks)

    def _end_task(self) -> None:
        """Of the task that runs."""
        self._tasks.discard(cast("asyncio.Task[None]", asyncio.current_task()))
        self.standing.in_progress = len(self._tasks)

    async def _correct_first_start(self, read: Callable[[], float]) -> None:
        """What comes before a first start in the future would be too old for good, and nobody would know."""
        since = answer_since(self.worker.settings, await asyncio.to_thread(read))
        if since != self.answer_since or not self._told_of_first_start:
            logger.error(
                "The first start, %s UTC, lies in the future: the clock was ahead then, or is behind now. Mails of "
                "before %s UTC are left alone. Set the clock, or agent.answer_since to a date",
                *map(LocalTime("UTC").text, (self.answer_since, since)),
            )
        self.answer_since, self._told_of_first_start = since, True

    async def _settle_unlisted(self, places: AbstractSet[str], now: float) -> int:
        """A person may have dealt with these mails since their last try, or gave them back, or they grew too old."""
        started = 0
        working = set(map(self._location_key, self.queue.in_state("working")))
        taken = {self._location_key(mail): mail for mail in self.queue.in_state("taken")}
        for place in sorted(places - working):
            if not self.queue.is_due(place, now):
                continue
            if not await self._may_start():
                break
            self._start(place, self._settle(place, taken.get(place)))
            started += 1
        return started

    def _look_over(self, entries: Sequence[InboxEntry], limit: int, now: float) -> None:
        """How many mails wait, by the last count where a list is full, and since when.

        now: on the ledger's clock, when the list was asked for.
        """
        waiting = [entry for entry in entries if self.queue.is_waiting(entry.id)]
        oldest = min((entry.received for entry in waiting if entry.received), default=None)
        counted = 0 if len(entries) < limit else self._counted - self.standing.finished.total()
        self._beyond = max(counted - len(waiting), 0)
        self.standing.inbox_listed(len(waiting) + self._beyond, oldest)
        self.standing.inbox_answered(now)

    async def count_inbox(self) -> dict[str, int]:
        """How many mails of the inbox would be answered, were observed, are left alone, or bear which mark."""
        worker = self.worker
        now = await asyncio.to_thread(worker.ledger.time)
        counts = await count_inbox(worker.mailbox, worker.ledger, self._inbox_filter(now), self._location_key)
        self._counted = counts.get("unprocessed", 0) + self.standing.finished.total()
        mailbox_key = key_of_mailbox(worker.mailbox_name, worker.processor.identity_key)
        with suppress(LedgerError):  # the next count is kept
            await asyncio.to_thread(worker.ledger.keep_too_old, mailbox_key, counts.get("too_old", 0))
        return counts

    def _location_key(self, mail_id: str) -> str:
        return key_of_location(self.worker.mailbox_name, mail_id, self.worker.processor.identity_key)

    def _inbox_filter(self, now: float) -> InboxFilter:
        return inbox_filter(self.worker.settings, self.answer_since, now)

    async def _may_start(self) -> bool:
        """Wait for a free slot. While a service is down, one mail at a time finds out whether it is back."""
        await self._wait_for_slot(1 if self._failures else self.worker.settings.concurrency)
        if self.queue.is_draining:
            return not self._stop.is_set() and self._failures < MAX_OUTAGES
        while not self._stop.is_set() and (pause_s := self._paused_until - self._clock.monotonic()) > 0:
            await self._wait(timeout_s=pause_s)
        return not self._stop.is_set()

    async def _wait_for_slot(self, slots: int) -> None:
        """Until fewer than `slots` mails are in progress, or `stop` is set."""
        while len(self._tasks) >= slots and not self._stop.is_set():
            await self._wait(tasks=self._tasks)

    async def _work(self, entry: InboxEntry, listed_at: float, *, is_new: bool) -> None:
        try:
            result = await self.worker.work(entry, listed_at, is_new=is_new)
            self._record(entry, result)
        except Exception as error:
            # A bug of ours in one mail must not stop all others.
            logger.error("Email %s is left unprocessed: unexpected %s", entry.id, type(error).__name__)
            logger.debug("Unexpected failure", exc_info=True)
            self._record(entry, WorkResult("failed", OUTAGE_BACKOFF.longest_s))
        finally:
            self._end_task()

    async def _settle(self, place: str, mail: str | None) -> None:
        retry_s = OUTAGE_BACKOFF.longest_s  # or until it is listed again
        try:
            result = await self.worker.settle(place, mail)
            if result.ended is not None:
                self.standing.mail_worked(InboxEntry(mail or place[:12], 0), result)
            if result.disposition in ("waiting", "busy"):
                retry_s = max(result.retry_s, 1.0)
        except Exception as error:
            logger.error("Email %s is left open: unexpected %s", mail or place[:12], type(error).__name__)
            logger.debug("Unexpected failure", exc_info=True)
        finally:
            self._end_task()
            self.queue.leave_until(place, self._clock.monotonic() + retry_s)

    def _record(self, entry: InboxEntry, result: WorkResult) -> None:
        now, pause_s = self._clock.monotonic(), 0.0
        if result.disposition == "outage":
            self._failures += 1
            if not self.queue.is_draining:
                pause_s = OUTAGE_BACKOFF.delay_s(self._failures)
                self._paused_until = now + pause_s
                what = f" ({result.error.code})" if result.error is not None else ""
                logger.warning("A service is down%s; next try in %d s", what, pause_s)
        elif result.disposition not in ("busy", "waiting"):
            self._failures, self._paused_until = 0, 0.0
        self.standing.mail_worked(entry, result)
        self.queue.record(entry.id, result, now, pause_s)

    async def _wait_for_work(self) -> None:
        """Until the inbox may hold something new, or a mail is done or may be tried again."""
        due_s = self.queue.next_due_at - self._clock.monotonic()
        timeout_s = max(0.1, min(self.worker.settings.poll_interval_s, due_s))
        await self._wait(self._wait_for_mail(), tasks=self._tasks, timeout_s=timeout_s)

    async def _wait_for_mail(self) -> None:
        try:
            await self.worker.mailbox.wait_for_mail(min(self.worker.settings.poll_interval_s, MAX_WAIT_S))
        except AgentError as error:
            logger.debug("Waiting for mail failed: %s", error.message)
            await asyncio.sleep(self.worker.settings.poll_interval_s)

    async def _finish_tasks(self) -> None:
        """Let the mails in progress finish; what takes too long is cancelled, and found again by the ledger."""
        if not self._tasks:
            return
        _, late = await asyncio.wait(set(self._tasks), timeout=SHUTDOWN_TIMEOUT_S)
        for task in late:
            task.cancel()
        if late:
            logger.warning("%d mails were not finished within %d s", len(late), SHUTDOWN_TIMEOUT_S)
            await asyncio.wait(late)

    async def _wait(
        self,
        *events: Coroutine[Any, Any, object],
        tasks: Iterable[asyncio.Task[Any]] = (),
        timeout_s: float | None = None,
    ) -> None:
        """Until `stop` is set, one of `events` or `tasks` is over, or `timeout_s` passed; events are then cancelled.

        Raises ConfigurationError once the mailbox is served with another ledger.
        """
        self.standing.beat(timeout_s or 0.0)
        begun = [asyncio.create_task(event) for event in events]
        try:
            pending = {self._stopped, self._owner_watch, *begun, *tasks}
            await asyncio.wait(pending, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
            if self._owner_watch.done():
                self._owner_watch.result()
        finally:
            self.standing.beat()
            for task in begun:
                task.cancel()
            if begun:
                await asyncio.gather(*begun, return_exceptions=True)
