"""`check`: everything that `run` needs, checked part by part, each reported in a line."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

from guarantee_email_agent.agent.identity_key import (
    key_of_location,
    key_of_mailbox,
    known_identity_key,
    mailbox_name,
)
from guarantee_email_agent.agent.inbox import answer_since, count_inbox, inbox_filter, require_clock
from guarantee_email_agent.agent.mail_model import check_price
from guarantee_email_agent.agent.monitoring import check_place, require_packages, shown_place
from guarantee_email_agent.agent.startup import require_owner
from guarantee_email_agent.agent.worker_setup import REMEDY, RequiredEvaluation, required_evaluation
from guarantee_email_agent.config.loader import built_in_files, load_config
from guarantee_email_agent.config.mcp_server import McpServer
from guarantee_email_agent.config.settings import Config, Mode
from guarantee_email_agent.instructions.file_checks import instruction_warnings
from guarantee_email_agent.instructions.lexicon import lexicon_folder
from guarantee_email_agent.instructions.look_up import WARRANTY
from guarantee_email_agent.instructions.translations import incomplete_languages
from guarantee_email_agent.ledger.ledger import Ledger
from guarantee_email_agent.ledger.opening import open_ledger_to_read
from guarantee_email_agent.llm.provider import check_connection
from guarantee_email_agent.services import services
from guarantee_email_agent.services.clients import LookUpClient, MailClient, TicketingClient
from guarantee_email_agent.services.look_ups import instruction_files
from guarantee_email_agent.utils.clock import LocalTime, SystemClock
from guarantee_email_agent.utils.errors import (
    EXIT_CONFIGURATION,
    EXIT_FAILURE,
    EXIT_MCP_CONNECTION,
    EXIT_SUCCESS,
    AgentError,
    ConfigurationError,
    InstructionError,
    IntegrationError,
    LLMError,
)
from guarantee_email_agent.utils.log_file import open_log_file
from guarantee_email_agent.utils.terminal import Terminal, TextStream
from guarantee_email_agent.utils.text import printable

_CLOCK = SystemClock()
LABELS: Final = {
    "unprocessed": "to answer",
    "observed": "observed, and left to people",
    "too_old": "too old (agent.answer_since, agent.max_age_days)",
    "left_alone": "left to people (answered, flagged, deleted or drafts)",
}


def check_all(config_file: Path | None, out: TextStream, *, inbox: bool, mode: Mode | None = None) -> int:
    """Print a line for each part; the exit code is that of the worst: 2 for configuration, then 3 for a connection.

    mode: instead of `agent.mode`. Only what the mode needs is tried.
    """
    report = _Report(Terminal(out))
    try:
        config = load_config(config_file)
    except ConfigurationError as error:
        report.failed("Configuration", error)
        return report.exit_code
    if mode is not None:
        config = replace(config, agent=replace(config.agent, mode=mode))
    report.passed("Configuration", str(config.source or "built-in defaults"))
    asyncio.run(_check(config, report, inbox))
    return report.exit_code


async def _check(config: Config, report: _Report, inbox: bool) -> None:
    _report_policy(config, report)
    with report.checking("Language model"):
        check_price(config.llm)
    if config.logging.file is not None:
        with report.checking("Log"):
            open_log_file(config.logging.file).close()
            report.passed("Log", str(config.logging.file))
    if (place := config.metrics.place) is not None:
        with report.checking("Metrics"):  # the agent that runs may have the port
            require_packages(config.metrics)
            check_place(*place)
            report.passed("Metrics", shown_place(*place))
    warranty_needed = True
    with report.checking("Instructions"):
        instructions = instruction_files(config).load()
        warranty_needed = any(each.is_of_warranties for each in instructions.look_ups)
        built_in = ", built-in" if "instructions" in built_in_files(config) else ""
        report.passed("Instructions", f"main and {len(instructions.scenarios)} scenarios{built_in}")
        for sentence in incomplete_languages(instructions.scenarios, instructions.default_language):
            report.weak("Languages", sentence)
        folders = config.instructions.scenarios_dir, lexicon_folder(config.instructions.main)
        for part, sentence in instruction_warnings(instructions, *folders):
            report.weak(part, sentence)
        _report_evaluation(config, report)
    with report.checking("Language model"):
        await check_connection(config, _CLOCK)
        report.passed("Language model", "offline" if config.llm.provider == "offline" else config.llm.model)
    key, ledger, ledger_was_read = b"", None, False
    with report.checking("Ledger"):
        # Neither ledger nor key is made: `run` may have another LEDGER_KEY than whoever checks.
        location = config.ledger_location
        key = known_identity_key(config) or os.urandom(32)
        ledger = open_ledger_to_read(location, key=key)
        made = "" if ledger else " (the first run makes it)"
        report.passed("Ledger", f"{'LEDGER_URL' if config.secrets.ledger_url else location}{made}")
        ledger_was_read = True
    parts = _service_parts(config, key, warranty_needed=warranty_needed)
    drafts = config.agent.mode == "drafts"
    opened = await asyncio.gather(*(_connect(make, drafts=drafts, is_tried=tried) for _, _, make, tried in parts))
    mail = opened[0][0]
    try:
        for (part, described, _, _), (service, note) in zip(parts, opened, strict=True):
            if isinstance(service, AgentError):
                report.failed(part, service)
            else:
                report.passed(part, described, note)
        # Of a ledger that cannot be read nobody knows whether it is the mailbox's own, nor what it knows of the inbox.
        if ledger_was_read and config.agent.mode != "observe" and isinstance(mail, MailClient):
            with report.checking("Mailbox"):
                ledger_id = await asyncio.to_thread(ledger.id) if ledger else "a new one"
                require_owner(await mail.find_owner(), ledger_id)
        if ledger_was_read and isinstance(mail, MailClient):
            with report.checking("Clock"):
                await _check_clock(mail, config, ledger, key, report)
        if ledger_was_read and inbox and isinstance(mail, MailClient):
            await _count_inbox(mail, config, ledger, key, report)
    finally:
        await asyncio.gather(*(service.close() for service, _ in opened if not isinstance(service, AgentError)))
        if ledger is not None:
            ledger.close()


async def _check_clock(mail: MailClient, config: Config, ledger: Ledger | None, key: bytes, report: _Report) -> None:
    """By a clock that is behind the inbox `run` does not start; by one that was ahead it answers too little."""
    by_first_start = config.agent.answer_since == "first-start"
    mailbox_key = key_of_mailbox(mailbox_name(config), key)
    now, first_start = await asyncio.to_thread(_moments, ledger, mailbox_key)
    if by_first_start and first_start is None:
        await require_clock(mail, now)
        return
    if (since := answer_since(config.agent, now if first_start is None else first_start)) > now:
        what = "the first start" if by_first_start else "agent.answer_since"
        at = f"{LocalTime().at(since):%Y-%m-%d %H:%M:%S %z}"
        now_told = ", unless `run` finds an earlier moment for it" if by_first_start else ""
        text = f"{what}, {at}, lies in the future: only mails that come after it will be answered{now_told}"
        report.weak("Clock", text)


def _report_policy(config: Config, report: _Report) -> None:
    """What the agent may do, and where the settings leave a door open."""
    folder = config.tickets.database.parent
    if hasattr(os, "geteuid") and os.geteuid() == 0 and folder.exists() and (owner := folder.stat().st_uid) != 0:
        made = "what a check makes (log, tickets, mail folders) that user could not write later"
        report.weak("User", f"root checks, and {folder} belongs to user {owner}: {made}. Check as the agent's own user")
    report.passed("Mode", config.agent.mode)
    if config.agent.sender_check != "off":
        report.passed("Sender check", f"{config.agent.sender_check}, by {config.agent.authserv_id}")
        return
    report.weak(
        "Sender check",
        "off: whoever names a serial number learns its warranty, whatever address stands in From. Set "
        "agent.sender_check if your mail server writes Authentication-Results",
    )
    if config.agent.trusted_forms:
        report.weak("Trusted forms", "without agent.sender_check a forged mail of a form has us write to anybody")


def _report_evaluation(config: Config, report: _Report) -> None:
    evaluation = RequiredEvaluation(config)
    with report.checking("Evaluation"):
        if (proof := evaluation.proof()).state == "passed":
            report.passed("Evaluation", str(proof))
        elif required_evaluation(config) is None:
            report.weak("Evaluation", str(proof))
        elif (proved := evaluation.last_proved()) is not None:
            report.weak("Evaluation", f"{proof}: `run` goes on with the files that passed in {proved[0]}. {REMEDY}")
        else:
            raise InstructionError(f"{proof}. {REMEDY}", "instruction_not_evaluated")


_Part: TypeAlias = tuple[str, str, Callable[[], Any], bool]
"""A service: what the report calls it and says of it, how it is made, and whether it is tried."""


def _service_parts(config: Config, key: bytes, *, warranty_needed: bool) -> list[_Part]:
    """The mailbox first."""
    mcp, tickets_needed = config.mcp, config.agent.mode == "answer"
    warranties = (
        _describe(mcp.warranty_api, config.warranties.file) if warranty_needed else "not needed, no topic asks it"
    )
    tickets = "not needed, no ticket is opened"
    if tickets_needed:
        tickets = _describe(mcp.ticketing_system, config.tickets.database)
    given = config, _CLOCK
    return [
        ("Mailbox", _describe_mailbox(config), lambda: services.create_mail_client(*given, key), True),
        (
            "Warranty system",
            warranties,
            partial(services.create_look_up_client, WARRANTY.name, *given),
            warranty_needed,
        ),
        *(
            (
                f"Look-up {name}",
                _describe(each.server, each.table),
                partial(services.create_look_up_client, name, *given),
                True,
            )
            for name, each in config.look_ups.items()
        ),
        ("Ticketing", tickets, lambda: services.create_ticketing_client(*given), tickets_needed),
    ]


async def _connect(make: Callable[[], Any], *, drafts: bool, is_tried: bool) -> tuple[Any, str]:
    """The service, if it answers, and what a sample call told; else the problem, with the service closed."""
    try:
        service = make()
    except ConfigurationError as error:
        return error, ""
    if not is_tried:
        return service, ""
    told = asyncio.ensure_future(_test(service, drafts=drafts))
    if (problem := await services.connection_problem(told)) is None:
        return service, told.result()
    await service.close()
    return problem, ""


async def _test(service: MailClient | LookUpClient | TicketingClient, *, drafts: bool) -> str:
    if isinstance(service, MailClient):
        await service.test_connection(drafts)
        return ""
    await service.test_connection()
    return await service.test_answer()


async def _count_inbox(mail: MailClient, config: Config, ledger: Ledger | None, key: bytes, report: _Report) -> None:
    name = mailbox_name(config)
    try:
        now, first_start = await asyncio.to_thread(_moments, ledger, key_of_mailbox(name, key))
        since = answer_since(config.agent, now if first_start is None else first_start)
        mails = inbox_filter(config.agent, since, now)
        counts = await count_inbox(mail, ledger, mails, partial(key_of_location, name, key=key))
    except IntegrationError as error:
        report.failed("Inbox", error)
        return
    report.passed("Inbox", f"{sum(counts.values())} mails")
    for outcome, count in counts.items():
        report.terminal.line(f"    {LABELS.get(outcome, outcome.replace('_', ' '))}: {count}")


def _moments(ledger: Ledger | None, mailbox_key: str) -> tuple[float, float | None]:
    """In seconds since 1970: now on the clock that `run` would have, and when it was first started, if it was."""
    if ledger is None:
        return time.time(), None
    return ledger.time(), ledger.first_start_if_known(mailbox_key)


def _describe_mailbox(config: Config) -> str:
    mailbox, imap, smtp = config.mailbox, config.mailbox.imap, config.mailbox.smtp
    if imap.host is None:
        return _describe(config.mailbox.server, mailbox.maildir)
    user = imap.user or mailbox.from_address
    servers = f"{imap.folder} of {user} at {imap.host}:{imap.port}, replies by {smtp.host or imap.host}:{smtp.port}"
    return _describe(config.mailbox.server, servers)


def _describe(server: McpServer, built_in: object) -> str:
    return str(built_in) if server.built_in else server.url or " ".join((str(server.command), *server.args))


class _Report:
    """A line for each part as it is checked, and the exit code for all of them."""

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal
        self._codes: set[int] = set()

    @property
    def exit_code(self) -> int:
        """Of the worst: what a user has to correct comes before what may pass."""
        worst_first = (EXIT_CONFIGURATION, EXIT_MCP_CONNECTION, EXIT_FAILURE)
        return next((code for code in worst_first if code in self._codes), EXIT_SUCCESS)

    @contextmanager
    def checking(self, part: str) -> Iterator[None]:
        try:
            yield
        except AgentError as error:
            self.failed(part, error)

    def passed(self, part: str, detail: str, note: str = "") -> None:
        """note: a sentence more, if there is one."""
        self.terminal.outcome(f"✓ {part}: {printable(detail)}")
        if note:
            self.terminal.line(f"    {printable(note)}")

    def weak(self, part: str, detail: str) -> None:
        """A setting that is allowed and worth a thought."""
        self.terminal.line(f"⚠️ {part}: {printable(detail)}")

    def failed(self, part: str, error: AgentError) -> None:
        lines = map(printable, error.message.splitlines() or [error.code])
        self.terminal.outcome(f"✗ {part}: " + "\n    ".join(lines))
        self._codes.add(_exit_code(error))


def _exit_code(error: AgentError) -> int:
    if isinstance(error, LLMError):
        return EXIT_FAILURE if error.retryable else EXIT_CONFIGURATION
    return EXIT_MCP_CONNECTION if isinstance(error, IntegrationError) else error.exit_code
