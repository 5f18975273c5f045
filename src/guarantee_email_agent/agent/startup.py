"""`run`: open everything that the agent needs, watch the inbox, and stop as the signal says."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from guarantee_email_agent.agent.daemon import Daemon
from guarantee_email_agent.agent.identity_key import identity_key, key_of_mailbox
from guarantee_email_agent.agent.inbox import SECONDS_PER_DAY, answer_since, require_clock
from guarantee_email_agent.agent.monitoring import Heartbeat, in_background, monitored, notify_systemd, standing_of
from guarantee_email_agent.agent.standing import MAILS, TICKETING, Standing
from guarantee_email_agent.agent.worker_setup import CheckedInstructions, create_worker, required_evaluation
from guarantee_email_agent.config.settings import Config, Mode
from guarantee_email_agent.email.parsing.email import Email
from guarantee_email_agent.email.people_answers import MOST_SENT_BYTES, answers_by_mail, compare, message_key, read_sent
from guarantee_email_agent.email.processor import InstructionSource
from guarantee_email_agent.instructions.look_up import WARRANTY, LookUp
from guarantee_email_agent.interpreter.interpreter import InstructionInterpreter
from guarantee_email_agent.ledger.comparisons import AWAITED_S
from guarantee_email_agent.ledger.database import LedgerError
from guarantee_email_agent.ledger.ledger import Ledger
from guarantee_email_agent.ledger.opening import open_ledger
from guarantee_email_agent.llm.provider import language_model
from guarantee_email_agent.services.clients import MailClient
from guarantee_email_agent.services.look_ups import instruction_files
from guarantee_email_agent.services.services import Services, connection_problem, create_services
from guarantee_email_agent.utils.clock import Clock, SystemClock
from guarantee_email_agent.utils.errors import (
    EXIT_FAILURE,
    EXIT_SUCCESS,
    AgentError,
    ConfigurationError,
    IntegrationError,
    MCPConnectionError,
)
from guarantee_email_agent.utils.process import forbid_core_files

logger = logging.getLogger(__name__)

KEPT_DAYS: Final = 365
"""Days that the ledger remembers a finished mail; its mark in the mailbox lasts longer."""

_COUNTED_S: Final = 3600.0
MODE_NOTES: Final[Mapping[Mode, str]] = {
    "answer": "",
    "drafts": " (replies wait in the Drafts folder, no ticket is opened)",
    "observe": " (nothing is sent, stored or marked)",
}


def run_agent(config: Config, *, once: bool = False, take_over: bool = False) -> int:
    """The exit code.

    once: drain the inbox, then exit. take_over: serve the mailbox also where another ledger did.

    Raises ConfigurationError and MCPConnectionError for what keeps the agent from starting.
    """
    forbid_core_files()
    return asyncio.run(_run(config, once=once, take_over=take_over))


async def _run(config: Config, *, once: bool, take_over: bool) -> int:
    stop, started = asyncio.Event(), asyncio.Event()
    loop, main_task = asyncio.get_running_loop(), asyncio.current_task()

    def end() -> None:
        stop.set()
        notify_systemd("STOPPING=1")
        logger.info("Stopping: no new mail is started, mails in progress are finished")
        if main_task is not None and not started.is_set():
            main_task.cancel()

    loop.add_signal_handler(signal.SIGTERM, end)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as by `nohup`
        loop.add_signal_handler(signal.SIGHUP, end)
    try:
        async with (
            monitored(config, SystemClock(), stop, listens=not once) as standing,
            open_daemon(config, stop, take_over=take_over, standing=standing) as (daemon, services),
        ):
            started.set()
            notify_systemd("READY=1")
            source = daemon.worker.processor.instructions
            async with in_background(watch_instructions(source, config.agent.poll_interval_s)):
                key, mailbox = daemon.worker.processor.identity_key, daemon.worker.mailbox_name
                sent = SentAnswers(services.mail.list_sent, daemon.worker.ledger, key_of_mailbox(mailbox, key), key)
                return await _watch(daemon, once, sent.look)
    except asyncio.CancelledError:
        if stop.is_set() and not started.is_set():
            return EXIT_SUCCESS
        raise


async def watch_instructions(source: InstructionSource, interval_s: float) -> None:
    """Look at the files between mails, too, so that a mistake in one is told before a customer waits for it."""
    used = source.load()
    while True:
        await asyncio.sleep(interval_s)
        if (found := source.load()) is not used:
            used = found
            logger.info("Changed instruction files are in use from now on")


async def _watch(daemon: Daemon, once: bool, look_at_sent: Callable[[], Awaitable[None]]) -> int:
    ledger = daemon.worker.ledger
    await _prune(ledger)
    await _log_inbox(daemon)
    logger.info("Watching the inbox%s", " once" if once else "")
    complete = True
    try:
        async with (
            in_background(each(SECONDS_PER_DAY, SystemClock(), partial(_prune, ledger))),
            in_background(each(_COUNTED_S, SystemClock(), daemon.count_inbox)),
            in_background(each(_COUNTED_S, SystemClock(), look_at_sent)),
        ):
            if once:
                complete = await daemon.drain()
                with suppress(AgentError):  # another look comes
                    await look_at_sent()
            else:
                await daemon.run()
    finally:
        logger.info("%s", _summary(daemon))
    return EXIT_SUCCESS if complete else EXIT_FAILURE


async def each(interval_s: float, clock: Clock, work: Callable[[], Awaitable[object]]) -> None:
    """Until it is cancelled. Were it looked at more rarely than each day, the ledger's clock would not count as steady,
    and nothing be forgotten; what is too old is in no list, and people are to see how much of it there is.
    """
    while True:
        await clock.sleep(interval_s)
        with suppress(AgentError):  # the list of the inbox says more
            await work()


async def _prune(ledger: Ledger) -> None:
    try:
        await asyncio.to_thread(ledger.prune, KEPT_DAYS)
    except LedgerError as error:  # the next day does it
        logger.warning("Old entries stay in the ledger for now: %s", error.code)


async def _log_inbox(daemon: Daemon) -> None:
    """What the agent is about to do, before it does it: an inbox has a past."""
    settings = daemon.worker.settings
    logger.info("Mode: %s%s", settings.mode, MODE_NOTES[settings.mode])
    if settings.mode == "answer" and not settings.require_eval:
        logger.info("agent.require_eval is false: instruction files answer customers without an evaluation")
    try:
        counts = await daemon.count_inbox()
    except IntegrationError as error:  # the first poll says more
        logger.warning("The mails of the inbox cannot be counted: %s", error.code)
        return
    waiting, too_old, left_alone = (counts.get(name, 0) for name in ("unprocessed", "too_old", "left_alone"))
    observed = f", {counts['observed']} observed before" if counts.get("observed") else ""
    logger.info("Inbox: %d mails to answer%s, %d too old, %d left to people", waiting, observed, too_old, left_alone)
    is_date = settings.answer_since != "first-start"
    if is_date and daemon.answer_since > await asyncio.to_thread(daemon.worker.ledger.time):
        logger.warning("agent.answer_since lies in the future: only mails that come after it will be answered")
    if too_old and settings.answer_since == "first-start":
        logger.info("Mails from before the first start are left alone; agent.answer_since names another moment, or all")


@asynccontextmanager
async def open_daemon(
    config: Config,
    stop: asyncio.Event,
    *,
    take_over: bool = False,
    standing: Standing | None = None,
) -> AsyncIterator[tuple[Daemon, Services]]:
    """The daemon, and the services that it works with; everything is opened, each connection tried once.

    Raises ConfigurationError for what is missing or bad, instructions included, and MCPConnectionError, with a line for
    each service that cannot be reached.
    """
    clock = SystemClock()
    instructions = CheckedInstructions(instruction_files(config), required_evaluation(config))
    async with AsyncExitStack() as stack:
        model = language_model(config, clock, InstructionInterpreter(instructions.lexicon))
        stack.push_async_callback(model.aclose)
        key = identity_key(config)
        services = create_services(config, clock, key)
        ledger = await asyncio.to_thread(open_ledger, config.ledger_location, key=key)
        stack.callback(ledger.close)
        stack.push_async_callback(services.close)
        await _require_connections(services, config.agent.mode, instructions.load().look_ups)
        ledger_id = await asyncio.to_thread(ledger.id)

        async def require_ours() -> None:
            require_owner(await services.mail.find_owner(), ledger_id)

        worker = create_worker(config, services, model, ledger, key, clock, instructions)
        mailbox_key = key_of_mailbox(worker.mailbox_name, key)
        known = await asyncio.to_thread(ledger.first_start_if_known, mailbox_key)
        by_first_start, earliest = config.agent.answer_since == "first-start", None
        if by_first_start and known is None:
            earliest = await require_clock(services.mail, await asyncio.to_thread(ledger.time))
        answers = config.agent.mode != "observe"  # an observer may look at anybody's mailbox
        if answers:
            await _claim_mailbox(services.mail, ledger_id, take_over=take_over)
        first_start = await asyncio.to_thread(ledger.first_start, mailbox_key, earliest)
        since = answer_since(config.agent, first_start if known is None else known)
        standing = standing or standing_of(config, clock.monotonic, stop.is_set)
        ours = require_ours if answers else None
        heartbeat = Heartbeat(ledger.agents, worker.owner, config.agent.mode, standing)
        await stack.enter_async_context(heartbeat.beating())
        standing.listeners.append(heartbeat.mail_worked)
        reread = partial(ledger.first_start, mailbox_key) if by_first_start else None
        daemon = Daemon(worker, clock, stop, standing, since, ours, reread)
        yield daemon, services


async def _require_connections(services: Services, mode: Mode, look_ups: Sequence[LookUp]) -> None:
    """look_ups: those that topics are served by; the services of others are not needed.

    Raises ConfigurationError, or MCPConnectionError for services that are down.
    """
    tests = {MAILS: services.mail.test_connection(mode == "drafts")}
    unused = set[str]() if any(each.is_of_warranties for each in look_ups) else {WARRANTY.name}
    tests |= {name: client.test_connection() for name, client in services.look_ups.items() if name not in unused}
    if mode == "answer":  # else no ticket is opened, and the first start of ours would make its database
        tests[TICKETING] = services.ticketing.test_connection()
    found = dict(zip(tests, await asyncio.gather(*map(connection_problem, tests.values())), strict=True))
    problems = {service: problem for service, problem in found.items() if problem is not None}
    if misconfigured := [problem for problem in problems.values() if isinstance(problem, ConfigurationError)]:
        raise misconfigured[0]
    if problems:
        lines = [problem.message for problem in problems.values()]
        raise MCPConnectionError("\n".join(lines), next(iter(problems.values())).code)


async def _claim_mailbox(mail: MailClient, ledger_id: str, *, take_over: bool) -> None:
    """Raises ConfigurationError where the mailbox is served with another ledger."""
    owner = await mail.claim(ledger_id)
    if take_over and owner not in (None, ledger_id):
        logger.warning("The mailbox was served with ledger %s; from now on it is served with %s", owner, ledger_id)
        owner = await mail.claim(ledger_id, take_over=True)
    require_owner(owner, ledger_id)


def require_owner(owner: str | None, ledger_id: str) -> None:
    """Raises ConfigurationError `mail_other_ledger` for an owner that is not this ledger."""
    if owner not in (None, ledger_id):
        raise ConfigurationError(
            f"This mailbox is served with another ledger ({owner}; this one is {ledger_id}): each mail would be "
            "answered twice. Use that ledger and its LEDGER_KEY (agent.ledger, LEDGER_URL), or, once its agents are "
            "stopped for good, start once with `run --take-over`",
            "mail_other_ledger",
        )


def _summary(daemon: Daemon) -> str:
    counts, left = daemon.standing.finished, Counter(daemon.queue.unfinished.values())
    return (
        f"Emails answered: {counts['answered']}, drafted: {counts['drafted']}, observed: {counts['observed']}, "
        f"handed over: {counts['handed_over']}, not answered: {counts['not_answered']}, quarantined: "
        f"{counts['quarantined']}, unknown: {counts['unknown']}, left unprocessed: "
        f"{left.total() - left['busy'] + daemon.not_begun}, "
        f"with another agent: {left['busy']}"
    )


_LATE_S: Final = 3600.0  # how long a program may take to file what it sent


@dataclass(slots=True)
class SentAnswers:
    """What people sent from one mailbox beside what was drafted or observed. What was read before is read again only
    for a mail that it answers.

    list_sent: as a MailClient has it.
    """

    list_sent: Callable[[float, int, Callable[[bytes], Email | None]], Awaitable[list[Email | None]]]
    ledger: Ledger
    mailbox_key: str
    key: bytes
    looked_at: float | None = None
    answered: set[str] = field(default_factory=set)
    unclear: set[str] = field(default_factory=set)

    async def look(self) -> None:
        """Compare what is there. Raises LedgerError, and IntegrationError where nobody can tell what was sent."""
        awaited = await asyncio.to_thread(self.ledger.comparisons.awaited, self.mailbox_key)
        if not awaited:
            return
        now = await asyncio.to_thread(self.ledger.time)
        since = now - AWAITED_S
        if self.looked_at is not None and not self.answered.intersection(each.message_key for each in awaited):
            since = max(since, self.looked_at - _LATE_S)
        found_mails = await self.list_sent(since, MOST_SENT_BYTES, read_sent)
        sent = [mail for mail in found_mails if mail is not None]
        is_complete = len(sent) == len(found_mails)
        answers = {message_key(mail_id, self.key): mails for mail_id, mails in answers_by_mail(sent).items()}
        self.answered |= answers.keys()
        for each in awaited:
            mails = answers.get(each.message_key, [])
            found = await asyncio.to_thread(compare, each.reply_words, mails, each.mail_key, self.key)
            if found is not None:
                await asyncio.to_thread(self.ledger.comparisons.save, each.mail_key, *found)
            elif mails or not is_complete:  # what cannot be read, or went to somebody else, may be the answer
                self.unclear.add(each.mail_key)
            elif each.mail_key not in self.unclear:
                await asyncio.to_thread(self.ledger.comparisons.not_answered, each.mail_key)
        self.looked_at = now
