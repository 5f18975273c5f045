"""`release`, `retry` and `hand-over`: change what becomes of one mail."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from guarantee_email_agent.cli import arguments
from guarantee_email_agent.utils.errors import EXIT_SUCCESS

if TYPE_CHECKING:
    from guarantee_email_agent.agent.steering import Action

_EXIT_CODES = """\
  0    it is done
  1    the mail's state does not allow it (the line says why), the ledger cannot be used now, or the output could not be
       written
  2    configuration error: no such mail or several, no ledger or one of another version, bad configuration, bad usage
"""


def add_release(commands: arguments.Commands) -> None:
    _add_command(
        commands,
        "release",
        "give a mail back to the agents: one that waits, that a killed agent holds, or that is left to a person",
        "Let the agents work on a mail now, with all its tries: its wait, the claim of an agent that runs no more, or "
        "its parking for a person ends; an agent that runs takes its mark off in the mailbox. A mail whose reply may "
        "have left is answered only once it is proved that it did not.",
    )


def add_retry(commands: arguments.Commands) -> None:
    _add_command(commands, "release", "the same as release", "The same as `release`.", name="retry")


def add_hand_over(commands: arguments.Commands) -> None:
    _add_command(
        commands,
        "hand-over",
        "leave a mail to a person: no agent answers it from then on",
        "Leave a mail to a person; an agent that runs marks it so in the mailbox. One that is working on it stops, "
        "unless its reply is about to leave or has left.",
    )


def _add_command(
    commands: arguments.Commands, action: Action, purpose: str, description: str, name: str | None = None
) -> None:
    def run(options: argparse.Namespace) -> int:
        from guarantee_email_agent.agent.steering import steer

        config = arguments.load_config_and_log(options.config, options.verbose, to_file=False)
        steer(config, action, options.mail, arguments.results_terminal(options))
        return EXIT_SUCCESS

    parser = arguments.add_command(
        commands, name or action, run, purpose=purpose, description=description, exit_codes=_EXIT_CODES
    )
    parser.add_argument(
        "mail", metavar="ID", help="the mail: the beginning of its id in `log` and `status`, or its id in the mailbox"
    )
    arguments.add_usual_options(parser)
