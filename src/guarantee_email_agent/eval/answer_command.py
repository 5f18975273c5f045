"""The whole of `answer`: read a mail, let the agent work on it without any effect, and show each step."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.email.parsing.email import MAX_MAIL_BYTES, Email
from guarantee_email_agent.email.parsing.parse import parse_email
from guarantee_email_agent.email.processor_models import AnswerPolicy
from guarantee_email_agent.eval.dry_run import DryRun, Step, describe_steps, dry_run, json_report, with_previous_reply
from guarantee_email_agent.eval.look_up_source import LookUpSource
from guarantee_email_agent.eval.models import PreviousReply
from guarantee_email_agent.eval.runner import run_without_event_loop
from guarantee_email_agent.files.report_files import as_json, check_writable, write_report
from guarantee_email_agent.files.text_file import InputFileError, read_bytes
from guarantee_email_agent.instructions.look_up import LookUp
from guarantee_email_agent.services.look_ups import instruction_files
from guarantee_email_agent.utils.errors import (
    EXIT_FAILURE,
    EXIT_SUCCESS,
    IntegrationError,
    MCPConnectionError,
    ProcessingError,
)
from guarantee_email_agent.utils.terminal import Terminal, TextStream
from guarantee_email_agent.utils.text import printable

_OUTLOOK_FILE: Final = b"\xd0\xcf\x11\xe0"
_MAX_WAIT_S = 60.0  # somebody sits there and sees nothing of it
_UNWRITABLE = "answer_report_unwritable"


def read_mail_file(path: str, read_stdin: Callable[[int], bytes]) -> tuple[bytes, Email]:
    """The mail (RFC 5322) in a file, as it is and parsed; `-` is stdin. read_stdin: at most so many bytes of it.

    Raises ProcessingError, with the file's name and a remedy, for what cannot be read, is too large, is empty, is
    Outlook's own format, is no mail or has no sender.
    """
    name = "stdin" if path == "-" else printable(path)
    raw = _read(path, name, read_stdin)
    try:
        return raw, parse_email(raw)
    except ProcessingError as error:
        raise ProcessingError(f"{name}: {error.message}", error.code) from None


def _read(path: str, name: str, read_stdin: Callable[[int], bytes]) -> bytes:
    if path == "-":
        raw = read_stdin(MAX_MAIL_BYTES + 1)
        if len(raw) > MAX_MAIL_BYTES:
            raise ProcessingError(f"{name}: the mail is larger than {MAX_MAIL_BYTES:,} bytes", "mail_too_large")
    else:
        try:
            raw = read_bytes(path, MAX_MAIL_BYTES)
        except InputFileError as error:
            code = error.code.replace("document_", "mail_file_")
            raise ProcessingError(f"{name}: {error.message}", code) from None
    if not raw.strip():
        raise ProcessingError(f"{name}: there is no mail in it, not a word", "mail_file_empty")
    if raw.startswith(_OUTLOOK_FILE):
        raise ProcessingError(
            f"{name}: this is a file of Outlook's own. Save the mail as .eml, from Outlook on the web or by dragging "
            "it into another mail program",
            "mail_file_outlook",
        )
    # Some programs put a line in front that only mbox files have: `From ada@example.com Sat Jan 17 …`.
    return raw.partition(b"\n")[2] if raw.startswith(b"From ") else raw


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerOptions:
    """What the command line decides. mail: a path, or - for stdin. llm: who answers as the language model.

    previous_reply: `SCENARIO[:TICKET]` of the reply that the mail answers; None for a first mail.
    """

    mail: str
    look_up: LookUpSource
    previous_reply: str | None = None
    json_file: Path | None = None
    llm: Literal["offline", "live"] = "offline"


def answer_mail(options: AnswerOptions, config: Config, stream: TextStream, read_stdin: Callable[[int], bytes]) -> int:
    """Show what the agent would do; 0 where the mail comes to an outcome, 1 where the agent stops before.

    Raises ProcessingError for what is no mail, InstructionError and ConfigurationError for bad files and a report that
    cannot be written, MCPConnectionError for a look-up's service that cannot be reached.
    """
    if options.json_file is not None:
        check_writable(options.json_file, _UNWRITABLE)
    _, email = read_mail_file(options.mail, read_stdin)
    instructions = instruction_files(config).load()
    # What would leave unattended is shown, whatever becomes of it in the configured mode.
    policy = replace(AnswerPolicy.of(config), mode="answer")
    options.look_up.check_asked(instructions.look_ups)
    previous, email = with_previous_reply(options.previous_reply, email, instructions.scenarios)
    services = DryServices(options.look_up, instructions.look_ups, live=options.llm == "live")
    run = run_dry(email, config, policy, services, previous)
    steps = list(describe_steps(run, instructions, options.look_up))
    _print_steps(Terminal(stream), steps, run)
    if options.json_file is not None:
        write_report(options.json_file, as_json(json_report(run, steps)), _UNWRITABLE)
    return EXIT_SUCCESS if run.report.success else EXIT_FAILURE


@dataclass(frozen=True, slots=True)
class DryServices:
    """What answers a mail that is tried. look_ups: of the declared topics. live: the configured model answers."""

    source: LookUpSource
    look_ups: tuple[LookUp, ...]
    live: bool = False


def run_dry(
    email: Email, config: Config, policy: AnswerPolicy, services: DryServices, previous: PreviousReply | None = None
) -> DryRun:
    """One mail without any effect, with the configured look-ups where those are to be asked.

    previous: what we wrote to the sender before. Raises as `answer_mail` does.
    """
    if not services.source.ask and not services.live:
        answers = services.source.mock_responses(config)
        return run_without_event_loop(dry_run(email, config, answers, policy=policy, previous=previous))
    import asyncio

    async def run_with_services() -> DryRun:
        async with dry_runs(config, policy, services) as run:
            return await run(email, previous)

    return asyncio.run(run_with_services())


@asynccontextmanager
async def dry_runs(
    config: Config, policy: AnswerPolicy, services: DryServices
) -> AsyncIterator[Callable[[Email, PreviousReply | None], Awaitable[DryRun]]]:
    """Runs mails without any effect, one after another, on the same connections. Raises as `answer_mail` does."""
    from guarantee_email_agent.llm.provider import live_model
    from guarantee_email_agent.services.services import create_look_up_client
    from guarantee_email_agent.utils.clock import SystemClock

    clock = SystemClock()
    async with AsyncExitStack() as stack:
        clients: dict[str, Any] = {}
        model = None
        if services.live:
            model = live_model(config, clock, max_wait_s=_MAX_WAIT_S)
            stack.push_async_callback(model.aclose)
        for look_up in services.look_ups if services.source.ask else ():
            client = clients[look_up.name] = create_look_up_client(look_up.name, config, clock)
            stack.push_async_callback(client.close)
            await connected(client.test_connection())
        answers = services.source.mock_responses(config)

        async def run(email: Email, previous: PreviousReply | None) -> DryRun:
            return await dry_run(
                email,
                config,
                answers,
                policy=policy,
                previous=previous,
                look_ups=clients,
                model=model,
                clock=clock,
            )

        yield run


async def connected(test: Awaitable[bool]) -> None:
    """Wait for a service's `test_connection`. Raises MCPConnectionError where it cannot be used."""
    from guarantee_email_agent.services.services import connection_problem

    if (problem := await connection_problem(test)) is not None:
        raise MCPConnectionError.of(problem) if isinstance(problem, IntegrationError) else problem


def _print_steps(terminal: Terminal, steps: list[Step], run: DryRun) -> None:
    for step in steps:
        terminal.outcome(f"{'✓' if step.good else '✗'} {step.name}: {printable(step.text)}")
        for line in step.lines:
            terminal.line(f"    {printable(line)}".rstrip())
    terminal.line(f"Outcome: {run.outcome.replace('_', ' ')}. Nothing was sent.")
    terminal.flush()
