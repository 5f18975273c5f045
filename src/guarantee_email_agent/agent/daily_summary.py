"""What the agent did in a day, once a day, as a mail or a file: counts by outcome, what went wrong, and what it took.

Of several agents one tells a day: the ledger gives the turn, and the Message-ID follows from the day, so that after a
crash the mailbox says whether the mail left. Where nobody can tell, it is not sent again.
"""

from __future__ import annotations

import asyncio
import logging
import os
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any, Final

from guarantee_email_agent.agent.identity_key import key_of_mailbox, mailbox_name
from guarantee_email_agent.agent.ledger_access import current_outages
from guarantee_email_agent.agent.outbox import NOT_WAITING
from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.email.identity import DEFAULT_DOMAIN, summary_message_id
from guarantee_email_agent.integrations.mail_client import MailClient
from guarantee_email_agent.integrations.ports import Reply
from guarantee_email_agent.integrations.services import create_mail_client
from guarantee_email_agent.ledger.facts import Turn
from guarantee_email_agent.ledger.interventions import short_owner
from guarantee_email_agent.ledger.ledger import Ledger
from guarantee_email_agent.ledger.ledger_reader import OUTCOMES, LedgerCount, LedgerReader, LedgerRow
from guarantee_email_agent.utils.clock import Clock
from guarantee_email_agent.utils.errors import AgentError, ConfigurationError
from guarantee_email_agent.utils.local_time import LocalTime, duration

logger = logging.getLogger(__name__)

CHECK_S: Final = 30.0
RETRY_S: Final = 600.0
"""After a failure: a service that is down is not asked every half minute."""

REFUSED_RETRY_S: Final = 3600.0
_REFUSED: Final = "mail_rejected"

LEASE_S: Final = 900.0
"""How long one agent may take to tell a day, before another one takes over."""

_DAY_S: Final = 86_400.0
SLOWEST: Final = 5
MAX_MAILS: Final = 100_000
"""Of one day, from which the slowest are found."""

_BESIDE_DATABASE: Final = ("", "-wal", "-shm", "-journal", ".key")


@dataclass(frozen=True, slots=True)
class Period:
    """The day that ends at `end`. begin, end: seconds since 1970. day: the date of its end."""

    day: date
    begin: float
    end: float


