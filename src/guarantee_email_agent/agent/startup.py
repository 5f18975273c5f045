"""`run`: open everything that the agent needs, watch the inbox, and stop as the signal says."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from guarantee_email_agent.agent.cost_limit import check_price
from guarantee_email_agent.agent.daemon import Daemon
from guarantee_email_agent.agent.identity_key import identity_key, key_of_mailbox
from guarantee_email_agent.agent.inbox_filter import answer_since
from guarantee_email_agent.agent.mail_worker import MailWorker
from guarantee_email_agent.agent.observer import DaemonObserver
from guarantee_email_agent.agent.process_identity import process_name
from guarantee_email_agent.config.settings import Config, Mode
from guarantee_email_agent.email.identity import DEFAULT_DOMAIN
from guarantee_email_agent.email.processor import EmailProcessor
from guarantee_email_agent.email.processor_models import AnswerPolicy, ModelSettings
from guarantee_email_agent.instructions.look_up import WARRANTY, LookUp
from guarantee_email_agent.integrations.look_ups import instruction_files, lexicon_files
from guarantee_email_agent.integrations.mail_client import MailClient
from guarantee_email_agent.integrations.services import Services, create_services
from guarantee_email_agent.interpreter.interpreter import InstructionInterpreter
from guarantee_email_agent.ledger.database import LedgerError
from guarantee_email_agent.ledger.ledger import Ledger, open_ledger
from guarantee_email_agent.llm.port import LanguageModel
from guarantee_email_agent.llm.provider import language_model
from guarantee_email_agent.utils.clock import Clock, SystemClock
from guarantee_email_agent.utils.errors import (
    EXIT_FAILURE,
    EXIT_SUCCESS,
    AgentError,
    ConfigurationError,
    IntegrationError,
    MCPConnectionError,
)
from guarantee_email_agent.utils.logging import reopen_log_files

logger = logging.getLogger(__name__)

KEPT_DAYS: Final = 365
"""Days that the ledger remembers a finished mail; its mark in the mailbox lasts longer."""

CONNECT_TIMEOUT_S: Final = 30.0
MODE_NOTES: Final[Mapping[Mode, str]] = {
    "answer": "",
    "drafts": " (replies wait in the Drafts folder, no ticket is opened)",
    "observe": " (nothing is sent, stored or marked)",
}


def run_agent(config: Config, *, once: bool, take_over: bool = False) -> int:
    """The exit code. take_over: serve the mailbox also where another ledger did.

    Raises ConfigurationError and MCPConnectionError for what keeps the agent from starting.
    """
    _forbid_core_files()
    return asyncio.run(_run(config, once, take_over))


async def _run(config: Config, once: bool, take_over: bool) -> int:
    stop, started = asyncio.Event(), asyncio.Event()
    loop, main_task = asyncio.get_running_loop(), asyncio.current_task()

    def on_sigterm() -> None:
        stop.set()
        logger.info("Stopping: no new mail is started, mails in progress are finished")
        if main_task is not None and not started.is_set():
            main_task.cancel()

    loop.add_signal_handler(signal.SIGTERM, on_sigterm)
    loop.add_signal_handler(signal.SIGHUP, reopen_log_files)
    try:
        async with open_daemon(config, stop, take_over=take_over) as (daemon, _):
            started.set()
            return await _watch(daemon, once)
    except asyncio.CancelledError:
        if stop.is_set() and not started.is_set():
            return EXIT_SUCCESS
        raise


async def _watch(daemon: Daemon, once: bool) -> int:
    try:
        await asyncio.to_thread(daemon.worker.ledger.prune, KEPT_DAYS)
    except LedgerError as error:  # the next start does it
        logger.warning("Old entries stay in the ledger for now: %s", error.code)
    await _log_inbox(daemon)
    logger.info("Watching the inbox%s", " once" if once else "")
    complete = True
    try:
        if once:
            complete = await daemon.drain()
        else:
            await daemon.run()
    finally:
        logger.info("%s", _summary(daemon))
    return EXIT_SUCCESS if complete else EXIT_FAILURE


async def _log_inbox(daemon: Daemon) -> None:
    """What the agent is about to do, before it does it: an inbox has a past."""
    settings = daemon.worker.settings
    drafts = daemon.worker.processor.policy.drafts  # in mode answer, too, where replies are written freely
    logger.info("Mode: %s%s", settings.mode, MODE_NOTES["drafts" if drafts else settings.mode])
    try:
        counts = await daemon.count_inbox()
    except IntegrationError as error:  # the first poll says more
        logger.warning("The mails of the inbox cannot be counted: %s", error.code)
        return
    waiting, too_old, left_alone = (counts.get(name, 0) for name in ("unprocessed", "too_old", "left_alone"))
    observed = f", {counts['observed']} observed before" if counts.get("observed") else ""
    logger.info("Inbox: %d mails to answer%s, %d too old, %d left to people", waiting, observed, too_old, left_alone)
    if answer_since(settings, 0.0) > await asyncio.to_thread(daemon.worker.ledger.time):
        logger.warning("agent.answer_since lies in the future: only mails that come after it will be answered")
    if too_old and settings.answer_since == "first-start":
        logger.info("Mails from before the first start are left alone; agent.answer_since names another moment, or all")


@asynccontextmanager
async def open_daemon(
    config: Config, stop: asyncio.Event, observers: Sequence[DaemonObserver] = (), *, take_over: bool = False
) -> AsyncIterator[tuple[Daemon, Services]]:
    """The daemon, and the services that it works with; everything is opened, each connection tried once.

    Raises ConfigurationError for what is missing or bad, instructions included, and MCPConnectionError, with a line for
    each service that cannot be reached.
    """
    clock = SystemClock()
    instructions = instruction_files(config).load()
    async with AsyncExitStack() as stack:
        lexicon = lexicon_files(config)
        model = language_model(config, clock, InstructionInterpreter(lexicon.load))
        stack.push_async_callback(model.aclose)
        key = identity_key(config)
        services = create_services(config, clock, os.environ, key)
        ledger = await asyncio.to_thread(open_ledger, config.secrets.ledger_url or config.agent.ledger, key=key)
        stack.callback(ledger.close)
        stack.push_async_callback(services.close)
        await _test_connections(services, AnswerPolicy.of(config), instructions.look_ups)
        ledger_id = await asyncio.to_thread(ledger.id)

        async def require_ours() -> None:
            require_owner(await services.mail.find_owner(), ledger_id)

        answers = config.agent.mode != "observe"  # an observer may look at anybody's mailbox
        if answers:
            await _claim_mailbox(services.mail, ledger_id, take_over=take_over)
        worker = _create_worker(config, services, model, ledger, key, clock)
        first_start = await asyncio.to_thread(ledger.first_start, key_of_mailbox(worker.mailbox_name, key))
        since = answer_since(config.agent, first_start)
        yield Daemon(worker, clock, stop, observers, since, require_ours if answers else None), services


async def _test_connections(services: Services, policy: AnswerPolicy, look_ups: Sequence[LookUp]) -> None:
    """look_ups: those that topics are served by; the services of others are not needed."""
    tests = [services.mail.test_connection(policy.drafts)]
    if WARRANTY in look_ups:
        tests.append(services.warranty.test_connection())
    tests += (client.test_connection() for client in services.look_ups.values())
    if policy.delivers:  # else no ticket is opened, and the first start of ours would make its database
        tests.append(services.ticketing.test_connection())
    problems = [problem for problem in await asyncio.gather(*map(connection_problem, tests)) if problem is not None]
    if misconfigured := [problem for problem in problems if isinstance(problem, ConfigurationError)]:
        raise misconfigured[0]
    if problems:
        raise MCPConnectionError("\n".join(problem.message for problem in problems), problems[0].code)


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


async def connection_problem(test: Awaitable[bool]) -> AgentError | None:
    """Why a service cannot be used; None if it can. test: its `test_connection`."""
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            await test
    except TimeoutError:
        return IntegrationError(
            f"A service did not answer within {CONNECT_TIMEOUT_S:g} s. Check its server", "mcp_timeout"
        )
    except AgentError as error:
        return error
    return None


def _create_worker(
    config: Config, services: Services, model: LanguageModel, ledger: Ledger, key: bytes, clock: Clock
) -> MailWorker:
    """Raises ConfigurationError for limits that contradict each other."""
    copy_wait_s = config.mailbox.copy_wait_s if config.mailbox.imap.host else 0.0
    needed_s = config.agent.mail_budget_s + copy_wait_s
    if config.agent.lease_s <= needed_s:
        raise ConfigurationError(
            f"agent.lease_s is {config.agent.lease_s:g}, but one mail may take {needed_s:g} s (agent.mail_budget_s and "
            "mailbox.copy_wait_s): another agent would claim it meanwhile. Make agent.lease_s longer",
            "config_invalid_value",
        )
    check_price(config.llm)
    address = config.mailbox.from_address
    processor = EmailProcessor(
        mail=services.mail,
        warranty=services.warranty,
        ticketing=services.ticketing,
        look_ups=services.look_ups,
        llm=model,
        instructions=instruction_files(config),
        model=ModelSettings(config.llm.model, config.llm.max_tokens, config.llm.temperature),
        clock=clock,
        policy=AnswerPolicy.of(config),
        identity_key=key,
        reply_domain=address.rpartition("@")[2] if address else DEFAULT_DOMAIN,
    )
    name = mailbox_name(config)
    return MailWorker(
        services.mail,
        ledger,
        processor,
        config.agent,
        copy_wait_s,
        name,
        process_name(),
        has_live_model=config.llm.provider != "offline",
        max_cost_usd=config.llm.max_cost_per_day,
    )


def mailbox_name(config: Config) -> str:
    """The same for every agent on one inbox, and for no other inbox."""
    mailbox, server = config.mailbox, config.mcp.gmail
    if not server.built_in:
        return " ".join((server.url or str(server.command), *server.args, mailbox.from_address or ""))
    if mailbox.imap.host is None:
        return str(mailbox.maildir)
    return f"{mailbox.imap.user or mailbox.from_address}@{mailbox.imap.host}/{mailbox.imap.folder}"


def _summary(daemon: Daemon) -> str:
    counts, busy = daemon.finished, Counter(daemon.unfinished.values())["busy"]
    return (
        f"Emails answered: {counts['answered']}, drafted: {counts['drafted']}, observed: {counts['observed']}, "
        f"handed over: {counts['handed_over']}, not answered: {counts['not_answered']}, quarantined: "
        f"{counts['quarantined']}, unknown: {counts['unknown']}, left unprocessed: {len(daemon.unfinished) - busy}, "
        f"with another agent: {busy}"
    )


def _forbid_core_files() -> None:
    """A core file would hold customers' mail."""
    try:
        import resource
    except ImportError:  # Windows has neither
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
