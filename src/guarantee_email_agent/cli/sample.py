"""`sample`: draw mails at random, to be labelled by a person."""

from __future__ import annotations

import argparse
import secrets
import sys
from pathlib import Path

from guarantee_email_agent.cli import arguments
from guarantee_email_agent.cli.standard_streams import BrokenPipeSafeStream

_EXIT_CODES = """\
exit codes:
  0    the files were written
  1    general failure
  2    configuration error: a folder that holds something, too few mails, bad configuration, bad usage
  3    the mailbox cannot be reached
  130  interrupted
"""


def add_sample(commands: arguments.Commands) -> None:
    parser = arguments.add_command(
        commands,
        "sample",
        _run,
        purpose="draw mails at random, to be labelled and sealed",
        description="Draw mails at random from the inbox, or from a folder of .eml files, and write each as a scenario "
        "without expectations, personal data replaced as 'capture' does it. 'view --label DIR' asks a person for "
        "those, and 'seal DIR' closes the suite. Nothing is sent or marked.",
        exit_codes=_EXIT_CODES,
    )
    parser.add_argument("count", type=arguments.count, metavar="N", help="how many mails")
    parser.add_argument("--to", type=Path, required=True, metavar="DIR", help="new folder for the scenarios")
    arguments.add_past_mail_options(parser)
    parser.add_argument("--seed", type=arguments.count, metavar="N", help="draw as another time (default: at random)")
    arguments.add_config_option(parser)
    arguments.add_verbose_option(parser)


def _run(options: argparse.Namespace) -> int:
    from datetime import UTC, datetime

    from guarantee_email_agent.cli.capture import find_thread
    from guarantee_email_agent.eval.sealing.past_mails import Period
    from guarantee_email_agent.eval.sealing.sample_command import SampleOptions, sample_mails

    config = arguments.load_config_and_log(options.config, options.verbose)
    chosen = SampleOptions(
        count=options.count,
        to=options.to,
        seed=secrets.randbelow(10_000) + 1 if options.seed is None else options.seed,
        today=f"{datetime.now(UTC):%Y-%m-%d}",
        folder=options.mails,
        period=Period(options.since, options.until),
    )
    stream = BrokenPipeSafeStream(sys.stdout)
    return sample_mails(
        chosen, config, stream, lambda email: None if options.mails is not None else find_thread(email, config)
    )