class DailySummary:
    """first_start: of the agent on this mailbox, in seconds since 1970; no day that ended before is told."""

    def __init__(self, config: Config, ledger: Ledger, key: bytes, first_start: float, clock: Clock) -> None:
        self._config, self._ledger, self._key, self._clock = config, ledger, key, clock
        self._first_start = first_start
        self._mailbox_key = key_of_mailbox(mailbox_name(config), key)
        self._local_time = LocalTime(config.summary.zone)
        self._told: date | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Until the block is left, each day is told when it is over; one that is being told then is finished."""
        settings = self._config.summary
        if settings.to is None and settings.file is None:
            yield
            return
        stop = asyncio.Event()
        task = asyncio.create_task(self._run(stop))
        try:
            yield
        finally:
            stop.set()
            await asyncio.gather(task, return_exceptions=True)

    async def _run(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            pause_s = CHECK_S
            try:
                await self.tell_if_due()
            except AgentError as error:
                pause_s = REFUSED_RETRY_S if error.code == _REFUSED else RETRY_S
                if error.code == _REFUSED:
                    told = "The mail server refuses the summary of the day for good. Correct summary.to"
                    logger.error("%s; next try in %d min (%s)", told, pause_s / 60, error.code)
                else:
                    logger.warning("The summary of the day is put off for %d min: %s", pause_s / 60, error.code)
                logger.debug("%s", error.message)
            except Exception as error:  # a bug of ours in here must not end the summaries of all days to come
                pause_s = RETRY_S
                logger.error("The summary of the day failed: unexpected %s", type(error).__name__)
                logger.debug("Unexpected failure", exc_info=True)
            try:
                async with asyncio.timeout(pause_s):
                    await stop.wait()
            except TimeoutError:
                continue

    async def tell_if_due(self) -> bool:
        """Tell the day that ended last, unless somebody has. Raises AgentError where that cannot be done now."""
        now = await asyncio.to_thread(self._ledger.time)
        period = last_period(self._local_time, self._config.summary.at, now)
        if period.day == self._told or period.end <= self._first_start:
            return False
        turn = await asyncio.to_thread(self._ledger.summaries.begin, self._mailbox_key, period.day, LEASE_S)
        if turn == "no":
            return False
        try:
            told_until = await asyncio.to_thread(self._ledger.summaries.told_until, self._mailbox_key)
            text = await asyncio.to_thread(self._write, _after(period, told_until))
            if self._config.summary.to is None:
                await asyncio.to_thread(self._save, period, text)
            else:
                await self._send(self._config.summary.to, period, text, turn)
        except AgentError as error:
            if turn == "first" and not error.details.get("uncertain"):
                await asyncio.to_thread(self._ledger.summaries.not_told, self._mailbox_key, period.day)
            raise
        await asyncio.to_thread(self._ledger.summaries.told, self._mailbox_key, period.day, period.end)
        self._told = period.day
        logger.info("The summary of the day was written")
        return True

    def _write(self, period: Period) -> str:
        with LedgerReader(self._config.ledger_location) as reader:
            return summary_text(reader, period, self._local_time)

    def _save(self, period: Period, text: str) -> None:
        assert self._config.summary.file is not None
        file = _file_of(self._config.summary.file, period.day)
        with _folder_beside(file) as place:
            draft = place / "draft"
            draft.write_text(text, encoding="utf-8")
            draft.replace(file)

    async def _send(self, to: str, period: Period, text: str, turn: Turn) -> None:
        address = self._config.mailbox.from_address
        domain = address.rpartition("@")[2] if address else DEFAULT_DOMAIN
        day = period.day.isoformat()
        message_id = summary_message_id(mailbox_name(self._config), day, self._key, domain)
        async with AsyncExitStack() as stack:
            mailbox = await self._connect(stack)
            if turn == "again":
                state = await mailbox.find_sent(message_id, self._config.mailbox.copy_wait_s)
                if state != "not_sent":  # better missed than told twice
                    return
            await mailbox.send(Reply(to, f"Warranty agent: summary of {day}", text, message_id))

    async def _connect(self, stack: AsyncExitStack) -> MailClient:
        """A mail server of its own for the while: in mode `observe` the agent's own one sends nothing."""
        sending = replace(self._config, agent=replace(self._config.agent, mode="answer"))
        mailbox = create_mail_client(sending, self._clock, os.environ, self._key)
        stack.push_async_callback(mailbox.close)
        return mailbox


def last_period(clock: LocalTime, at: str, now: float) -> Period:
    """The day that ended last; one in which clocks change has 23 or 25 hours. at: `07:00`. now: seconds since 1970."""
    hours, minutes = map(int, at.split(":"))
    ends = time(hours, minutes)
    day = clock.at(now).date()
    if clock.seconds(day, ends) > now:
        day -= timedelta(days=1)
    return Period(day, clock.seconds(day - timedelta(days=1), ends), clock.seconds(day, ends))


def _after(period: Period, told_until: float | None) -> Period:
    """From the end of the one before, which is not a day ago where `summary.at` was changed.

    told_until: when the period ended that was told last; with a day between them, no agent ran at its time.
    """
    if told_until is None or not 0 < period.end - told_until < 2 * _DAY_S:
        return period
    return replace(period, begin=told_until)


def summary_text(reader: LedgerReader, period: Period, clock: LocalTime) -> str:
    """Codes, counts and ids alone: it holds nothing that a customer wrote. Raises LedgerError."""
    counts = reader.counts_since(period.begin, period.end)
    rows = reader.outcomes(OUTCOMES, since=period.begin, until=period.end, limit=MAX_MAILS)
    return "\n".join(_lines(reader, period, clock, counts, rows)) + "\n"


