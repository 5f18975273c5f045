"""The front door: parse arguments, call one function, turn its outcome into an exit code.

argparse and not one of the richer libraries: those take 80 to 130 ms to load, half of what a suite of fifty scenarios
may take as a whole process.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TextIO

from guarantee_email_agent import __version__
from guarantee_email_agent.utils.errors import (
    EXIT_CONFIGURATION,
    EXIT_FAILURE,
    EXIT_INTERRUPTED,
    AgentError,
    ConfigurationError,
)

if TYPE_CHECKING:
    from guarantee_email_agent.config.models import Config

PROGRAM = "guarantee-email-agent"
LLM_MODES = ("offline", "live", "record", "replay")
logger = logging.getLogger(__name__)

_EXIT_CODES = """\
exit codes:
  0    success; for eval: pass rate at or above the threshold
  1    general failure
  2    configuration error: bad configuration, missing secret, bad instruction file, missing suite folder, bad usage
  3    MCP connection failure at start-up
  4    evaluation failure: pass rate below the threshold
  130  interrupted
"""


def run(arguments: Sequence[str]) -> int:
    """Run one command; returns the exit code and lets no exception out."""
    try:
        options = _parser().parse_args(list(arguments))
    except SystemExit as stop:  # argparse's way to end after --help and after bad usage
        return stop.code if isinstance(stop.code, int) else EXIT_CONFIGURATION
    try:
        code = options.command(options)
    except AgentError as error:
        _say(error)
        code = error.exit_code
    except KeyboardInterrupt:
        code = EXIT_INTERRUPTED
    except Exception as error:
        logger.debug("Unexpected failure", exc_info=True)
        print(
            f"{PROGRAM}: unexpected {type(error).__name__}: {error}. Please report it with the log at level DEBUG",
            file=sys.stderr,
        )
        code = EXIT_FAILURE
    code = _flushed(code)
    logger.info("Exiting with code %d", code)
    return code


def _say(error: AgentError) -> None:
    logger.debug("%s", error.code, exc_info=True)
    for line in error.message.splitlines():
        print(f"{PROGRAM}: {line}", file=sys.stderr)


class _PatientStream:
    """stdout whose reader may leave (`eval | head -1`): the run goes on, and its exit code still tells the truth."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.encoding = stream.encoding

    def isatty(self) -> bool:
        return self._stream.isatty()

    def write(self, text: str) -> int:
        with suppress(BrokenPipeError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(BrokenPipeError):
            self._stream.flush()


def _flushed(code: int) -> int:
    """`code`, or a failure where what was printed could not be written."""
    try:
        sys.stdout.flush()
    except OSError as error:
        # The interpreter flushes once more at its end; let that go nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            print(
                f"{PROGRAM}: cannot write to stdout ({error.strerror}). Free some space, or redirect it",
                file=sys.stderr,
            )
            return EXIT_FAILURE
    return code


class _Parser(argparse.ArgumentParser):
    """Says in one line what is wrong, and where help is."""

    def error(self, message: str) -> NoReturn:
        self.exit(EXIT_CONFIGURATION, f"{self.prog}: {message}. See '{self.prog} --help'\n")


def _parser() -> _Parser:
    parser = _Parser(
        prog=PROGRAM,
        description="Answers warranty mail on its own, and proves on a scenario suite that it may.",
        epilog=_EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_eval(commands)
    return parser


def _add_eval(commands: argparse._SubParsersAction[_Parser]) -> None:
    parser = commands.add_parser(
        "eval",
        help="run the scenario suite, print the pass rate, gate on it",
        description="Run every scenario through the whole mail pipeline, against mocks, and gate on the pass rate.",
        epilog=_EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(command=_eval)
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="configuration file (else $CONFIG_PATH, config.yaml)"
    )
    parser.add_argument("--eval-dir", type=Path, metavar="DIR", help="folder with the scenario files")
    parser.add_argument("--only", metavar="GLOB", help="run only the scenarios whose id matches, e.g. 'missing_info_*'")
    parser.add_argument("--threshold", type=_percentage, metavar="PERCENT", help="pass rate to reach (default: 99)")
    parser.add_argument("--jobs", type=_count, default=1, metavar="N", help="scenarios at a time (default: 1)")
    parser.add_argument(
        "--repeat", type=_count, default=1, metavar="K", help="run each scenario K times; all must pass"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every result as JSON")
    parser.add_argument("--junit", type=Path, metavar="FILE", help="write every result as JUnit XML")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a report as one HTML file (not available yet)")
    parser.add_argument(
        "--llm",
        choices=LLM_MODES,
        default="offline",
        help="who answers as the language model (default: offline; the others are not available yet)",
    )
    parser.add_argument("--verbose", action="store_true", help="show log lines of level INFO on stderr")


def _eval(options: argparse.Namespace) -> int:
    if options.llm != "offline":
        raise ConfigurationError(
            f"--llm {options.llm} is not available yet. Leave the option out to use the offline model",
            "cli_not_available",
        )
    if options.html is not None:
        raise ConfigurationError("--html is not available yet. Use --json or --junit", "cli_not_available")

    from datetime import datetime

    from guarantee_email_agent.eval.command import EvalOptions, evaluate

    started = datetime.now(UTC)
    config = _configured(options.config, options.verbose)
    return evaluate(
        EvalOptions(
            directory=options.eval_dir or config.eval.test_suite_path,
            threshold=options.threshold if options.threshold is not None else config.eval.pass_threshold,
            only=options.only,
            jobs=options.jobs,
            repeat=options.repeat,
            json_file=options.json,
            junit_file=options.junit,
            run_id=f"{started:%Y%m%dT%H%M%S}-{os.urandom(4).hex()}",
            started=started.isoformat(timespec="seconds").replace("+00:00", "Z"),
        ),
        config,
        _PatientStream(sys.stdout),
    )


def _configured(path: Path | None, verbose: bool) -> Config:
    """The configuration, with logging set up as it says; results go to stdout, so the log goes to stderr."""
    from guarantee_email_agent.config.loader import load_config
    from guarantee_email_agent.utils.logging import configure_logging

    config = load_config(path)
    configure_logging(
        level=config.logging.level,
        console_level="INFO" if verbose else "WARNING",
        file=config.logging.file,
        as_json=config.logging.json,
    )
    return config


def _number(convert: Callable[[str], float], is_good: Callable[[float], bool], wanted: str) -> Callable[[str], float]:
    def parse(text: str) -> float:
        try:
            number = convert(text)
        except ValueError:
            number = None
        if number is None or not is_good(number):
            raise argparse.ArgumentTypeError(f"'{text}' is not {wanted}")
        return number

    return parse


_percentage = _number(float, lambda number: 0 < number <= 100, "a percentage above 0 and up to 100")
_count = _number(int, lambda number: 1 <= number <= 10_000, "a whole number from 1 to 10000")
