"""`compare`: two runs side by side."""

from __future__ import annotations

import argparse
from pathlib import Path

from guarantee_email_agent.cli import arguments
from guarantee_email_agent.utils.errors import EXIT_EVALUATION, EXIT_SUCCESS

_EXIT_CODES = """\
  0    the runs were compared
  1    general failure
  2    configuration error: no run store, no such run, one run twice, bad configuration, bad usage
  4    with --no-regressions: what passed in the first run fails in the second, or is gone; the second is not whole; or
       they have no result in common
"""


def add_compare(commands: arguments.Commands) -> None:
    parser = arguments.add_command(
        commands,
        "compare",
        _run,
        purpose="two runs side by side: what fails now, and what was changed",
        description="Compare two runs of eval, grade or solve: which results are other ones, which replies, and which "
        "instruction file, scenario, model, parameter, judge or version changed between them.",
        exit_codes=_EXIT_CODES,
    )
    parser.add_argument("baseline", metavar="RUN", help=f"the earlier run: {arguments.RUN_NAMES}")
    parser.add_argument("run_name", nargs="?", default="last", metavar="RUN", help="the later one (default: last)")
    parser.add_argument(
        "--no-regressions",
        action="store_true",
        help="end in 4 where something passed in the first run and fails in the second, or is gone from it, and where "
        "the second has not reached all that it was to run",
    )
    parser.add_argument("--json", dest="json_file", type=Path, metavar="FILE", help="write it as JSON; - is stdout")
    arguments.add_usual_options(parser)


def _run(options: argparse.Namespace) -> int:
    from guarantee_email_agent.files.report_files import write_json_report
    from guarantee_email_agent.runlog.comparison import compare_runs, find_pair
    from guarantee_email_agent.runlog.views.comparison_report import MAX_REPLIES, json_comparison, print_comparison

    with arguments.open_run_store(options) as store:
        pair = find_pair(store, options.baseline, options.run_name)
        comparison = compare_runs(store, *pair, max_details=MAX_REPLIES if options.json_file is None else None)
    print_comparison(comparison, arguments.results_terminal(options))
    write_json_report(options.json_file, lambda: json_comparison(comparison), "compare_report_unwritable")
    return EXIT_EVALUATION if options.no_regressions and not comparison.shows_no_regression else EXIT_SUCCESS
