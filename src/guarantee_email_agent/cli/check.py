"""`check`: validate everything that `run` needs, and say how the inbox stands."""

from __future__ import annotations

import argparse

from guarantee_email_agent.cli import arguments
from guarantee_email_agent.cli.arguments import MODES
from guarantee_email_agent.utils.process import gc_paused, signals_as_ctrl_c

_EXIT_CODES = """\
  0    everything is in order
  1    the language model or the ledger does not answer for now, or the output could not be written
  2    configuration error: bad configuration, missing secret, bad instruction file, bad usage
  3    a mail, warranty or ticketing server could not be started or reached
"""


def add_check(commands: arguments.Commands) -> None:
    parser = arguments.add_command(
        commands,
        "check",
        _run,
        purpose="validate configuration, secrets, instruction files and every connection",
        description="Validate configuration, secrets, instruction files and every connection, then exit. Nothing is "
        "answered, and no mail is touched.",
        exit_codes=_EXIT_CODES,
    )
    arguments.add_config_option(parser)
    parser.add_argument("--inbox", action="store_true", help="also count the mails of the inbox by what became of them")
    parser.add_argument("--mode", choices=MODES, help="check what `run` needs in that mode (default: agent.mode)")
    arguments.add_verbose_option(parser)


def _run(options: argparse.Namespace) -> int:
    with gc_paused():
        from guarantee_email_agent.agent.preflight import check_all
    arguments.log_to_console(options.verbose)
    with signals_as_ctrl_c():  # a token that the issuer is about to give has to be kept
        return check_all(options.config, arguments.results_stream(options), inbox=options.inbox, mode=options.mode)
