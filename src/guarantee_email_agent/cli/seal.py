"""`seal`: a labelled sample becomes a suite of which only totals are seen."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from guarantee_email_agent.cli import arguments
from guarantee_email_agent.cli.standard_streams import BrokenPipeSafeStream

_EXIT_CODES = """\
exit codes:
  0    the suite is sealed
  1    general failure
  2    configuration error: mails without a label, a folder that 'sample' did not make, bad configuration, bad usage
"""


def add_seal(commands: arguments.Commands) -> None:
    parser = arguments.add_command(
        commands,
        "seal",
        _run,
        purpose="close a labelled sample, so that its bound holds for new mail",
        description="Write down, before anybody sees a result, what the mails of a sample are (their digest), at which "
        "revision, and what has to be reached. From then on 'eval' shows totals of it alone, and --open counts.",
        exit_codes=_EXIT_CODES,
    )
    parser.add_argument(
        "directory", type=Path, metavar="DIR", help="folder that 'sample' made, with every mail labelled"
    )
    parser.add_argument(
        "--threshold", type=arguments.percentage, metavar="PERCENT", help="to be reached (default: as configured)"
    )
    parser.add_argument(
        "--rule",
        choices=("rate", "proof"),
        default="rate",
        help="what has to reach it: the pass rate, or its lower bound (default: rate)",
    )
    parser.add_argument(
        "--openings", type=arguments.count, default=1, metavar="K", help="how often it may be opened (default: 1)"
    )
    arguments.add_config_option(parser)
    arguments.add_verbose_option(parser)


def _run(options: argparse.Namespace) -> int:
    from guarantee_email_agent.eval.sealing.seal_command import SealOptions, seal_suite

    config = arguments.load_config_and_log(options.config, options.verbose)
    threshold = config.eval.pass_threshold if options.threshold is None else options.threshold
    chosen = SealOptions(directory=options.directory, threshold=threshold, rule=options.rule, openings=options.openings)
    return seal_suite(chosen, config, BrokenPipeSafeStream(sys.stdout))
