"""`grade`: judge the work of an agent by a task's test.py."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from guarantee_email_agent.cli.arguments import Commands, add_command, count, seconds
from guarantee_email_agent.cli.stdout import BrokenPipeSafeStream


def add_grade(commands: Commands) -> None:
    parser = add_command(
        commands,
        "grade",
        _run,
        purpose="judge the work of an agent by a task's test.py",
        description="Judge the record of an agent's run by the test.py of a task directory, or a folder of records.",
    )
    parser.add_argument("directory", type=Path, metavar="DIR", help="a task directory; with --results a folder of them")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--answer", metavar="TEXT", help="judge this answer; - reads it from stdin")
    what.add_argument("--result", metavar="FILE", help="judge the record in this JSON file; - reads it from stdin")
    what.add_argument(
        "--results", type=Path, metavar="DIR", help="judge a folder with a <task_name>.json for each task"
    )
    what.add_argument(
        "--validate", action="store_true", help="judge nothing; check that each test.py rejects what is no solution"
    )
    parser.add_argument(
        "--timeout", type=seconds, metavar="SECONDS", help="for each judge (default: as task.yaml says, else 60)"
    )
    parser.add_argument("--jobs", type=count, default=1, metavar="N", help="judges at a time (default: 1)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every verdict as JSON")
    parser.add_argument("--junit", type=Path, metavar="FILE", help="write every verdict as JUnit XML")
    parser.add_argument("--verbose", action="store_true", help="show log lines of level INFO on stderr")


def _run(options: argparse.Namespace) -> int:
    from guarantee_email_agent.judging.grade_command import GradeOptions, grade_command
    from guarantee_email_agent.utils.logging import configure_logging

    # Whoever judges the work of another agent has no configuration of ours, and needs none.
    level = "INFO" if options.verbose else "WARNING"
    configure_logging(level=level, console_level=level, file=None, as_json=False)
    return grade_command(
        GradeOptions(
            directory=options.directory,
            answer=options.answer,
            result_file=options.result,
            results_dir=options.results,
            validate=options.validate,
            timeout_s=options.timeout,
            jobs=options.jobs,
            json_file=options.json,
            junit_file=options.junit,
        ),
        BrokenPipeSafeStream(sys.stdout),
        console=sys.stderr,
        read_stdin=lambda: sys.stdin.buffer.read() if sys.stdin else b"",
    )
