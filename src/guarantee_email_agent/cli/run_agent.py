"""`run`: watch the inbox and answer mail until stopped."""

from __future__ import annotations

import argparse
import logging
import signal
from dataclasses import replace
from pathlib import Path

from guarantee_email_agent.cli import arguments
from guarantee_email_agent.cli.arguments import MODES
from guarantee_email_agent.utils.errors import ConfigurationError
from guarantee_email_agent.utils.process import gc_paused

logger = logging.getLogger(__name__)


_EXIT_CODES = """\
  0    stopped by SIGTERM or SIGHUP; with --once: each mail came to an outcome
  1    with --once: a mail has no outcome; the ledger cannot be opened for now
  2    configuration error: bad configuration, missing secret, bad instruction file, bad usage
  3    a mail, warranty or ticketing server could not be started or reached
"""


def add_run(commands: arguments.Commands) -> None:
    parser = arguments.add_command(
        commands,
        "run",
        _run,
        purpose="watch the inbox and answer mail until stopped",
        description="Watch the inbox and answer warranty mail. SIGTERM, SIGHUP: finish the mails in progress, then "
        "exit; SIGINT: stop now. Either way no mail is lost, and none is answered twice.",
        exit_codes=_EXIT_CODES,
        interrupted="  130  stopped by SIGINT\n",
    )
    arguments.add_config_option(parser)
    parser.add_argument(
        "--once",
        action="store_true",
        help="process every mail in the inbox once, then exit: 0 if each came to an outcome, 1 if one did not",
    )
    parser.add_argument(
        "--demo",
        nargs="?",
        const="",
        metavar="DIR",
        help="answer a dozen sample mails, offline, and show what came of it; DIR: a new folder to keep all of it in",
    )
    parser.add_argument(
        "--mode",
        choices=MODES,
        help="answer: send replies; drafts: store them for a person to send; observe: only log what would be done "
        "(default: agent.mode)",
    )
    parser.add_argument(
        "--take-over",
        action="store_true",
        help="serve a mailbox that was served with another ledger so far; stop the agents of that one before",
    )
    parser.add_argument("--verbose", action="store_true", help="log at level DEBUG")


def _run(options: argparse.Namespace) -> int:
    if options.demo is not None:
        given = {"--config": options.config, "--mode": options.mode, "--take-over": options.take_over}
        for option, value in given.items():
            if value:
                raise ConfigurationError(
                    f"--demo brings a configuration and a mailbox of its own. Leave out {option}, or --demo",
                    "cli_demo_config",
                )
        with gc_paused():
            from guarantee_email_agent.agent.demo import demonstrate

        return demonstrate(Path(options.demo) if options.demo else None, arguments.results_stream(options))

    with gc_paused():
        from guarantee_email_agent.agent.startup import run_agent
    from guarantee_email_agent.config.loader import load_config
    from guarantee_email_agent.utils.logging import configure_logging

    config = load_config(options.config)
    if options.mode is not None:
        config = replace(config, agent=replace(config.agent, mode=options.mode))
    log = config.logging
    level = "DEBUG" if options.verbose else log.level
    configure_logging(level, level, log.file, log.json, split_console=True)
    if (notice := arguments.built_in_files_notice(config)) is not None:
        logger.info("%s", notice)
    try:
        return run_agent(config, once=options.once, take_over=options.take_over)
    finally:
        for number in (signal.SIGHUP, signal.SIGTERM):
            signal.signal(number, lambda *_: None)  # nothing is left to stop, and the exit code stays as it is
