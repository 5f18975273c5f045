"""What the commands have in common: how they are parsed, and how they come by their configuration."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, TypeVar

from guarantee_email_agent.utils.errors import EXIT_CONFIGURATION

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from guarantee_email_agent.config.settings import Config

Options = TypeVar("Options", bound="DataclassInstance")

PROGRAM = "guarantee-email-agent"
MODES = ("answer", "drafts", "observe")

EXIT_CODES = """\
exit codes:
  0    success; for eval: pass rate at or above the threshold
  1    general failure
  2    configuration error: bad configuration, missing secret, bad instruction file, missing suite folder, bad usage
  3    MCP connection failure at start-up
  4    evaluation failure: pass rate below the threshold; for grade and solve: a verdict that is not a pass
  130  interrupted
"""


class Parser(argparse.ArgumentParser):
    """Says in one line what is wrong, and where help is."""

    def error(self, message: str) -> NoReturn:
        self.exit(EXIT_CONFIGURATION, f"{self.prog}: {message}. See '{self.prog} --help'\n")


Commands: TypeAlias = "argparse._SubParsersAction[Parser]"  # noqa: SLF001 - argparse has no public name for it


def add_command(
    commands: Commands, name: str, run: Callable[[argparse.Namespace], int], *, purpose: str, description: str
) -> Parser:
    """A parser for one command, whose options `run` turns into an exit code."""
    parser = commands.add_parser(
        name,
        help=purpose,
        description=description,
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(run=run)
    return parser


def add_config_option(parser: Parser) -> None:
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="configuration file (else $CONFIG_PATH, config.yaml)"
    )


def add_report_options(parser: Parser, result: str) -> None:
    for name, form in (("json", "JSON"), ("junit", "JUnit XML")):
        parser.add_argument(
            f"--{name}", dest=f"{name}_file", type=Path, metavar="FILE", help=f"write every {result} as {form}"
        )


def add_verbose_option(parser: Parser) -> None:
    parser.add_argument("--verbose", action="store_true", help="show log lines of level INFO on stderr")


def options_as(kind: type[Options], parsed: argparse.Namespace, **more: Any) -> Options:
    """A dataclass of options from the parsed arguments that its fields are called after, and `more`."""
    return kind(**{name: value for name, value in vars(parsed).items() if name in kind.__dataclass_fields__} | more)


def log_to_console(verbose: bool) -> None:
    """For commands that need no configuration of ours, or check it themselves."""
    from guarantee_email_agent.utils.logging import configure_logging

    level = "INFO" if verbose else "WARNING"
    configure_logging(level=level, console_level=level, file=None, as_json=False)


def load_config_and_log(path: Path | None, verbose: bool) -> Config:
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


percentage = _number(float, lambda number: 0 < number <= 100, "a percentage above 0 and up to 100")
count = _number(int, lambda number: 1 <= number <= 10_000, "a whole number from 1 to 10000")
seconds = _number(float, lambda number: 0 < number <= 86_400, "seconds above 0 and up to 86400")
tokens = _number(int, lambda number: number >= 1, "a whole number of at least 1")
dollars = _number(float, lambda number: 0 < number < float("inf"), "US dollars above 0")
