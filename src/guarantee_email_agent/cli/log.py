"""`log`: what became of mails, one a line."""

from __future__ import annotations

import argparse
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from guarantee_email_agent.cli import arguments
from guarantee_email_agent.utils.errors import EXIT_SUCCESS, ConfigurationError
from guarantee_email_agent.utils.text import printable

if TYPE_CHECKING:
    from guarantee_email_agent.utils.local_time import LocalTime

_EXIT_CODES = """\
exit codes:
  0    it was shown, be it nothing
  1    the ledger cannot be read now, or the output could not be written; with --subjects: the mailbox
       cannot list its mails
  2    configuration error: no ledger, or one of another version, bad configuration, bad usage
  3    with --subjects: the mail server could not be started or reached
  130  interrupted
"""
_OUTCOMES = ("answered", "drafted", "handed_over", "not_answered", "quarantined", "unknown", "observed")


def add_log(commands: arguments.Commands) -> None:
    parser = arguments.add_command(
        commands,
        "log",
        _run,
        purpose="what became of mails: outcome, scenario or reason, ticket, time",
        description="List what became of mails, the newest last, from the ledger. It knows no mail's content; "
        "--subjects reads sender and subject from the mailbox, and keeps neither. Nothing is written.",
        exit_codes=_EXIT_CODES,
    )
    parser.add_argument("--today", action="store_true", help="since 0:00, in the zone of the times shown")
    parser.add_argument(
        "--since", type=_moment, metavar="WHEN", help="since 2026-01-31 or '2026-01-31 14:00', in the same zone"
    )
    parser.add_argument(
        "--outcome", action="append", choices=_OUTCOMES, help="only mails that ended so; may be repeated"
    )
    parser.add_argument(
        "--limit", type=arguments.count, default=50, metavar="N", help="the last N of them (default: 50)"
    )
    parser.add_argument("--subjects", action="store_true", help="with sender and subject of each, from the mailbox")
    parser.add_argument("--json", dest="json_file", type=Path, metavar="FILE", help="write it as JSON; - is stdout")
    arguments.add_config_option(parser)
    arguments.add_verbose_option(parser)


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.year < 1971:
        raise argparse.ArgumentTypeError(
            f"'{printable(text[:40])}' is no date. Write it as 2026-01-31 or '2026-01-31 14:00'"
        )
    return moment


def _run(options: argparse.Namespace) -> int:
    from guarantee_email_agent.agent.ledger_access import open_reader
    from guarantee_email_agent.agent.mail_history import log_report, print_log, read_headings
    from guarantee_email_agent.ledger.ledger_reader import OUTCOMES
    from guarantee_email_agent.reporting.report_files import write_json_report
    from guarantee_email_agent.reporting.terminal import Terminal
    from guarantee_email_agent.utils.local_time import LocalTime

    if options.today and options.since is not None:
        raise ConfigurationError("log: --today and --since name two beginnings. Leave one out", "cli_bad_usage")
    config = arguments.load_config_and_log(options.config, options.verbose, to_file=False)
    clock = LocalTime(config.summary.zone)
    with open_reader(config) as reader:
        now = reader.now()
        wanted = [each for each in OUTCOMES if each in (options.outcome or OUTCOMES)]
        rows = reader.outcomes(wanted, since=_beginning(options, clock, now), limit=options.limit)
        headings = read_headings(config, reader, rows) if options.subjects else None
        short = reader.short_keys(row.mail_key for row in rows)
    print_log(rows, short, headings, clock, now, Terminal(arguments.results_stream(options)))
    write_json_report(options.json_file, lambda: log_report(rows, headings, clock), "log_report_unwritable")
    return EXIT_SUCCESS


def _beginning(options: argparse.Namespace, clock: LocalTime, now: float) -> float:
    """In seconds since 1970."""
    if options.today:
        return clock.seconds(clock.at(now).date())
    if options.since is None:
        return 0.0
    moment: datetime = options.since
    return moment.timestamp() if moment.tzinfo else clock.seconds(moment.date(), moment.time())