def _lines(
    reader: LedgerReader, period: Period, clock: LocalTime, counts: list[LedgerCount], rows: list[LedgerRow]
) -> Iterator[str]:
    yield f"From {clock.text(period.begin)} to {clock.text(period.end)} ({clock.zone_at(period.end)})."
    yield ""
    for outcome in OUTCOMES:
        group = [count for count in counts if count.outcome == outcome]
        yield f"{outcome.replace('_', ' ').capitalize()}: {sum(count.mails for count in group)}"
        if outcome in ("handed_over", "quarantined", "unknown"):
            yield from (f"    {count.reason or 'no reason'}: {count.mails}" for count in group)
    slowest = sorted((row for row in rows if row.worked_s), key=lambda row: -(row.worked_s or 0.0))[:SLOWEST]
    if slowest:
        short = reader.short_keys(row.mail_key for row in slowest)
        yield "\nSlowest:"
        yield from (
            f"    {short[row.mail_key]}: {row.worked_s:.1f} s, {row.outcome}, tries: {row.attempts}" for row in slowest
        )
    costs = [row.cost_usd for row in rows if row.cost_usd is not None]
    yield f"\nLanguage model: {sum(costs):.4f} USD" if costs else "\nLanguage model: no cost"
    now, open_counts = reader.now(), reader.counts()
    outages = [(agent, outage) for agent in reader.agents() for outage in current_outages(agent, now)]
    yield f"Down now: {'nothing' if not outages else ''}".rstrip()
    yield from (
        f"    {outage.service} since {clock.text(outage.since)} ({outage.code}; {short_owner(agent.owner)})"
        for agent, outage in outages
    )
    unfinished = [row for row in reader.unfinished(MAX_MAILS) if row.reason != NOT_WAITING]  # that one is with people
    seen = (
        f", the oldest first seen {duration(now - min(row.created_at for row in unfinished))} ago" if unfinished else ""
    )
    yield f"Unfinished now: {len(unfinished)}{seen}"
    failed = sum(count.mails for count in open_counts if count.outcome in ("quarantined", "unknown"))
    yield f"Left to a person after a failure, of all days: {failed}"


def check_summary_file(file: Path) -> None:
    """Raises ConfigurationError where no summary could be written there. Leaves nothing behind."""
    try:
        with _folder_beside(file):
            pass
    except AgentError as error:
        raise ConfigurationError(error.message, error.code) from None


def require_summary_file(config: Config) -> None:
    """Raises ConfigurationError where a summary would replace something else than the one before it."""
    if config.summary.file is None:
        return
    file = _file_of(config.summary.file, datetime.now(UTC).date())
    if os.path.exists(file) and not os.path.isfile(file):
        raise ConfigurationError(
            f"summary.file: {file} is no regular file. Name one that each summary may replace", "summary_unwritable"
        )
    place = file.resolve()
    if (used := next((name for name, other in _files_in_use(config) if other.resolve() == place), None)) is not None:
        raise ConfigurationError(
            f"summary.file: {file} is in use ({used}), and a summary would replace it. Name a file of its own",
            "summary_unwritable",
        )


def _file_of(file: Path, day: date) -> Path:
    return Path(str(file).replace("{date}", day.isoformat()))


def _files_in_use(config: Config) -> Iterator[tuple[str, Path]]:
    """Those of the configuration, with what SQLite and we put beside a database."""
    databases = [("tickets.database", config.tickets.database)]
    if "://" not in (ledger := config.ledger_location):
        databases.append(("agent.ledger", Path(ledger)))
    for name, database in databases:
        yield from ((name, database.with_name(f"{database.name}{end}")) for end in _BESIDE_DATABASE)
    if config.source is not None:
        yield "the configuration", config.source
    yield "the environment", Path(".env")
    yield from ((name, path) for name, path in _paths(config) if name not in ("summary.file", "source"))


def _paths(section: Any, prefix: str = "") -> Iterator[tuple[str, Path]]:
    """All settings that are paths, by their keys."""
    named = (
        section
        if isinstance(section, Mapping)
        else {each.name: getattr(section, each.name) for each in fields(section)}
    )
    for name, value in named.items():
        if isinstance(value, Path):
            yield f"{prefix}{name}", value
        elif isinstance(value, Mapping) or is_dataclass(value):
            yield from _paths(value, f"{prefix}{name}.")


@contextmanager
def _folder_beside(file: Path) -> Iterator[Path]:
    """Raises AgentError where it or what is written in it cannot be written."""
    try:
        with tempfile.TemporaryDirectory(prefix=".summary-", dir=file.parent) as place:
            yield Path(place)
    except OSError as error:
        raise AgentError(
            f"The summary cannot be written to {file} ({error.strerror}). Correct summary.file, or make room",
            "summary_unwritable",
        ) from None
