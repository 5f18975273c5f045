"""`solve`: let an agent work on tasks in sandboxes, and judge each."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from guarantee_email_agent.cli import arguments


def add_solve(commands: arguments.Commands) -> None:
    parser = arguments.add_command(
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
        choices=("llm", "script", "command"),
        default="llm",
        help="who works on the tasks: a language model, a list of actions, a program (default: llm)",
    )
    parser.add_argument("--model", metavar="NAME", help="with --agent llm: the model (default: llm.model)")
    parser.add_argument(
        "--script", type=Path, metavar="PATH", help="with --agent script: the actions; a folder has one file a task"
    )
    parser.add_argument(
        "--command",
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
    parser.add_argument("--jobs", type=arguments.count, default=1, metavar="N", help="tasks at a time (default: 1)")
    parser.add_argument("--run-all", action="store_true", help="repeat the tasks that are finished, too")
    parser.add_argument(
        "--max-iterations", type=arguments.count, default=50, metavar="N", help="steps a task (default: 50)"
    )
    parser.add_argument(
        "--time-limit",
        dest="wall_time_s",
        type=arguments.seconds,
        default=1800.0,
        metavar="SECONDS",
        help="for each task (default: 1800)",
    )
    parser.add_argument("--max-tokens", type=arguments.tokens, metavar="N", help="tokens a task, sent and received")
    parser.add_argument(
        "--max-cost", dest="max_cost_usd", type=arguments.dollars, metavar="DOLLARS", help="US dollars a task"
    )
    parser.add_argument(
        "--timeout",
        dest="judge_timeout_s",
        type=arguments.seconds,
        metavar="SECONDS",
        help="for each judge (default: as task.yaml says, else 60)",
    )
    arguments.add_allow_option(parser)
    arguments.add_report_options(parser, "verdict")
    parser.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="configuration: the run store and, with --agent llm, the model (else $CONFIG_PATH, config.yaml)",
    )
    arguments.add_store_option(parser)
    arguments.add_verbose_option(parser)


def _run(options: argparse.Namespace) -> int:
    from guarantee_email_agent.config.task_allowance import with_options
    from guarantee_email_agent.solving.run_limits import RunLimits
    from guarantee_email_agent.solving.solve_command import SolveOptions, solve_command
    from guarantee_email_agent.utils.clock import utc_now

    # Only a language model needs the configuration; the others work without one, or with a broken one lying about.
    arguments.log_to_console(options.verbose)
    config = arguments.load_config_and_log(options.config, options.verbose) if options.config else None
    return solve_command(
        arguments.options_as(
            SolveOptions,
            options,
            limits=arguments.options_as(RunLimits, options),
            allowed=with_options(options.allow),
            kept=arguments.kept_run_beside(config, keep=not options.no_store),
        ),
        arguments.results_stream(options),
        console=sys.stderr,
        load_config=lambda: config or arguments.load_config_and_log(None, options.verbose),
        started=lambda: utc_now("milliseconds"),
    )
