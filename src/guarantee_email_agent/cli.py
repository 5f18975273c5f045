"""The front door: parse arguments, call one function, turn its outcome into an exit code.

argparse and not one of the richer libraries: those take 80 to 130 ms to load, half of what a suite of fifty scenarios
may take as a whole process.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TextIO

from guarantee_email_agent import __version__
from guarantee_email_agent.utils.errors import (
    EXIT_CONFIGURATION,
    EXIT_EVALUATION,
    EXIT_FAILURE,
    EXIT_INTERRUPTED,
    EXIT_SUCCESS,
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
  4    evaluation failure: pass rate below the threshold; for grade and solve: a verdict that is not a pass
  130  interrupted
"""


def run(arguments: Sequence[str]) -> int:
    """Run one command; returns the exit code and lets no exception out."""
    _open_closed_streams()
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


def _open_closed_streams() -> None:
    """Python leaves None where a standard stream was closed (`>&-`); what is written there goes nowhere."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8"))


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
        with _stdout_errors():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with _stdout_errors():
            self._stream.flush()


@contextmanager
def _stdout_errors() -> Iterator[None]:
    """Nobody reads any more: fine. Anything else (a full disk) means that results are lost."""
    try:
        yield
    except BrokenPipeError:
        pass
    except OSError as error:
        raise AgentError(
            f"cannot write to stdout ({error.strerror}). Free some space, or redirect it", "cli_stdout_unwritable"
        ) from None


def _flushed(code: int) -> int:
    """`code`, or a failure where what was printed could not be written."""
    try:
        with _stdout_errors():
            sys.stdout.flush()
    except AgentError as error:
        if code in (EXIT_SUCCESS, EXIT_EVALUATION):
            _say(error)
        code = EXIT_FAILURE
    # The interpreter flushes once more at its end; what is still in the buffer goes nowhere.
    with suppress(OSError):
        sys.stdout.flush()
        return code
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
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
    _add_grade(commands)
    _add_solve(commands)
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
    parser.add_argument("--records", type=Path, metavar="DIR", help="write the record of every run, for a judge")
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
            records_dir=options.records,
            run_id=f"{started:%Y%m%dT%H%M%S}-{os.urandom(4).hex()}",
            started=started.isoformat(timespec="seconds").replace("+00:00", "Z"),
        ),
        config,
        _PatientStream(sys.stdout),
    )


def _add_grade(commands: argparse._SubParsersAction[_Parser]) -> None:
    parser = commands.add_parser(
        "grade",
        help="judge the work of an agent by a task's test.py",
        description="Judge the record of an agent's run by the test.py of a task directory, or a folder of records.",
        epilog=_EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(command=_grade)
    parser.add_argument("directory", type=Path, metavar="DIR", help="a task directory; with --results a folder of them")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--answer", metavar="TEXT", help="judge this answer; - reads it from stdin")
    what.add_argument("--result", metavar="FILE", help="judge the record in this JSON file; - reads it from stdin")
    what.add_argument(
        "--results", type=Path, metavar="DIR", help="judge a folder with a <task_name>.json for each task"
    )
    what.add_argument(
        "--validate", action="store_true", help="judge nothing; check that each test.py rejects what is no solution"
    )
    parser.add_argument("--timeout", type=_seconds, metavar="SECONDS", help="for each judge (default: 60)")
    parser.add_argument("--jobs", type=_count, default=1, metavar="N", help="judges at a time (default: 1)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every verdict as JSON")
    parser.add_argument("--junit", type=Path, metavar="FILE", help="write every verdict as JUnit XML")
    parser.add_argument("--verbose", action="store_true", help="show log lines of level INFO on stderr")


def _grade(options: argparse.Namespace) -> int:
    from guarantee_email_agent.tasks.command import GradeOptions, grade_command
    from guarantee_email_agent.utils.logging import configure_logging

    # Whoever judges the work of another agent has no configuration of ours, and needs none.
    level = "INFO" if options.verbose else "WARNING"
    configure_logging(level=level, console_level=level, file=None, as_json=False)
    return grade_command(
        GradeOptions(
            directory=options.directory,
            answer=options.answer,
            result_file=options.result,
            results_dir=options.results,
            validate=options.validate,
            timeout_s=options.timeout,
            jobs=options.jobs,
            json_file=options.json,
            junit_file=options.junit,
        ),
        _PatientStream(sys.stdout),
        console=sys.stderr,
        read_stdin=lambda: sys.stdin.buffer.read() if sys.stdin else b"",
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


def _add_solve(commands: argparse._SubParsersAction[_Parser]) -> None:
    parser = commands.add_parser(
        "solve",
        help="let an agent work on task directories in a sandbox, then grade each",
        description="Let an agent work on a task, or on a folder of them, each in a sandbox of its own, and judge what "
        "it did while the sandbox still lives. Tasks that an earlier call finished are skipped.",
        epilog=_EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(command=_solve)
    parser.add_argument("directory", type=Path, metavar="DIR", help="a task directory, or a folder of them")
    parser.add_argument(
        "--agent",
        "--controller",
        choices=("llm", "script", "command", "human"),
        default="llm",
        help="who works on the tasks: a language model, a list of actions, a program, you (default: llm)",
    )
    parser.add_argument("--model", metavar="NAME", help="with --agent llm: the model (default: llm.model)")
    parser.add_argument(
        "--script", type=Path, metavar="PATH", help="with --agent script: the actions; a folder has one file a task"
    )
    parser.add_argument(
        "--command",
        dest="program",
        metavar="TEXT",
        help="with --agent command: the program; it gets the instruction for {instruction} or else on stdin",
    )
    parser.add_argument(
        "--sandbox",
        choices=("embedded", "docker", "none"),
        default="embedded",
        help="where the agent works (default: embedded); none isolates nothing",
    )
    parser.add_argument(
        "--output-dir", type=Path, default=Path("results"), metavar="DIR", help="for the records (default: results)"
    )
    parser.add_argument("--jobs", type=_count, default=1, metavar="N", help="tasks at a time (default: 1)")
    parser.add_argument("--run-all", action="store_true", help="repeat the tasks that are finished, too")
    parser.add_argument("--max-iterations", type=_count, default=50, metavar="N", help="turns a task (default: 50)")
    parser.add_argument(
        "--time-limit", type=_seconds, default=1800.0, metavar="SECONDS", help="for each task (default: 1800)"
    )
    parser.add_argument("--max-tokens", type=_tokens, metavar="N", help="tokens a task, sent and received")
    parser.add_argument("--max-cost", type=_dollars, metavar="DOLLARS", help="US dollars a task")
    parser.add_argument("--timeout", type=_seconds, metavar="SECONDS", help="for each judge (default: 60)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every verdict as JSON")
    parser.add_argument("--junit", type=Path, metavar="FILE", help="write every verdict as JUnit XML")
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="with --agent llm: configuration (else $CONFIG_PATH, config.yaml)"
    )
    parser.add_argument("--verbose", action="store_true", help="show log lines of level INFO on stderr")


def _solve(options: argparse.Namespace) -> int:
    from datetime import datetime

    from guarantee_email_agent.tasks.limits import Limits
    from guarantee_email_agent.tasks.solve import SolveOptions, solve_command
    from guarantee_email_agent.utils.logging import configure_logging

    # Only a language model needs the configuration; the others work without one, or with a broken one.
    level = "INFO" if options.verbose else "WARNING"
    configure_logging(level=level, console_level=level, file=None, as_json=False)
    return solve_command(
        SolveOptions(
            directory=options.directory,
            out_dir=options.output_dir,
            agent=options.agent,
            script=options.script,
            command=options.program,
            model=options.model,
            sandbox=options.sandbox,
            jobs=options.jobs,
            run_all=options.run_all,
            limits=Limits(
                max_iterations=options.max_iterations,
                wall_time_s=options.time_limit,
                max_tokens=options.max_tokens,
                max_cost_usd=options.max_cost,
            ),
            judge_timeout_s=options.timeout,
            json_file=options.json,
            junit_file=options.junit,
        ),
        _PatientStream(sys.stdout),
        console=sys.stderr,
        load_config=lambda: _configured(options.config, options.verbose),
        started=lambda: datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    )


_seconds = _number(float, lambda number: 0 < number <= 86_400, "seconds above 0 and up to 86400")
_tokens = _number(int, lambda number: number >= 1, "a whole number of at least 1")
_dollars = _number(float, lambda number: 0 < number < float("inf"), "US dollars above 0")
