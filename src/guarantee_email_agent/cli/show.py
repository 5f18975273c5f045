"""`show`: what a run did, and one result of it with everything that happened."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from guarantee_email_agent.cli import arguments
from guarantee_email_agent.utils.errors import EXIT_SUCCESS, ConfigurationError
from guarantee_email_agent.utils.text import printable

if TYPE_CHECKING:
    from guarantee_email_agent.runlog.records import CaseResult, Run
    from guarantee_email_agent.runlog.run_reader import RunStore

_EXIT_CODES = """\
  0    it was shown, whatever the run came to
  1    general failure
  2    configuration error: no run store, no such run, no such result in it, bad configuration, bad usage
"""
_LISTED = 50


def add_show(commands: arguments.Commands) -> None:
    parser = arguments.add_command(
        commands,
        "show",
        _run,
        purpose="a run of eval, grade or solve, or one result of it with everything that happened",
        description="Show a scenario or task of a run: the mail, how it was read, the calls with their answers, the "
        "reply, the ticket, every check with what was expected and what came, what it took, and each repetition; of a "
        "task the messages and steps of its record, where that still stands, and what the judge said. "
        "Without ID: the run, and what of it failed; any report can be written of it.",
        exit_codes=_EXIT_CODES,
    )
    parser.add_argument(
        "names",
        nargs="*",
        metavar="RUN ID",
        help=f"the run (default: last) and the scenario or task, such as valid_warranty_001. A run is named by "
        f"{arguments.RUN_NAMES}",
    )
    parser.add_argument("--list", action="store_true", help=f"list the last {_LISTED} runs")
    arguments.add_report_options(parser, "result")
    arguments.add_audience_option(parser)
    arguments.add_usual_options(parser)


def _run(options: argparse.Namespace) -> int:
    from guarantee_email_agent.files.report_files import check_report_paths, write_json_report
    from guarantee_email_agent.judging.record_reference import with_record
    from guarantee_email_agent.runlog.views.comparison_report import json_run
    from guarantee_email_agent.runlog.views.report import RunOptions
    from guarantee_email_agent.runlog.views.result_view import json_result, print_result, print_run, print_runs
    from guarantee_email_agent.runlog.views.stored_report import stored_report, write_report_files

    if len(options.names) > 2 or (options.list and options.names):
        what = "--list takes no run" if options.list else "write at most a run and one scenario or task"
        raise ConfigurationError(f"show: {what}. See 'show --help'", "cli_bad_usage")
    arguments.refuse_audience_alone(options)
    reports = arguments.options_as(RunOptions, options, directory=Path(), github=None)
    of_run = [option for option in reports.report_files if option != "--json"]
    if (options.list or len(options.names) > 1) and of_run:
        problem = f"show: {of_run[0]} is of a whole run. Name one run, and no scenario or task"
        raise ConfigurationError(problem, "cli_bad_usage")
    terminal = arguments.results_terminal(options)
    code = "show_report_unwritable"
    check_report_paths(reports.report_files, code)
    with arguments.open_run_store(options) as store:
        if options.list:
            runs = [store.with_counts(run) for run in store.runs(limit=_LISTED)]
            print_runs(runs, terminal)
            write_json_report(options.json_file, lambda: list(map(json_run, runs)), code)
        else:
            run, found = _find(store, options.names)
            if reports.html_for and run.command != "eval":
                problem = f"show: --for {reports.html_for} is of a run of eval, and this is one of {run.command}"
                raise ConfigurationError(f"{problem}. Name another run", "cli_bad_usage")
            results = list(map(with_record, found))
            if results:
                if of_run:
                    problem = f"show: {printable(results[0].name)} is one result, and such a report is of a whole run"
                    raise ConfigurationError(f"{problem}. Name a run", "cli_bad_usage")
                print_result(run, results, terminal)
                write_json_report(options.json_file, lambda: [json_result(run, each) for each in results], code)
            else:
                print_run(store, run, terminal)
                if reports.wants_reports:
                    report = stored_report(store, run, with_record)
                    known = {**report.summary, "incomplete": store.incomplete_inputs(run)}
                    write_report_files(reports, code, replace(report, summary=known))
    return EXIT_SUCCESS


def _find(store: RunStore, names: list[str]) -> tuple[Run, list[CaseResult]]:
    """The run and the results of one case of it; none where the whole run is meant. Raises StoreError."""
    from guarantee_email_agent.runlog.database import StoreError

    if len(names) == 2:
        run = store.find_run(names[0])
        return run, store.find_case(run, names[1])
    run = store.find_run("last")
    if not names:
        return run, []
    if store.results_of_case(run, names[0]):
        return run, store.find_case(run, names[0])
    try:
        return store.find_run(names[0]), []
    except StoreError as error:
        if error.code == "store_no_such_run" and names[0] not in ("last", "green"):
            return run, store.find_case(run, names[0])
        raise
