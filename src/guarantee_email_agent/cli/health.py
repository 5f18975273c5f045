"""`health`: ask a running agent whether it lives, as a container's health check does."""

from __future__ import annotations

import argparse
import sys

from guarantee_email_agent.cli import arguments
from guarantee_email_agent.cli.standard_streams import BrokenPipeSafeStream
from guarantee_email_agent.utils.errors import EXIT_FAILURE, EXIT_SUCCESS

_EXIT_CODES = """\
exit codes:
  0    it lives; with --ready: mail can be answered; with --if-configured: there is nobody to ask
  1    it does not, or nobody answers in time; the line says why; or the output could not be written
  2    bad usage or configuration, or one without metrics.listen: there is nobody to ask
  130  interrupted
"""


def add_health(commands: arguments.Commands) -> None:
    parser = arguments.add_command(
        commands,
        "health",
        _run,
        purpose="ask a running agent whether it lives, and whether mail can be answered",
        description="Ask the agent that runs with this configuration, on this machine, for its health. It needs no "
        "secrets and starts nothing, so that a container's health check may run it.",
        exit_codes=_EXIT_CODES,
    )
    parser.add_argument(
        "--ready", action="store_true", help="whether mail can be answered (/readyz), not only whether it lives"
    )
    parser.add_argument(
        "--if-configured",
        action="store_true",
        help="without metrics.listen, where there is nobody to ask, end with 0",
    )
    arguments.add_config_option(parser)


def _run(options: argparse.Namespace) -> int:
    from guarantee_email_agent.agent.health_probe import HealthAnswer, ask_health
    from guarantee_email_agent.config.loader import load_config

    settings = load_config(options.config).metrics
    if options.if_configured and settings.place is None:
        answer = HealthAnswer(True, "metrics are off, so that there is nobody to ask")
    else:
        answer = ask_health(settings, "/readyz" if options.ready else "/healthz")
    BrokenPipeSafeStream(sys.stdout).write(f"{answer.text}\n")
    return EXIT_SUCCESS if answer.is_good else EXIT_FAILURE
