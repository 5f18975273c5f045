"""`check`: validate everything that `run` needs, and say how the inbox stands."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from guarantee_email_agent.cli.arguments import Commands, add_command
from guarantee_email_agent.cli.stdout import BrokenPipeSafeStream
from guarantee_email_agent.utils.gc_pause import gc_paused


def add_check(commands: Commands) -> None:
    parser = add_command(
        commands,
        "check",
        _run,
        purpose="validate configuration, secrets, instruction files and every connection",
        description="Validate configuration, secrets, instruction files and every connection, then exit. Nothing is "
        "answered, and no mail is touched.",
    )
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="configuration file (else $CONFIG_PATH, config.yaml)"
    )
    parser.add_argument("--inbox", action="store_true", help="also count the mails of the inbox by what became of them")
    parser.add_argument("--verbose", action="store_true", help="show log lines of level INFO on stderr")


def _run(options: argparse.Namespace) -> int:
    with gc_paused():
        from guarantee_email_agent.agent.preflight import check_all
    from guarantee_email_agent.utils.logging import configure_logging

    level = "INFO" if options.verbose else "WARNING"
    configure_logging(level=level, console_level=level, file=None, as_json=False)
    return check_all(options.config, BrokenPipeSafeStream(sys.stdout), inbox=options.inbox)
