"""`stale`: which verdicts of a run no longer hold."""

from __future__ import annotations

import argparse
from pathlib import Path

from guarantee_email_agent.cli import arguments
from guarantee_email_agent.utils.errors import EXIT_EVALUATION, EXIT_SUCCESS

_EXIT_CODES = """\
  0    every verdict of the run holds for the files and settings of today
  1    general failure
  2    configuration error: no run store, no such run, bad configuration, missing suite folder, bad usage
  4    a verdict is out of date, a scenario has none, or what a verdict depended on is not known as a whole
"""


def add_stale(commands: arguments.Commands) -> None:
    parser = arguments.add_command(
        commands,
        "stale",
        _run,
        purpose="which verdicts of a run of eval are out of date, by which changed file",
        description="Compare what the verdicts of a run of eval depended on with the files and settings of today. "
        "Nothing is run.",
        exit_codes=_EXIT_CODES,
    )
    parser.add_argument(
        "run_name", nargs="?", default="last", metavar="RUN", help=f"{arguments.RUN_NAMES} (default: last of the suite)"
    )
    parser.add_argument("--eval-dir", type=Path, metavar="DIR", help="folder with the scenario files")
    parser.add_argument("--json", dest="json_file", type=Path, metavar="FILE", help="write it as JSON; - is stdout")
    arguments.add_usual_options(parser)


def _run(options: argparse.Namespace) -> int:
    from guarantee_email_agent.eval.reuse import find_stale, print_stale
    from guarantee_email_agent.files.report_files import write_json_report
    from guarantee_email_agent.runlog.run_reader import RunStore

    config = arguments.load_config_and_log(options.config, options.verbose)
    with RunStore(config.run_store_file) as store:
        found = find_stale(store, options.run_name, config, options.eval_dir or config.eval.test_suite_path)
    print_stale(found, arguments.results_terminal(options))
    write_json_report(options.json_file, found.as_dict, "stale_report_unwritable")
    return EXIT_EVALUATION if found.stale or found.new or found.unknown else EXIT_SUCCESS
