"""`solve`: let an agent work on tasks in sandboxes, and judge each."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC
from pathlib import Path

from guarantee_email_agent.cli.arguments import (
    Commands,
    add_command,
    configured,
    count,
    dollars,
    seconds,
    tokens,
)
from guarantee_email_agent.cli.stdout import BrokenPipeSafeStream


def add_solve(commands: Commands) -> None:
    parser = add_command(
        commands,
        "solve",
        _run,
        purpose="let an agent work on task directories in a sandbox, then grade each",
        description="Let an agent work on a task, or on a folder of them, each in a sandbox of its own, and judge what "
        "it did while the sandbox still lives. Tasks that an earlier call finished are skipped.",
    )
    parser.add_argument("directory", type=Path, metavar="DIR", help="a task directory, or a folder of them")
    parser.add_argument(
        "--agent",
        "--controller",
        choices=("llm", "script", "command", "human"),
        default="llm",
        help="who works on the tasks: a language model, a list of actions, a program, you (default: llm)",
    )
    parser.add_argument("--model", metavar="NAME", help="with --agent llm: the model (default: llm.model)")
    parser.add_argument(
        "--script", type=Path, metavar="PATH", help="with --agent script: the actions; a folder has one file a task"
    )
    parser.add_argument(
        "--command",
        dest="program",
        metavar="TEXT",
        help="with --agent command: the program; it gets the instruction for {instruction} or else on stdin",
    )
    parser.add_argument(
        "--sandbox",
        choices=("embedded", "docker", "none"),
        default="embedded",
        help="where the agent works (default: embedded); none isolates nothing",
    )
    parser.add_argument(
        "--output-dir", type=Path, default=Path("results"), metavar="DIR", help="for the records (default: results)"
    )
    parser.add_argument("--jobs", type=count, default=1, metavar="N", help="tasks at a time (default: 1)")
    parser.add_argument("--run-all", action="store_true", help="repeat the tasks that are finished, too")
    parser.add_argument("--max-iterations", type=count, default=50, metavar="N", help="steps a task (default: 50)")
    parser.add_argument(
        "--time-limit", type=seconds, default=1800.0, metavar="SECONDS", help="for each task (default: 1800)"
    )
    parser.add_argument("--max-tokens", type=tokens, metavar="N", help="tokens a task, sent and received")
    parser.add_argument("--max-cost", type=dollars, metavar="DOLLARS", help="US dollars a task")
    parser.add_argument("--timeout", type=seconds, metavar="SECONDS", help="for each judge (default: 60)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every verdict as JSON")
    parser.add_argument("--junit", type=Path, metavar="FILE", help="write every verdict as JUnit XML")
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="with --agent llm: configuration (else $CONFIG_PATH, config.yaml)"
    )
    parser.add_argument("--verbose", action="store_true", help="show log lines of level INFO on stderr")


def _run(options: argparse.Namespace) -> int:
    from datetime import datetime

    from guarantee_email_agent.solving.run_limits import RunLimits
    from guarantee_email_agent.solving.solve_command import SolveOptions, solve_command
    from guarantee_email_agent.utils.logging import configure_logging

    # Only a language model needs the configuration; the others work without one, or with a broken one.
    level = "INFO" if options.verbose else "WARNING"
    configure_logging(level=level, console_level=level, file=None, as_json=False)
    return solve_command(
        SolveOptions(
            directory=options.directory,
            out_dir=options.output_dir,
            agent=options.agent,
            script=options.script,
            command=options.program,
            model=options.model,
            sandbox=options.sandbox,
            jobs=options.jobs,
            run_all=options.run_all,
            limits=RunLimits(
                max_iterations=options.max_iterations,
                wall_time_s=options.time_limit,
                max_tokens=options.max_tokens,
                max_cost_usd=options.max_cost,
            ),
            judge_timeout_s=options.timeout,
            json_file=options.json,
            junit_file=options.junit,
        ),
        BrokenPipeSafeStream(sys.stdout),
        console=sys.stderr,
        load_config=lambda: configured(options.config, options.verbose),
        started=lambda: datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    )
