"""What `release`, `retry` and `hand-over` have in common."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from guarantee_email_agent.cli import arguments
from guarantee_email_agent.cli.standard_streams import BrokenPipeSafeStream
from guarantee_email_agent.utils.errors import EXIT_SUCCESS

if TYPE_CHECKING:
    from guarantee_email_agent.agent.steering import Action

_EXIT_CODES = """\
exit codes:
  0    it is done
  1    the mail's state does not allow it (the line says why), or the ledger or the mailbox cannot be used now
  2    configuration error: no such mail or several, no ledger or one of another version, bad configuration, bad usage
  3    the mail server is needed, and could not be started or reached
  130  interrupted
"""


def add_steering_command(commands: arguments.Commands, action: Action, purpose: str, description: str) -> None:
    def run(options: argparse.Namespace) -> int:
        from guarantee_email_agent.agent.steering import steer
        from guarantee_email_agent.reporting.terminal import Terminal

        config = arguments.load_config_and_log(options.config, options.verbose, to_file=False)
        steer(config, action, options.mail, Terminal(BrokenPipeSafeStream(sys.stdout)))
        return EXIT_SUCCESS

    parser = arguments.add_command(
        commands, action, run, purpose=purpose, description=description, exit_codes=_EXIT_CODES
    )
    parser.add_argument(
        "mail", metavar="ID", help="the mail: the beginning of its id in `log` and `status`, or its id in the mailbox"
    )
    arguments.add_config_option(parser)
    arguments.add_verbose_option(parser)
