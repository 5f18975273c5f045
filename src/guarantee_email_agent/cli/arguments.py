"""What the commands have in common: how they are parsed, and how they come by their configuration."""

from __future__ import annotations

import argparse
import os
import re
import select
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO, TypeAlias, TypeVar

from guarantee_email_agent.utils.errors import EXIT_CONFIGURATION, AgentError, ConfigurationError
from guarantee_email_agent.utils.text import printable

if TYPE_CHECKING:
    from datetime import datetime

    from _typeshed import DataclassInstance

    from guarantee_email_agent.config.settings import Config
    from guarantee_email_agent.runlog.records import KeptRun
    from guarantee_email_agent.runlog.run_reader import RunStore
    from guarantee_email_agent.utils.terminal import Terminal


def open_closed_streams() -> None:
    """Python leaves None where a standard stream was closed; what is written there is to go to the null device."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8"))


class BrokenPipeSafeStream:
    """stdout that ignores EPIPE (`eval | head -1`): the run goes on, and its exit code stays right."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.encoding = stream.encoding

    def reader_has_left(self) -> bool:
        """Whether it is a pipe or a terminal at whose other end nobody is any more."""
        poll = select.poll()
        poll.register(self._stream.fileno(), 0)
        return any(event & (select.POLLERR | select.POLLHUP | select.POLLNVAL) for _, event in poll.poll(0))

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
    """Ignores a broken pipe; any other failure, such as a full disk, loses results and is an AgentError."""
    try:
        yield
    except BrokenPipeError:
        pass
    except OSError as error:
        raise AgentError(
            f"cannot write to stdout ({error.strerror}). Free some space, or redirect it", "cli_stdout_unwritable"
        ) from None


def flush_stdout() -> None:
    """Write what is still in the buffer. Raises AgentError where it cannot be written."""
    try:
        with _stdout_errors():
            sys.stdout.flush()
    finally:
        # The interpreter flushes once more at its end; what is still in the buffer then goes nowhere.
        try:
            sys.stdout.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


Options = TypeVar("Options", bound="DataclassInstance")

PROGRAM = "guarantee-email-agent"
RUN_NAMES = "its id, the beginning of one, last, or green for the newest that passed its gate"
REPORT_FORMS = {
    "json": "every {result} as JSON",
    "jsonl": "every repetition of every {result} as a line of JSON",
    "csv": "every repetition of every {result} as a row for spreadsheets",
    "junit": "every {result} as JUnit XML",
    "html": "the whole run as one page for a browser",
    "markdown": "a summary for a pull request, with what did not pass",
}
LLM_MODES = ("offline", "live", "record", "replay")
MODES = ("answer", "drafts", "observe")

EXIT_CODES = """\
  0    success; for eval: pass rate at or above the threshold
  1    general failure
  2    configuration error: bad configuration, missing secret, bad instruction file, missing suite folder, bad usage
  3    MCP connection failure at start-up
  4    evaluation failure: pass rate below the threshold; for grade and solve: a verdict that is not a pass
"""
INTERRUPTED = "  130  interrupted\n"


def _path(text: str) -> Path:
    """A shell makes an empty text of a variable that is not set, and that would be the folder it runs in."""
    if not text.strip():
        raise argparse.ArgumentTypeError(f"'{text}' names no file and no folder. Name one, or leave it out")
    return Path(text)


class Parser(argparse.ArgumentParser):
    """Says in one line what is wrong, and where help is."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.register("type", Path, _path)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            if hint := _suggestion(value, action.choices or ()):
                error.message = f"unknown choice {value!r}{hint}"
            raise

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Of a command, too: what it does not know the whole program would refuse, whose help says nothing of it."""
        options, unknown = super().parse_known_args(args, namespace)
        if unknown:
            hint = _suggestion(unknown[0], self._option_string_actions)
            self.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
        return options, unknown

    def error(self, message: str) -> NoReturn:
        stop = "" if message.endswith("?") else "."
        self.exit(EXIT_CONFIGURATION, f"{self.prog}: {printable(message)}{stop} See '{self.prog} --help'\n")


def _suggestion(word: object, known: Iterable[object]) -> str:
    from guarantee_email_agent.files.problems import suggestion  # start-up: only for those who mistype

    return suggestion(word, known)


Commands: TypeAlias = "argparse._SubParsersAction[Parser]"  # noqa: SLF001 - argparse has no public name for it


