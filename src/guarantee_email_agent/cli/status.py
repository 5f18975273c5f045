"""`status`: which agents run, what waits, and what failed."""

from __future__ import annotations

import argparse
from pathlib import Path

from guarantee_email_agent.cli import arguments
from guarantee_email_agent.utils.errors import EXIT_FAILURE, EXIT_SUCCESS

_EXIT_CODES = """\
  0    it was shown, whatever it is
  1    the ledger cannot be read now, or the output could not be written; with --fail-on-problem: no agent runs, one was
       killed or may be gone, a service is down, the ledger cannot be written, or a mail failed
  2    configuration error: no ledger, or one of another version, bad configuration, bad usage
"""


def add_status(commands: arguments.Commands) -> None:
    parser = arguments.add_command(
        commands,
        "status",
        _run,
        purpose="which agents run, what waits, what failed, and since when",
        description="Show, from the ledger, which agents run and what they report, which mails are not finished and "
        "when they are due, which failed, and what came of the last 24 hours. Nothing is changed.",
        exit_codes=_EXIT_CODES,
    )
    parser.add_argument("--json", dest="json_file", type=Path, metavar="FILE", help="write it as JSON; - is stdout")
    parser.add_argument(
        "--fail-on-problem", action="store_true", help="exit code 1 where a person should look, for monitoring"
    )
    arguments.add_usual_options(parser)


def _run(options: argparse.Namespace) -> int:
    from guarantee_email_agent.agent.status import print_status, read_status, status_report
    from guarantee_email_agent.files.report_files import write_json_report
    from guarantee_email_agent.ledger.ledger_reader import LedgerReader
    from guarantee_email_agent.utils.clock import LocalTime

    config = arguments.load_config_and_log(options.config, options.verbose, to_file=False)
    clock = LocalTime()
    with LedgerReader(config.ledger_location) as reader:
        status = read_status(reader)
    print_status(status, clock, arguments.results_terminal(options))
    write_json_report(options.json_file, lambda: status_report(status), "status_report_unwritable")
    return EXIT_FAILURE if options.fail_on_problem and status.problems else EXIT_SUCCESS
