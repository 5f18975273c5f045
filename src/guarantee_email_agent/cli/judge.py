"""`judge`: how far the model that answers rubrics agrees with people."""

from __future__ import annotations

import argparse
from pathlib import Path

from guarantee_email_agent.cli import arguments

_EXIT_CODES = """\
  0    the labels were compared, or a file to be filled in was written
  1    general failure
  2    configuration error: no run store, no such run, no rubric in it, bad labels, bad configuration, bad usage
  4    with --threshold: a question does not reach it, and gates nothing
"""


def add_judge(commands: arguments.Commands) -> None:
    parser = arguments.add_command(
        commands,
        "judge",
        _run,
        purpose="how far the model that answers rubrics agrees with people",
        description="calibrate: hold what people say of answers against what the model of a run said of them, question "
        "by question, on one half of the cases, so that the other is there to reword questions by. Where LABELS does "
        "not exist, it is written, to be filled in.",
        exit_codes=_EXIT_CODES,
    )
    parser.add_argument("action", choices=("calibrate",), help="what to do")
    parser.add_argument("labels", type=Path, metavar="LABELS", help="CSV with id, question, and label: pass or fail")
    parser.add_argument(
        "run_name", nargs="?", default="last", metavar="RUN", help=f"the run: {arguments.RUN_NAMES} (default: last)"
    )
    parser.add_argument(
        "--threshold",
        type=arguments.percentage,
        metavar="PERCENT",
        help="from now on a question gates where it is proven that the model agrees with so many of the passes, and so "
        "many of the fails, of people (default: none gates)",
    )
    arguments.add_usual_options(parser)


def _run(options: argparse.Namespace) -> int:
    from guarantee_email_agent.judging.calibration import calibrate

    terminal = arguments.results_terminal(options)
    with arguments.open_run_store(options) as store:
        return calibrate(options.labels, store, store.find_run(options.run_name), options.threshold, terminal)