def add_command(
    commands: Commands,
    name: str,
    run: Callable[[argparse.Namespace], int],
    *,
    purpose: str,
    description: str,
    exit_codes: str = EXIT_CODES,
    interrupted: str = INTERRUPTED,
) -> Parser:
    """A parser for one command, whose options `run` turns into an exit code."""
    parser = commands.add_parser(
        name,
        help=purpose,
        description=description,
        epilog=f"exit codes:\n{exit_codes}{interrupted}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(run=run)
    return parser


def add_config_option(parser: Parser) -> None:
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="configuration file (else $CONFIG_PATH, config.yaml)"
    )


def add_usual_options(parser: Parser) -> None:
    add_config_option(parser)
    add_verbose_option(parser)


def add_report_options(parser: Parser, result: str) -> None:
    for name, form in REPORT_FORMS.items():
        parser.add_argument(
            f"--{name}",
            dest=f"{name}_file",
            type=Path,
            metavar="FILE",
            help=f"write {form.format(result=result)}; - is stdout",
        )


def add_audience_option(parser: Parser) -> None:
    parser.add_argument(
        "--for",
        dest="html_for",
        choices=("board",),
        help="with --html: two printed pages for those who decide, in place of every result",
    )


def refuse_audience_alone(options: argparse.Namespace) -> None:
    """Raise ConfigurationError where there is no page that it could be for."""
    if options.html_for is not None and options.html_file is None:
        raise ConfigurationError("--for says for whom a page is. Add --html FILE, or leave it out", "cli_bad_usage")


def refuse_idle_cost_limit(options: argparse.Namespace) -> None:
    """Raise ConfigurationError for `--max-cost` where nothing is paid for."""
    asks = options.llm in ("live", "record") or (options.llm == "offline" and vars(options).get("agent") is not None)
    if options.max_cost_usd is not None and not asks:
        problem = f"--max-cost limits what an API takes, and with --llm {options.llm} none is asked"
        raise ConfigurationError(f"{problem}. Add --llm live or record, or leave it out", "cli_bad_usage")


def add_past_mail_options(parser: Parser) -> None:
    """Which mails that came already."""
    parser.add_argument(
        "--from", dest="folder", type=Path, metavar="DIR", help="folder with mails saved as .eml (default: the inbox)"
    )
    parser.add_argument(
        "--since", type=past, metavar="WHEN", help="only mail received since then: 30d for days ago, or 2026-01-31"
    )
    parser.add_argument("--until", type=past, metavar="WHEN", help="only mail received before then (default: all)")


def past(text: str) -> datetime:
    """`30d` or a date; 0:00 in UTC."""
    from datetime import UTC, datetime, timedelta

    with suppress(ValueError, OverflowError):
        if text.endswith("d") and text[:-1].isdecimal():
            return datetime.now(UTC) - timedelta(days=int(text[:-1]))
        moment = datetime.fromisoformat(text)
        return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    raise argparse.ArgumentTypeError(f"'{printable(text[:40])}' is no time. Write it as 30d, or as 2026-01-31")


def today() -> str:
    """UTC: `2026-01-31`."""
    from datetime import UTC, datetime

    return datetime.now(UTC).date().isoformat()


def read_stdin(size: int) -> bytes:
    """At most so many bytes; none where it was closed."""
    return sys.stdin.buffer.read(size) if sys.stdin else b""


def add_executor_option(parser: Parser) -> None:
    parser.add_argument(
        "--executor",
        type=_executor,
        default="local",
        metavar="EXECUTOR",
        help="where the work is done: local, on this machine; ray, on the Ray cluster at $RAY_ADDRESS or running here; "
        "ray://HOST:PORT, on one that is reached through Ray Client (default: local)",
    )


def _executor(text: str) -> str:
    if text not in ("local", "ray") and not re.fullmatch(r"ray://[^/\s@]+", text):
        raise argparse.ArgumentTypeError(f"{text!r} is none. Write local, ray or ray://HOST:PORT")
    return text


def add_allow_option(parser: Parser) -> None:
    parser.add_argument(
        "--allow",
        action="append",
        default=[],
        metavar="NAME[=VALUE]",
        help="the most that tasks may have: network (in a sandbox also where the task does not ask), compose_host, "
        "memory_mb=N, disk_mb=N, files=N, processes=N, time_s=N, command_s=N, judge_timeout_s=N; may be repeated "
        "(default: tasks.allow of the file named with --config)",
    )


def add_store_option(parser: Parser) -> None:
    parser.add_argument(
        "--no-store",
        action="store_true",
        help="do not keep the run (else in store.file of the configuration, by default runs.db beside it, or without "
        "one in $XDG_STATE_HOME/guarantee-email-agent)",
    )


