"""`sample`, `seal` and `rehearse`: past mail, to be labelled by a person."""

from __future__ import annotations

import argparse
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from guarantee_email_agent.cli import arguments

if TYPE_CHECKING:
    from guarantee_email_agent.config.settings import Config
    from guarantee_email_agent.email.parsing.email import Email
    from guarantee_email_agent.services.ports import Thread

_EXIT_CODES = """\
  0    the files were written
  1    general failure
  2    configuration error: a folder that holds something, too few mails, bad configuration, bad usage
  3    the mailbox cannot be reached
"""


def add_sample(commands: arguments.Commands) -> None:
    parser = arguments.add_command(
        commands,
        "sample",
        _sample,
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
    arguments.add_usual_options(parser)


def _sample(options: argparse.Namespace) -> int:
    from guarantee_email_agent.eval.past_mails import Period
    from guarantee_email_agent.eval.sealing.sample_and_seal import SampleOptions, sample_mails

    config = arguments.load_config_and_log(options.config, options.verbose)
    seed, period = options.seed or secrets.randbelow(10_000) + 1, Period(options.since, options.until)
    chosen = arguments.options_as(SampleOptions, options, seed=seed, today=arguments.today(), period=period)
    return sample_mails(chosen, config, arguments.results_stream(options), _threads(options, config))


_EXIT_CODES_OF_SEAL = """\
  0    the suite is sealed
  1    general failure
  2    configuration error: mails without a label, a folder that 'sample' did not make, bad configuration, bad usage
"""


def add_seal(commands: arguments.Commands) -> None:
    parser = arguments.add_command(
        commands,
        "seal",
        _seal,
        purpose="close a labelled sample, so that its bound holds for new mail",
        description="Write down, before anybody sees a result, what the mails of a sample are (their digest), at which "
        "revision, and what has to be reached. From then on 'eval' shows totals of it alone, and --open counts.",
        exit_codes=_EXIT_CODES_OF_SEAL,
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
    arguments.add_usual_options(parser)


def _seal(options: argparse.Namespace) -> int:
    from guarantee_email_agent.eval.sealing.sample_and_seal import SealOptions, seal_suite

    config = arguments.load_config_and_log(options.config, options.verbose)
    threshold = config.eval.pass_threshold if options.threshold is None else options.threshold
    chosen = arguments.options_as(SealOptions, options, threshold=threshold)
    return seal_suite(chosen, config, arguments.results_stream(options))


def add_rehearse(commands: arguments.Commands) -> None:
    parser = arguments.add_command(
        commands,
        "rehearse",
        _rehearse,
        purpose="what the agent would have made of past mail, beside what people sent",
        description="Let the agent work on mail that came already, with the configured look-ups, beside what people "
        "sent (the Sent folder, by thread). Nothing is sent, marked or opened. Each pair is written with personal data "
        "replaced, and 'view --label DIR' asks what a person thinks of it.",
        exit_codes=_EXIT_CODES,
    )
    parser.add_argument("--to", type=Path, required=True, metavar="DIR", help="new folder for the pairs")
    arguments.add_past_mail_options(parser)
    parser.add_argument(
        "--sent", type=Path, metavar="DIR", help="folder with sent mails saved as .eml (default: the Sent folder)"
    )
    parser.add_argument(
        "--llm", choices=("offline", "live"), default="offline", help="who answers as the language model"
    )
    arguments.add_usual_options(parser)


def _rehearse(options: argparse.Namespace) -> int:
    from guarantee_email_agent.eval.past_mails import Period
    from guarantee_email_agent.eval.sealing.rehearse_command import RehearseOptions, rehearse

    config = arguments.load_config_and_log(options.config, options.verbose)
    period, live = Period(options.since, options.until), options.llm == "live"
    chosen = arguments.options_as(RehearseOptions, options, period=period, today=arguments.today(), live=live)
    return rehearse(chosen, config, arguments.results_stream(options), _threads(options, config))


def _threads(options: argparse.Namespace, config: Config) -> Callable[[Email], Thread | None]:
    """Of mails in the inbox: files have no thread that a ledger knows."""
    from guarantee_email_agent.cli.capture import find_thread

    return lambda email: None if options.folder is not None else find_thread(email, config)
