"""`check`: everything that `run` needs, tried one by one, each with a line of its own."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol, TypeVar

from guarantee_email_agent.agent.identity_key import identity_key
from guarantee_email_agent.agent.startup import connection_problem
from guarantee_email_agent.config.loader import load_config
from guarantee_email_agent.config.settings import Config, McpServer
from guarantee_email_agent.instructions.instruction_files import InstructionFiles
from guarantee_email_agent.integrations.mail_client import MailClient
from guarantee_email_agent.integrations.services import (
    create_mail_client,
    create_ticketing_client,
    create_warranty_client,
)
from guarantee_email_agent.interpreter.interpreter import InstructionInterpreter
from guarantee_email_agent.ledger.ledger import Ledger, open_ledger
from guarantee_email_agent.llm.provider import check_connection, language_model
from guarantee_email_agent.reporting.terminal import Terminal, TextStream
from guarantee_email_agent.utils.clock import SystemClock
from guarantee_email_agent.utils.errors import (
    EXIT_CONFIGURATION,
    EXIT_FAILURE,
    EXIT_MCP_CONNECTION,
    EXIT_SUCCESS,
    AgentError,
    ConfigurationError,
    IntegrationError,
    LLMError,
)
from guarantee_email_agent.utils.logging import open_log_file
from guarantee_email_agent.utils.printable import printable

_CLOCK = SystemClock()


class _Tested(Protocol):
    """What a service is to `check`."""

    async def test_connection(self) -> bool: ...
    async def close(self) -> None: ...


_Service = TypeVar("_Service", bound=_Tested)


def check_all(config_file: Path | None, out: TextStream, *, inbox: bool) -> int:
    """Print a line for each part; the exit code is that of the worst: 2 for configuration, then 3 for a connection."""
    report = _Report(Terminal(out))
    try:
        config = load_config(config_file)
    except ConfigurationError as error:
        report.bad("Configuration", error)
        return report.exit_code
    report.good("Configuration", str(config.source or "built-in defaults"))
    asyncio.run(_check(config, report, inbox))
    return report.exit_code


async def _check(config: Config, report: _Report, inbox: bool) -> None:
    if (log := config.logging.file) is not None:
        report.check("Log", lambda: _log_file(log))
    report.check("Instructions", lambda: _instructions(config))
    await report.check_async("Language model", _model(config))
    key, ledger = _ledger(config, report)
    mail, warranty, ticketing = await asyncio.gather(
        _connected(lambda: create_mail_client(config, _CLOCK, os.environ, key)),
        _connected(lambda: create_warranty_client(config, _CLOCK, os.environ)),
        _connected(lambda: create_ticketing_client(config, _CLOCK, os.environ)),
    )
    try:
        report.service("Mailbox", mail, _mailbox(config))
        report.service("Warranty system", warranty, _place(config.mcp.warranty_api, config.warranties.file))
        report.service("Ticketing", ticketing, _place(config.mcp.ticketing_system, config.tickets.database))
        if inbox and isinstance(mail, MailClient):
            await _count_inbox(mail, ledger, report)
    finally:
        await asyncio.gather(
            *(service.close() for service in (mail, warranty, ticketing) if not isinstance(service, AgentError))
        )
        if ledger is not None:
            ledger.close()


async def _connected(make: Callable[[], _Service]) -> _Service | AgentError:
    """The service, if it answers; else why not, and nothing of it is left running."""
    try:
        service = make()
    except ConfigurationError as error:
        return error
    problem = await connection_problem(service.test_connection())
    if problem is not None:
        await service.close()
        return problem
    return service


async def _count_inbox(mail: MailClient, ledger: Ledger | None, report: _Report) -> None:
    """Every mail of the inbox, by what became of it: as the mailbox itself has it."""
    try:
        counts = await mail.count_by_outcome()
    except IntegrationError as error:
        report.bad("Inbox", error)
        return
    report.good("Inbox", f"{sum(counts.values())} mails")
    for outcome, count in counts.items():
        report.line(f"    {outcome.replace('_', ' ')}: {count}")
    if ledger is None:
        return
    for entry in await asyncio.to_thread(ledger.parked):
        report.line(f"    {entry.outcome}: mail {entry.mail_key[:12]} ({entry.reason or 'no reason'})")
    for entry in await asyncio.to_thread(ledger.unfinished):
        last = f"last: {entry.reason}" if entry.reason else f"in the hands of {entry.owner}"
        report.line(f"    unfinished: mail {entry.mail_key[:12]} (tries: {entry.attempts}, {last})")


def _log_file(file: Path) -> str:
    open_log_file(file).close()
    return str(file)


def _instructions(config: Config) -> str:
    files = InstructionFiles(config.instructions.main, config.instructions.scenarios_dir)
    return f"main and {len(files.load().scenarios)} scenarios"


async def _model(config: Config) -> str:
    model = language_model(config, _CLOCK, InstructionInterpreter())
    try:
        await check_connection(model, config)
    finally:
        await model.aclose()
    return "offline" if config.llm.provider == "offline" else config.llm.model


def _ledger(config: Config, report: _Report) -> tuple[bytes, Ledger | None]:
    """The key and the ledger, as far as they can be had."""
    location, key = config.secrets.ledger_url or config.agent.ledger, b""
    try:
        key = identity_key(config)
        ledger = open_ledger(location, key=key)
    except AgentError as error:
        report.bad("Ledger", error)
        return key, None
    report.good("Ledger", "LEDGER_URL" if config.secrets.ledger_url else location)
    return key, ledger


def _mailbox(config: Config) -> str:
    mailbox = config.mailbox
    imap, smtp = mailbox.imap, mailbox.smtp
    if imap.host is None:
        return _place(config.mcp.gmail, mailbox.maildir)
    user = imap.user or mailbox.from_address
    place = f"{imap.folder} of {user} at {imap.host}:{imap.port}, replies by {smtp.host or imap.host}:{smtp.port}"
    return _place(config.mcp.gmail, place)


def _place(server: McpServer, built_in: object) -> str:
    if server.built_in:
        return str(built_in)
    return server.url or " ".join((str(server.command), *server.args))


class _Report:
    """Lines as they come, and the exit code that they come to."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._codes: set[int] = set()

    @property
    def exit_code(self) -> int:
        """Of the worst: what a user has to set right before what may heal."""
        worst_first = (EXIT_CONFIGURATION, EXIT_MCP_CONNECTION, EXIT_FAILURE)
        return next((code for code in worst_first if code in self._codes), EXIT_SUCCESS)

    def good(self, what: str, detail: str) -> None:
        self._terminal.outcome(f"✓ {what}: {printable(detail)}")

    def bad(self, what: str, error: AgentError) -> None:
        first, *others = error.message.splitlines() or [error.code]
        self._terminal.outcome(
            "\n".join([f"✗ {what}: {printable(first)}", *(f"    {printable(line)}" for line in others)])
        )
        self._codes.add(_exit_code(error))

    def service(self, what: str, service: object, place: str) -> None:
        if isinstance(service, AgentError):
            self.bad(what, service)
        else:
            self.good(what, place)

    def line(self, text: str) -> None:
        self._terminal.line(text)

    def check(self, what: str, detail: Callable[[], str]) -> None:
        try:
            self.good(what, detail())
        except AgentError as error:
            self.bad(what, error)

    async def check_async(self, what: str, detail: Awaitable[str]) -> None:
        try:
            self.good(what, await detail)
        except AgentError as error:
            self.bad(what, error)


def _exit_code(error: AgentError) -> int:
    if isinstance(error, LLMError):
        return EXIT_FAILURE if error.details.get("retryable") else EXIT_CONFIGURATION
    return EXIT_MCP_CONNECTION if isinstance(error, IntegrationError) else error.exit_code
