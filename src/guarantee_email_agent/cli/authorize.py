"""`authorize`: sign in to the mailbox once, where it wants access tokens in place of passwords."""

from __future__ import annotations

import argparse

from guarantee_email_agent.cli import arguments
from guarantee_email_agent.utils.errors import EXIT_SUCCESS
from guarantee_email_agent.utils.process import forbid_core_files, signals_as_ctrl_c

_EXIT_CODES = """\
  0    signed in; the token is kept, and a client that needs no sign-in got one
  1    nobody signed in in time, the sign-in was denied, or the issuer of tokens is out of reach
  2    configuration error: mailbox.oauth is missing or bad, the issuer refuses the client, bad usage
"""
_TIMEOUT_S = 900.0


def add_authorize(commands: arguments.Commands) -> None:
    parser = arguments.add_command(
        commands,
        "authorize",
        _run,
        purpose="sign in to a mailbox that wants access tokens in place of passwords (mailbox.oauth)",
        description="Have a person sign in to the mailbox of the configuration (mailbox.oauth), and keep the token in "
        "mailbox.oauth.token_file. Prints an address, and a code to enter there, and waits. A token that is there is "
        "replaced once somebody has signed in; agents that run take the new one.",
        exit_codes=_EXIT_CODES,
    )
    arguments.add_config_option(parser)
    parser.add_argument(
        "--timeout",
        type=arguments.seconds,
        default=_TIMEOUT_S,
        metavar="S",
        help=f"wait at most so many seconds (default: {_TIMEOUT_S:g}; a code may expire before)",
    )
    parser.add_argument(
        "--port",
        type=arguments.port,
        default=0,
        metavar="PORT",
        help="port of this machine that the browser comes back to, for the flow authorization_code (default: any)",
    )
    arguments.add_verbose_option(parser)


def _run(options: argparse.Namespace) -> int:
    from guarantee_email_agent.agent.sign_in import sign_in

    config = arguments.load_config_and_log(options.config, options.verbose)
    forbid_core_files()
    with signals_as_ctrl_c():
        sign_in(config, arguments.results_terminal(options), timeout_s=options.timeout, port=options.port)
    return EXIT_SUCCESS
