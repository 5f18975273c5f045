"""What the server programs have in common before they serve: options, exit codes, and lines on stderr."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
from typing import NoReturn

from guarantee_email_agent.utils.logging import ROOT, LineFormatter
from guarantee_email_agent.utils.text import printable

STREAMS = """\
The program speaks the Model Context Protocol on stdin and stdout; diagnostics go to stderr. It ends with exit code 0
when its input ends or on SIGTERM, after finishing the calls in work. Exit code 2: something on the command line is
wrong, or what it names is."""


class CommandLine(argparse.ArgumentParser):
    """An argument parser that has no usage text in its error messages."""

    def __init__(self, program: str, description: str) -> None:
        prog = f"python -m guarantee_email_agent.mcp_servers.{program}"
        super().__init__(prog, description=description, epilog=STREAMS, allow_abbrev=False)
        handler = logging.StreamHandler()
        handler.setFormatter(LineFormatter("%(message)s"))
        logger = logging.getLogger(ROOT)
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)

    def error(self, message: str) -> NoReturn:
        exit_with_error(f"{message}; see --help")


def exit_with_error(message: str) -> NoReturn:
    """One line on stderr, and exit code 2."""
    log_diagnostic(message)
    sys.exit(2)


def log_diagnostic(text: str) -> None:
    """One line on stderr. Never with text from a customer."""
    print(printable(text), file=sys.stderr, flush=True)  # noqa: T201


def exit_on_signals() -> None:
    """End at once on SIGTERM and SIGINT, while there are no calls to finish: before serving, and after it."""
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))
