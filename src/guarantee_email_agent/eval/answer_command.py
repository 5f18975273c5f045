"""The whole of `answer`: read a mail, let the agent work on it without any effect, and show each step."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.email.parsing.email import Email
from guarantee_email_agent.email.processor_models import AnswerPolicy
from guarantee_email_agent.eval.answer_report import Step, describe_steps, json_report
from guarantee_email_agent.eval.dry_run import DryRun, dry_run
from guarantee_email_agent.eval.mail_file import read_mail_file
from guarantee_email_agent.eval.runner import run_without_event_loop
from guarantee_email_agent.integrations.look_ups import instruction_files
from guarantee_email_agent.reporting.report_files import as_json, check_writable, write_report
from guarantee_email_agent.reporting.terminal import Terminal, TextStream
from guarantee_email_agent.utils.errors import EXIT_FAILURE, EXIT_SUCCESS, IntegrationError, MCPConnectionError
from guarantee_email_agent.utils.text import printable

_CONNECT_TIMEOUT_S = 30.0
_UNWRITABLE = "answer_report_unwritable"


@dataclass(frozen=True, slots=True, kw_only=True)
class LookUpSource:
    """What the warranty system says. answer: a made-up one; empty, it knows no number. ask: the configured one says."""

    answer: Mapping[str, str] = field(default_factory=dict)
    ask: bool = False

    def __str__(self) -> str:
        if self.ask:
            return "asked now"
        return "as given" if self.answer else "nothing given, so no number is known; say --status, or --look-up"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerOptions:
    """What the command line decides. mail: a path, or - for stdin. llm: who answers as the language model."""

    mail: str
    look_up: LookUpSource
    json_file: Path | None = None
    llm: Literal["offline", "live"] = "offline"


def answer_mail(options: AnswerOptions, config: Config, stream: TextStream, read_stdin: Callable[[int], bytes]) -> int:
    """Show what the agent would do; 0 where the mail comes to an outcome, 1 where the agent stops before.

    Raises ProcessingError for what is no mail, InstructionError and ConfigurationError for bad files and a report that
    cannot be written, MCPConnectionError for a warranty system that cannot be reached.
    """
    if options.json_file is not None:
        check_writable(options.json_file, _UNWRITABLE)
    _, email = read_mail_file(options.mail, read_stdin)
    instructions = instruction_files(config).load()
    # What would leave unattended is shown, whatever becomes of it in the configured mode.
    policy = replace(AnswerPolicy.of(config), mode="answer", reply_mode="approved")
    run = run_dry(email, config, policy, options.look_up, live=options.llm == "live")
    steps = describe_steps(run, instructions, str(options.look_up))
    _print_steps(Terminal(stream), steps, run)
    if options.json_file is not None:
        write_report(options.json_file, as_json(json_report(run, steps)), _UNWRITABLE)
    return EXIT_SUCCESS if run.report.success else EXIT_FAILURE


def run_dry(email: Email, config: Config, policy: AnswerPolicy, look_up: LookUpSource, *, live: bool = False) -> DryRun:
    """One mail without any effect, with the configured warranty system where that is to be asked."""
    answers = {"warranty_api": look_up.answer} if look_up.answer else {}
    if not look_up.ask and not live:
        return run_without_event_loop(dry_run(email, config, answers, policy=policy))
    import asyncio

    return asyncio.run(_run_with_services(email, config, policy, look_up, answers, live=live))


async def _run_with_services(
    email: Email,
    config: Config,
    policy: AnswerPolicy,
    look_up: LookUpSource,
    answers: Mapping[str, Mapping[str, str]],
    *,
    live: bool,
) -> DryRun:
    import os

    from guarantee_email_agent.integrations.services import create_warranty_client
    from guarantee_email_agent.llm.provider import live_model
    from guarantee_email_agent.utils.clock import SystemClock

    clock = SystemClock()
    async with AsyncExitStack() as stack:
        warranty = model = None
        if live:
            model = live_model(config, clock)
            stack.push_async_callback(model.aclose)
        if look_up.ask:
            warranty = create_warranty_client(config, clock, os.environ)
            stack.push_async_callback(warranty.close)
            await connected(warranty.test_connection())
        return await dry_run(email, config, answers, policy=policy, warranty=warranty, model=model, clock=clock)


async def connected(test: Awaitable[bool]) -> None:
    """Wait for a service's `test_connection`. Raises MCPConnectionError where it cannot be used."""
    import asyncio

    try:
        async with asyncio.timeout(_CONNECT_TIMEOUT_S):
            await test
    except TimeoutError:
        message = f"A service did not answer within {_CONNECT_TIMEOUT_S:g} s. Check its server"
        raise MCPConnectionError(message, "mcp_timeout") from None
    except IntegrationError as error:
        raise MCPConnectionError(error.message, error.code, error.details) from None


def _print_steps(terminal: Terminal, steps: list[Step], run: DryRun) -> None:
    for step in steps:
        terminal.outcome(f"{'✓' if step.good else '✗'} {step.name}: {printable(step.text)}")
        for line in step.lines:
            terminal.line(f"    {printable(line)}".rstrip())
    terminal.line(f"Outcome: {run.outcome.replace('_', ' ')}. Nothing was sent.")
    terminal.flush()
