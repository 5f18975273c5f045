"""The command line of a server program: `--help` on stdout, anything wrong as one line on stderr, exit code 2."""

from __future__ import annotations

import argparse
import sys
from typing import NoReturn

from guarantee_email_agent.utils.printable import printable

STREAMS = """\
The program speaks the Model Context Protocol on stdin and stdout; diagnostics go to stderr. It ends with exit code 0
when its input ends or on SIGTERM, after finishing the calls in work. Exit code 2: something on the command line is
wrong, or what it names is."""


class CommandLine(argparse.ArgumentParser):
    """An argument parser that has no usage text in its error messages."""

    def __init__(self, program: str, description: str) -> None:
        super().__init__(
            prog=f"python -m guarantee_email_agent.mcp_servers.{program}",
            description=description,
            epilog=STREAMS,
            allow_abbrev=False,
        )

    def error(self, message: str) -> NoReturn:
        fail(f"{message}; see --help")


def fail(message: str) -> NoReturn:
    """One line on stderr, and exit code 2."""
    print(printable(message), file=sys.stderr, flush=True)  # noqa: T201
    sys.exit(2)
