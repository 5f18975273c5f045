"""`eval`: run the scenario suite and gate on it."""

from __future__ import annotations

import argparse
import os
import sys
from datetime import UTC
from pathlib import Path

from guarantee_email_agent.cli.arguments import Commands, add_command, configured, count, percentage
from guarantee_email_agent.cli.stdout import BrokenPipeSafeStream
from guarantee_email_agent.utils.errors import ConfigurationError

LLM_MODES = ("offline", "live", "record", "replay")


def add_eval(commands: Commands) -> None:
    parser = add_command(
        commands,
        "eval",
        _run,
        purpose="run the scenario suite, print the pass rate, gate on it",
        description="Run every scenario through the whole mail pipeline, against mocks, and gate on the pass rate.",
    )
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="configuration file (else $CONFIG_PATH, config.yaml)"
    )
    parser.add_argument("--eval-dir", type=Path, metavar="DIR", help="folder with the scenario files")
    parser.add_argument("--only", metavar="GLOB", help="run only the scenarios whose id matches, e.g. 'missing_info_*'")
    parser.add_argument("--threshold", type=percentage, metavar="PERCENT", help="pass rate to reach (default: 99)")
    parser.add_argument("--jobs", type=count, default=1, metavar="N", help="scenarios at a time (default: 1)")
    parser.add_argument("--repeat", type=count, default=1, metavar="K", help="run each scenario K times; all must pass")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every result as JSON")
    parser.add_argument("--junit", type=Path, metavar="FILE", help="write every result as JUnit XML")
    parser.add_argument("--records", type=Path, metavar="DIR", help="write the record of every run, for a judge")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a report as one HTML file (not available yet)")
    parser.add_argument(
        "--llm",
        choices=LLM_MODES,
        default="offline",
        help="who answers as the language model: offline, the instructions alone; live, the API; record, the API, "
        "with every exchange kept; replay, what was recorded (default: offline)",
    )
    parser.add_argument("--verbose", action="store_true", help="show log lines of level INFO on stderr")


def _run(options: argparse.Namespace) -> int:
    if options.html is not None:
        raise ConfigurationError("--html is not available yet. Use --json or --junit", "cli_not_available")

    from datetime import datetime

    from guarantee_email_agent.eval.suite import EvalOptions, evaluate

    started = datetime.now(UTC)
    config = configured(options.config, options.verbose)
    return evaluate(
        EvalOptions(
            directory=options.eval_dir or config.eval.test_suite_path,
            threshold=options.threshold if options.threshold is not None else config.eval.pass_threshold,
            only=options.only,
            jobs=options.jobs,
            repeat=options.repeat,
            json_file=options.json,
            junit_file=options.junit,
            records_dir=options.records,
            run_id=f"{started:%Y%m%dT%H%M%S}-{os.urandom(4).hex()}",
            started=started.isoformat(timespec="seconds").replace("+00:00", "Z"),
            llm=options.llm,
        ),
        config,
        BrokenPipeSafeStream(sys.stdout),
    )
