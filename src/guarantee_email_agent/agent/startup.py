"""`run`: open everything, watch the inbox, and stop as the signal says."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
from typing import Final

from guarantee_email_agent.agent.connections import Connections, connected
from guarantee_email_agent.agent.daemon import Daemon, OnWorked, nobody_listens
from guarantee_email_agent.agent.mail_worker import MailWorker, WorkLimits
from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.email.identity import DEFAULT_DOMAIN
from guarantee_email_agent.email.processor import EmailProcessor
from guarantee_email_agent.email.processor_models import ModelSettings
from guarantee_email_agent.instructions.instruction_files import InstructionFiles
from guarantee_email_agent.ledger.database import LedgerError
from guarantee_email_agent.ledger.ledger import Ledger
from guarantee_email_agent.utils.clock import SystemClock
from guarantee_email_agent.utils.errors import EXIT_FAILURE, EXIT_SUCCESS, ConfigurationError
from guarantee_email_agent.utils.logging import reopen_log_files

logger = logging.getLogger(__name__)

KEPT_DAYS: Final = 365
"""Days that the ledger remembers a mail that was dealt with; its mark in the mailbox lasts longer."""


def run_agent(config: Config, *, once: bool) -> int:
    """The exit code. Raises ConfigurationError and MCPConnectionError for what keeps the agent from starting."""
    _forbid_core_files()
    return asyncio.run(_run(config, once))


async def _run(config: Config, once: bool) -> int:
    stop, watching = asyncio.Event(), asyncio.Event()
    loop, this = asyncio.get_running_loop(), asyncio.current_task()

    def on_sigterm() -> None:
        stop.set()
        logger.info("Stopping: nothing new is begun, what is in work comes to its end")
        if this is not None and not watching.is_set():
            this.cancel()

    loop.add_signal_handler(signal.SIGTERM, on_sigterm)
    loop.add_signal_handler(signal.SIGHUP, reopen_log_files)
    try:
        async with connected(config, SystemClock()) as connections:
            watching.set()
            return await _watch(build_daemon(config, connections), connections.ledger, stop, once)
    except asyncio.CancelledError:
        if stop.is_set() and not watching.is_set():
            return EXIT_SUCCESS
        raise


async def _watch(daemon: Daemon, ledger: Ledger, stop: asyncio.Event, once: bool) -> int:
    try:
        await asyncio.to_thread(ledger.prune, KEPT_DAYS)
    except LedgerError as error:  # the next start does it
        logger.warning("Old entries stay in the ledger for now: %s", error.code)
    logger.info("Watching the inbox%s", " once" if once else "")
    complete = True
    try:
        if once:
            complete = await daemon.drain(stop)
        else:
            await daemon.run(stop)
    finally:
        logger.info("%s", _tally_line(daemon))
    return EXIT_SUCCESS if complete else EXIT_FAILURE


def build_daemon(config: Config, connections: Connections, on_worked: OnWorked = nobody_listens) -> Daemon:
    """The agent, put together. Raises ConfigurationError for limits that contradict each other."""
    copy_wait_s = config.mailbox.copy_wait_s if config.mailbox.imap.host else 0.0
    needed_s = config.agent.mail_budget_s + copy_wait_s
    if config.agent.lease_s <= needed_s:
        raise ConfigurationError(
            f"agent.lease_s is {config.agent.lease_s:g}, but one mail may take {needed_s:g} s (agent.mail_budget_s and "
            "mailbox.copy_wait_s): another agent would take it up meanwhile. Make agent.lease_s longer",
            "config_invalid_value",
        )
    address, services = config.mailbox.from_address, connections.services
    processor = EmailProcessor(
        mail=services.mail,
        warranty=services.warranty,
        ticketing=services.ticketing,
        llm=connections.model,
        instructions=InstructionFiles(config.instructions.main, config.instructions.scenarios_dir),
        model=ModelSettings(config.llm.model, config.llm.max_tokens, config.llm.temperature),
        clock=connections.clock,
        own_addresses=frozenset({*config.agent.own_addresses, *([address] if address else [])}),
        identity_key=connections.key,
        reply_domain=address.rpartition("@")[2] if address else DEFAULT_DOMAIN,
    )
    limits = WorkLimits(
        budget_s=config.agent.mail_budget_s,
        lease_s=config.agent.lease_s,
        copy_wait_s=copy_wait_s,
        max_attempts=config.agent.max_attempts,
        max_mail_bytes=config.agent.max_mail_bytes,
    )
    owner = f"{socket.gethostname()}:{os.getpid()}"
    worker = MailWorker(services.mail, connections.ledger, processor, limits, _mailbox_name(config), owner)
    return Daemon(
        services.mail, worker, connections.clock, config.agent.concurrency, config.agent.poll_interval_s, on_worked
    )


def _mailbox_name(config: Config) -> str:
    """The same for every agent on one inbox, and for no other inbox."""
    mailbox, server = config.mailbox, config.mcp.gmail
    if not server.built_in:
        return " ".join((server.url or str(server.command), *server.args, mailbox.from_address or ""))
    if mailbox.imap.host is None:
        return str(mailbox.maildir)
    return f"{mailbox.imap.user or mailbox.from_address}@{mailbox.imap.host}/{mailbox.imap.folder}"


def _tally_line(daemon: Daemon) -> str:
    ended, busy = daemon.tally, sum(disposition == "busy" for disposition in daemon.left.values())
    return (
        f"Emails answered: {ended['answered']}, not answered: {ended['not_answered']}, quarantined: "
        f"{ended['quarantined']}, unknown: {ended['unknown']}, left unprocessed: {len(daemon.left) - busy}, with "
        f"another agent: {busy}"
    )


def _forbid_core_files() -> None:
    """A core file would hold customers' mail."""
    try:
        import resource
    except ImportError:  # Windows has neither
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
