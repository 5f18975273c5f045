"""The front door: parse arguments, call one function, turn its outcome into an exit code.

argparse and not one of the richer libraries: those take 80 to 130 ms to load, half of what a suite of fifty scenarios
may take as a whole process.
"""

from __future__ import annotations

import argparse
import importlib
import logging
import os
import sys
from collections.abc import Sequence
from typing import Final

from guarantee_email_agent.cli.arguments import (
    EXIT_CODES,
    INTERRUPTED,
    PROGRAM,
    Parser,
    flush_stdout,
    open_closed_streams,
    results_stream,
)
from guarantee_email_agent.utils.distribution import __version__
from guarantee_email_agent.utils.errors import (
    EXIT_CONFIGURATION,
    EXIT_EVALUATION,
    EXIT_FAILURE,
    EXIT_INTERRUPTED,
    EXIT_SUCCESS,
    AgentError,
)
from guarantee_email_agent.utils.text import printable

logger = logging.getLogger(__name__)

_COMMANDS: Final = (
    *("eval", "run", "check", "grade", "solve", "answer", "capture", "mock", "init", "authorize"),
    *("sample", "seal", "rehearse", "judge"),
    *("show", "compare", "stale", "view"),
    *("status", "log", "release", "retry", "hand-over", "mcp-server"),
)
"""As `--help` lists them; `add_NAME` in the module of that name, or in the one below, says what each takes."""
_MODULES: Final = {
    "run": "run_agent",  # a module "run" of this package would take the place of the function
    "seal": "sample",
    "rehearse": "sample",
    "release": "steering",
    "retry": "steering",
    "hand-over": "steering",
}


def run(arguments: Sequence[str]) -> int:
    """Run one command; returns the exit code and lets no exception out."""
    open_closed_streams()
    try:
        parser = _parser(arguments[:1])
        if not arguments:  # bad usage still, so nothing for stdout
            parser.print_help(sys.stderr)
            return EXIT_CONFIGURATION
        options = parser.parse_args(list(arguments))
        options.github = None
        code = _flush_output(_run_as_step(options) if os.environ.get("GITHUB_ACTIONS") == "true" else _run(options))
    except SystemExit as stop:  # argparse's way to end after --help and after bad usage, also of an MCP server
        return stop.code if isinstance(stop.code, int) else EXIT_CONFIGURATION
    logger.info("Exiting with code %d", code)
    return code


def _run_as_step(options: argparse.Namespace) -> int:
    from guarantee_email_agent.runlog.views.github_actions import github_step

    try:
        with github_step(os.environ, results_stream(options)) as options.github:
            return _run(options)
    except AgentError as error:  # what is written before and after it cannot be
        _print_error(error)
        return error.exit_code


def _run(options: argparse.Namespace) -> int:
    try:
        code: int = options.run(options)
    except AgentError as error:
        _print_error(error)
        return error.exit_code
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except Exception as error:
        logger.debug("Unexpected failure", exc_info=True)
        what = printable(f"unexpected {type(error).__name__}: {error}")
        print(f"{PROGRAM}: {what}. Please report it with the log at level DEBUG", file=sys.stderr)
        return EXIT_FAILURE
    return code


def _print_error(error: AgentError) -> None:
    logger.debug("%s", error.code, exc_info=True)
    for line in error.message.splitlines():
        print(f"{PROGRAM}: {printable(line)}", file=sys.stderr)


def _flush_output(code: int) -> int:
    """`code`, or a failure where what was printed could not be written."""
    try:
        flush_stdout()
    except AgentError as error:
        if code in (EXIT_SUCCESS, EXIT_EVALUATION):
            _print_error(error)
        return EXIT_FAILURE
    return code


def _parser(first: Sequence[str]) -> Parser:
    """first: the first argument. Where it names a command, no other one is loaded: that takes 10 ms."""
    parser = Parser(
        prog=PROGRAM,
        description="Answers warranty mail on its own, and proves on a scenario suite that it may.",
        epilog=f"exit codes:\n{EXIT_CODES}{INTERRUPTED}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name in first if first and first[0] in _COMMANDS else _COMMANDS:
        identifier = name.replace("-", "_")
        module = importlib.import_module(f"{__name__}.{_MODULES.get(name, identifier)}")
        getattr(module, f"add_{identifier}")(commands)
    return parser
