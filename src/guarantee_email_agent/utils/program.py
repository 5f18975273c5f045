"""A program as people name it on a command line of ours."""

from __future__ import annotations

import shlex
import shutil

from guarantee_email_agent.utils.errors import ConfigurationError
from guarantee_email_agent.utils.text import printable


def parse_program(text: str, option: str) -> tuple[str, ...]:
    """The program and its arguments, split as a shell does it; no shell is used.

    option: what the message calls it. Raises ConfigurationError for an empty text, one whose quotes do not close, and
    where there is no such program.
    """
    try:
        parts = tuple(shlex.split(text))
    except ValueError as error:
        raise ConfigurationError(f"{option}: {error}. Close the quotes", "cli_bad_command") from None
    if not parts:
        raise ConfigurationError(f"{option} is empty. Name the program that does the work", "cli_bad_command")
    if shutil.which(parts[0]) is None:
        problem = f"{option}: there is no program {printable(parts[0])!r:.200} to run. Correct its name or its path"
        raise ConfigurationError(problem, "cli_bad_command")
    return parts
