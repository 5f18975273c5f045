"""`grade`: judge the work of an agent by a task's test.py."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from guarantee_email_agent.cli import arguments


def add_grade(commands: arguments.Commands) -> None:
    parser = arguments.add_command(
        commands,
        "grade",
        _run,
        purpose="judge the work of an agent by a task's test.py",
        description="Judge the record of an agent's run by the test.py of a task directory, or a folder of records.",
    )
    parser.add_argument("directory", type=Path, metavar="DIR", help="a task directory; with --results a folder of them")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--answer", metavar="TEXT", help="judge this answer; - reads it from stdin")
    what.add_argument(
        "--result", dest="result_file", metavar="FILE", help="judge the record in this JSON file; - reads it from stdin"
    )
    what.add_argument(
        "--results",
        type=Path,
        metavar="PATH",
        help="judge a folder with a <task_name>.json for each task, or a .jsonl file with a record on each line",
    )
    parser.add_argument(
        "--from",
        dest="transcript",
        choices=("openai", "langchain", "pydantic-ai", "inspect", "otel"),
        help="the results are transcripts: messages of OpenAI's APIs or of a framework, samples of Inspect's logs, or "
        "spans (OTLP JSON)",
    )
    what.add_argument(
        "--validate",
        action="store_true",
        help="judge nothing; check that each test.py passes its correct record and rejects what is no solution",
    )
    parser.add_argument(
        "--timeout",
        dest="timeout_s",
        type=arguments.seconds,
        metavar="SECONDS",
        help="for each judge (default: as task.yaml says, else 60)",
    )
    parser.add_argument(
        "--llm",
        choices=arguments.LLM_MODES,
        default="offline",
        help="who answers the rubrics of tasks: offline, nobody; live, the model of the configuration; record, the "
        "same, with every exchange kept; replay, what was recorded (default: offline)",
    )
    parser.add_argument(
        "--max-cost",
        dest="max_cost_usd",
        type=arguments.dollars,
        metavar="DOLLARS",
        help="with --llm live or record: ask about no further record where that could take the run over so many US "
        "dollars; one that stops for it ends in 4",
    )
    parser.add_argument("--jobs", type=arguments.count, default=1, metavar="N", help="judges at a time (default: 1)")
    arguments.add_allow_option(parser)
    arguments.add_report_options(parser, "verdict")
    parser.add_argument("--config", type=Path, metavar="FILE", help="keep the run where this configuration says")
    arguments.add_store_option(parser)
    arguments.add_verbose_option(parser)


def _run(options: argparse.Namespace) -> int:
    from guarantee_email_agent.config.task_allowance import with_options
    from guarantee_email_agent.judging.grade_command import GradeOptions, grade_command

    arguments.refuse_idle_cost_limit(options)
    arguments.log_to_console(options.verbose)
    # Whoever judges the work of another agent has no configuration of ours, and needs none.
    needs_config = options.config is not None or options.llm != "offline"
    config = arguments.load_config_and_log(options.config, options.verbose) if needs_config else None
    return grade_command(
        arguments.options_as(
            GradeOptions,
            options,
            allowed=with_options(options.allow),
            config=config,
            kept=arguments.kept_run_beside(config, keep=not options.no_store),
        ),
        arguments.results_stream(options),
        console=sys.stderr,
        read_stdin=arguments.read_stdin,
    )
