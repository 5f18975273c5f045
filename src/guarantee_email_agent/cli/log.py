"""`log`: what became of mails, one a line or summed up."""

from __future__ import annotations

import argparse
from datetime import datetime, timedelta
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from guarantee_email_agent.cli import arguments
from guarantee_email_agent.utils.errors import EXIT_SUCCESS, ConfigurationError
from guarantee_email_agent.utils.text import printable

if TYPE_CHECKING:
    from guarantee_email_agent.utils.clock import LocalTime

_EXIT_CODES = """\
  0    it was shown, be it nothing
  1    the ledger cannot be read now, or the output could not be written; with --subjects: the mailbox
       cannot list its mails
  2    configuration error: no ledger, or one of another version, bad configuration, bad usage
  3    with --subjects: the mail server could not be started or reached
"""
_OUTCOMES = ("answered", "drafted", "handed_over", "not_answered", "quarantined", "unknown", "observed")


def add_log(commands: arguments.Commands) -> None:
    parser = arguments.add_command(
        commands,
        "log",
        _run,
        purpose="what became of mails: outcome, scenario or reason, ticket, time",
        description="List what became of mails, the newest last, from the ledger. It knows no mail's content; "
        "--subjects reads sender and subject from the mailbox, and keeps neither. With --summary: how many mails "
        "came to which outcome, and what waits now. Nothing is written.",
        exit_codes=_EXIT_CODES,
    )
    parser.add_argument("--today", action="store_true", help="since 0:00, in the zone of the times shown")
    parser.add_argument(
        "--since",
        type=_moment,
        metavar="WHEN",
        help="since yesterday (0:00), today, 2026-01-31 or '2026-01-31 14:00', in the same zone",
    )
    parser.add_argument("--until", type=_moment, metavar="WHEN", help="what was done before then (default: until now)")
    parser.add_argument(
        "--outcome", action="append", choices=_OUTCOMES, help="only mails that ended so; may be repeated"
    )
    parser.add_argument(
        "--limit", type=arguments.count, default=50, metavar="N", help="the last N of them (default: 50)"
    )
    parser.add_argument("--subjects", action="store_true", help="with sender and subject of each, from the mailbox")
    parser.add_argument(
        "--summary", action="store_true", help="instead of single mails: what was done in all, and what waits now"
    )
    parser.add_argument("--json", dest="json_file", type=Path, metavar="FILE", help="write it as JSON; - is stdout")
    arguments.add_usual_options(parser)


_DAYS_AGO = {"today": 0, "yesterday": 1}


def _moment(text: str) -> datetime | int:
    """Days before today where it is one of those words."""
    if text in _DAYS_AGO:
        return _DAYS_AGO[text]
    try:
        moment = datetime.fromisoformat(text)
        moment.timestamp()  # of the last day there is, some zones have none
    except (ValueError, OverflowError):
        moment = None
    if moment is None or moment.year < 1971:
        raise argparse.ArgumentTypeError(
            f"'{printable(text[:40])}' is no date. Write it as 2026-01-31, '2026-01-31 14:00', today or yesterday"
        )
    return moment


def _run(options: argparse.Namespace) -> int:
    from guarantee_email_agent.agent.mail_history import log_report, print_log, read_headings, summary_lines
    from guarantee_email_agent.files.report_files import write_json_report
    from guarantee_email_agent.ledger.ledger_reader import LedgerReader
    from guarantee_email_agent.services.ports import OUTCOMES
    from guarantee_email_agent.utils.clock import LocalTime

    if options.today and options.since is not None:
        raise ConfigurationError("log: --today and --since name two beginnings. Leave one out", "cli_bad_usage")
    if options.summary:
        of_lists = ("subjects", "outcome", "json_file")
        if (found := next((name for name in of_lists if getattr(options, name)), None)) is not None:
            left_out = found.removesuffix("_file")
            raise ConfigurationError(f"log: --{left_out} is for a list. Leave it or --summary out", "cli_bad_usage")
        if options.since is None and not options.today:
            raise ConfigurationError("log: --summary of when? Add --since yesterday, or a date", "cli_bad_usage")
    config = arguments.load_config_and_log(options.config, options.verbose, to_file=False)
    clock = LocalTime()
    with LedgerReader(config.ledger_location) as reader:
        now = reader.now()
        since = _seconds(0 if options.today else options.since, clock, now) or 0.0
        until = _seconds(options.until, clock, now)
        end = min(until or now, now)
        if since >= (end if options.summary else until or inf):
            raise ConfigurationError("log: no time has passed from --since to --until", "cli_bad_usage")
        if options.summary:
            terminal = arguments.results_terminal(options)
            for line in summary_lines(reader, since, end, clock):
                terminal.line(line)
            return EXIT_SUCCESS
        wanted = [each for each in OUTCOMES if each in (options.outcome or OUTCOMES)]
        rows = reader.outcomes(wanted, since=since, until=until, limit=options.limit)
        headings = read_headings(config, reader, rows) if options.subjects else None
    print_log(rows, headings, clock, now, arguments.results_terminal(options))
    write_json_report(options.json_file, lambda: log_report(rows, headings), "log_report_unwritable")
    return EXIT_SUCCESS


def _seconds(moment: datetime | int | None, clock: LocalTime, now: float) -> float | None:
    """Since 1970. moment: as `_moment` reads it."""
    if moment is None:
        return None
    if isinstance(moment, int):
        return clock.seconds(clock.at(now).date() - timedelta(days=moment))
    return moment.timestamp() if moment.tzinfo else clock.seconds(moment.date(), moment.time())