def kept_run(config: Config, *, keep: bool) -> KeptRun | None:
    """Where the run of a command is kept."""
    if not keep:
        return None
    from guarantee_email_agent.runlog.records import KeptRun
    from guarantee_email_agent.utils.clock import utc_now

    return KeptRun(config.run_store_file, config.store.keep_runs, utc_now)


def kept_run_beside(config: Config | None, *, keep: bool) -> KeptRun | None:
    """The same for a command that need not have a configuration: without one, what `eval` would read here counts."""
    if config is None and keep:
        from guarantee_email_agent.config.loader import load_config
        from guarantee_email_agent.utils.terminal import warn_on_stderr

        try:
            config = load_config()
        except ConfigurationError as error:
            warn_on_stderr(f"This run is not kept: {error.message.splitlines()[0]}. --no-store silences this")
    return None if config is None else kept_run(config, keep=keep)


def open_run_store(options: argparse.Namespace) -> RunStore:
    """That of the configuration, to be read. Raises StoreError where there is none."""
    from guarantee_email_agent.runlog.run_reader import RunStore

    return RunStore(load_config_and_log(options.config, options.verbose).run_store_file)


def results_stream(options: argparse.Namespace) -> BrokenPipeSafeStream:
    """Where results for people go: to stdout, unless a report is written there."""
    if paths := [path for form in REPORT_FORMS if (path := getattr(options, f"{form}_file", None)) is not None]:
        from guarantee_email_agent.files.report_files import is_stdout

        if any(map(is_stdout, paths)):
            return BrokenPipeSafeStream(sys.stderr)
    return BrokenPipeSafeStream(sys.stdout)


def results_terminal(options: argparse.Namespace) -> Terminal:
    from guarantee_email_agent.utils.terminal import Terminal

    return Terminal(results_stream(options))


def add_verbose_option(parser: Parser, first: str = "") -> None:
    parser.add_argument("--verbose", action="store_true", help=f"{first}show log lines of level INFO on stderr")


def options_as(kind: type[Options], parsed: argparse.Namespace, **more: Any) -> Options:
    """A dataclass of options from the parsed arguments that its fields are called after, and `more`."""
    return kind(**{name: value for name, value in vars(parsed).items() if name in kind.__dataclass_fields__} | more)


def log_to_console(verbose: bool) -> None:
    """For commands that need no configuration of ours, or check it themselves."""
    from guarantee_email_agent.utils.logging import configure_logging

    level = "INFO" if verbose else "WARNING"
    configure_logging(level=level, console_level=level, file=None, as_json=False)


def load_config_and_log(path: Path | None, verbose: bool, *, to_file: bool = True) -> Config:
    """The configuration, with logging set up as it says; results go to stdout, so the log goes to stderr.

    to_file: to `logging.file`, too; not where that is the log of an agent which runs beside this command.
    """
    from guarantee_email_agent.config.loader import load_config
    from guarantee_email_agent.utils.logging import configure_logging

    config = load_config(path)
    configure_logging(
        level=config.logging.level,
        console_level="INFO" if verbose else "WARNING",
        file=config.logging.file if to_file else None,
        as_json=config.logging.json,
    )
    return config


def built_in_files_notice(config: Config) -> str | None:
    """Which of the files are the built-in ones, which nobody here has edited; None where none is."""
    from guarantee_email_agent.config.loader import built_in_files

    if not (names := built_in_files(config)):
        return None
    listed = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    return f"Using the built-in {listed}; '{PROGRAM} init' copies them here to edit"


def show_built_in_files(config: Config) -> None:
    """Say it on stderr, since stdout is for results."""
    if (notice := built_in_files_notice(config)) is not None:
        with suppress(BrokenPipeError):  # nobody reads it, and the exit code stays right
            print(notice, file=sys.stderr)


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


percentage = _number(float, lambda number: 1 < number <= 100, "a percentage above 1 and up to 100")
count = _number(int, lambda number: 1 <= number <= 10_000, "a whole number from 1 to 10000")
port = _number(int, lambda number: 0 <= number <= 65_535, "a port from 0 to 65535")
seconds = _number(float, lambda number: 0 < number <= 86_400, "seconds above 0 and up to 86400")
tokens = _number(int, lambda number: number >= 1, "a whole number of at least 1")
dollars = _number(float, lambda number: 0 < number < float("inf"), "US dollars above 0")
