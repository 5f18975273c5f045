"""`eval`: run the scenario suite and gate on it."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING

from guarantee_email_agent.cli import arguments
from guarantee_email_agent.utils.errors import EXIT_EVALUATION, EXIT_SUCCESS, ConfigurationError
from guarantee_email_agent.utils.process import gc_paused, signals_as_ctrl_c

if TYPE_CHECKING:
    from guarantee_email_agent.config.settings import Config
    from guarantee_email_agent.eval.execution import EvalOptions


def add_eval(commands: arguments.Commands) -> None:
    parser = arguments.add_command(
        commands,
        "eval",
        _run,
        purpose="run the scenario suite, print the pass rate, gate on it",
        description="Run every scenario through the whole mail pipeline, against mocks, and gate on the pass rate.",
    )
    arguments.add_config_option(parser)
    parser.add_argument("--eval-dir", type=Path, metavar="DIR", help="folder with the scenario files")
    parser.add_argument(
        "--only",
        action="extend",
        nargs="+",
        default=[],
        metavar="GLOB",
        help="run only these scenarios: ids, files or categories, e.g. 'missing_info_*' or hand-over; may be repeated",
    )
    parser.add_argument(
        "--threshold", type=arguments.percentage, metavar="PERCENT", help="pass rate to reach (default: 99)"
    )
    parser.add_argument(
        "--require-proof",
        action="store_true",
        help="pass only if the pass rate is proven for new mail, which a sealed suite alone can; else ends in 4",
    )
    parser.add_argument(
        "--caution-curve",
        action="store_true",
        help="in place of results and gate, print what agent.caution of 0, 10, … 100 comes to: how many mails are "
        "answered, how many of them rightly, how many harmfully; ends in 0 once all scenarios ran",
    )
    parser.add_argument("--jobs", type=arguments.count, default=1, metavar="N", help="scenarios at a time (default: 1)")
    arguments.add_executor_option(parser)
    parser.add_argument(
        "--repeat", type=arguments.count, default=1, metavar="K", help="run each scenario K times; all must pass"
    )
    parser.add_argument(
        "--baseline", metavar="RUN", help=f"compare with an earlier run of the suite: {arguments.RUN_NAMES}"
    )
    parser.add_argument(
        "--no-regressions",
        action="store_true",
        help="fail where a scenario passed in the baseline and does not now, or is gone from the suite",
    )
    parser.add_argument(
        "--accept",
        nargs="?",
        const="ask",
        choices=("ask", "all"),
        help="after the run, show each reworded sentence that scenarios fail by since the last green run, and write "
        "the new words into them after a yes; all asks nothing, and takes --reason",
    )
    parser.add_argument(
        "--reason", default="", metavar="TEXT", help="with --accept: why, as `show` has it from then on"
    )
    parser.add_argument(
        "--last-failed", action="store_true", help="run only what failed when it ran last; everything if nothing did"
    )
    parser.add_argument("--fail-fast", action="store_true", help="stop at the first failure, which fails the run")
    parser.add_argument("--quiet", action="store_true", help="show failures and the summary alone")
    arguments.add_report_options(parser, "result")
    arguments.add_audience_option(parser)
    parser.add_argument(
        "--records", dest="records_dir", type=Path, metavar="DIR", help="write the record of every run, for a judge"
    )
    parser.add_argument(
        "--llm",
        choices=arguments.LLM_MODES,
        default="offline",
        help="who answers as the language model: offline, the instructions alone; live, the API; record, the API, "
        "with every exchange kept; replay, what was recorded (default: offline). With --agent the model that such "
        "an agent asks at ANTHROPIC_BASE_URL or OPENAI_BASE_URL, which it gets; offline: its spans alone tell of it",
    )
    parser.add_argument(
        "--max-cost",
        dest="max_cost_usd",
        type=arguments.dollars,
        metavar="DOLLARS",
        help="with --llm live or record, or with --agent: begin no scenario that could take the run over so many US "
        "dollars; one that stops for it ends in 4",
    )
    parser.add_argument(
        "--agent",
        metavar="AGENT",
        help="judge another agent, through mocks behind real MCP servers: command:'PROGRAM ARGS', "
        "http://127.0.0.1:PORT/path or python:module:function",
    )
    parser.add_argument(
        "--agent-mcp",
        choices=("http", "stdio"),
        default="http",
        help="how such an agent reaches the MCP servers; stdio is for command: and python: alone (default: http)",
    )
    parser.add_argument(
        "--agent-timeout",
        type=arguments.seconds,
        default=60.0,
        metavar="SECONDS",
        help="what such an agent has for one scenario (default: 60)",
    )
    parser.add_argument(
        "--resume",
        nargs="?",
        const="",
        metavar="RUN",
        help="go on with an interrupted run, by its id or the beginning of one (default: the last run of this suite); "
        "what it has is taken over, but for what changed since",
    )
    parser.add_argument(
        "--changed",
        action="store_true",
        help="run only the scenarios that are not as they were at their last verdict, or all where instructions, "
        "judges, settings or code are not; other verdicts, failed ones too, are taken over from the run store",
    )
    parser.add_argument(
        "--watch",
        action="store_true",
        help="go on until Ctrl-C: after each save run what depends on the file, and print what is different",
    )
    parser.add_argument(
        "--mutate",
        nargs="?",
        const=60.0,
        type=arguments.seconds,
        metavar="SECONDS",
        help="in place of results and gate, plant faults one at a time in a copy of the instruction files, and say "
        "which of them no scenario notices; goes on where it was (default: for 60 seconds)",
    )
    parser.add_argument(
        "--seed", type=arguments.count, metavar="N", help="with --mutate: which faults come first (default: 1)"
    )
    parser.add_argument(
        "--floor",
        type=arguments.percentage,
        metavar="PERCENT",
        help="with --mutate: end in 4 where the scenarios notice less of the faults that load",
    )
    parser.add_argument(
        "--open",
        action="store_true",
        help="show the cases of a sealed suite, of which else only totals are: counts as an opening, for good",
    )
    arguments.add_store_option(parser)
    arguments.add_verbose_option(parser, "name what passed in a suite of more than 50, too, and ")


@signals_as_ctrl_c()  # from here on: to load what another agent needs takes a second
def _run(options: argparse.Namespace) -> int:
    with gc_paused():
        from guarantee_email_agent.eval.suite import evaluate

    arguments.refuse_audience_alone(options)
    arguments.refuse_idle_cost_limit(options)
    _refuse_mismatched(options)
    config = arguments.load_config_and_log(options.config, options.verbose)
    stream = arguments.results_stream(options)
    if options.watch or options.accept is not None:
        from guarantee_email_agent.eval.suite import refuse_sealed

        refuse_sealed(options.eval_dir or config.eval.test_suite_path)
    if options.mutate is not None:
        from guarantee_email_agent.eval.mutation.mutate import mutate

        chosen, seed = _eval_options(options, config), options.seed or 1
        code = mutate(chosen, config, stream, seconds=options.mutate, seed=seed, floor=options.floor)
    elif options.watch:
        code = _watch(options, config, stream)
    else:
        chosen = _eval_options(options, config)
        code = evaluate(chosen, config, stream)
        if options.accept is not None and chosen.kept is not None and code in (EXIT_SUCCESS, EXIT_EVALUATION):
            from guarantee_email_agent.eval.rewording import accept_rewordings

            ask = options.accept == "ask"
            accept_rewordings(chosen.kept.file, chosen.run_id, stream, ask=ask, reason=options.reason)
    if options.agent is None:  # another has no instructions of ours
        suite = config.eval if options.eval_dir is None else replace(config.eval, test_suite_path=options.eval_dir)
        arguments.show_built_in_files(replace(config, eval=suite))
    return code


def _refuse_mismatched(options: argparse.Namespace) -> None:
    """Raise ConfigurationError for options that need others, or another place to ask."""
    problem = None
    if options.mutate is None and (options.seed is not None or options.floor is not None):
        problem = "--seed and --floor are for --mutate. Add --mutate, or leave them out"
    elif options.mutate is not None and (options.watch or options.accept is not None):
        problem = "--mutate decides on no scenario. Leave --watch and --accept out"
    elif options.reason and options.accept is None:
        problem = "--reason is for --accept. Add --accept, or leave it out"
    elif options.accept is not None and (
        options.no_store or options.watch or options.caution_curve or options.resume is not None
    ):
        problem = "--accept follows a new run that is kept. Leave --no-store, --watch, --caution-curve and --resume out"
    elif options.accept == "ask" and not sys.stdin.isatty():
        problem = "--accept asks at a terminal, and this is none. Write --accept=all --reason TEXT"
    elif options.accept == "all" and not options.reason.strip():
        problem = "--accept=all changes scenarios unasked. Say why with --reason TEXT"
    if problem is not None:
        raise ConfigurationError(f"eval: {problem}", "cli_bad_usage")


def _watch(options: argparse.Namespace, config: Config, stream: arguments.BrokenPipeSafeStream) -> int:
    from guarantee_email_agent.config.loader import load_config
    from guarantee_email_agent.eval.watch import watch_suite

    loaded = iter([config])
    options.github = None  # which shows one run

    def load() -> tuple[EvalOptions, Config]:
        config = next(loaded, None) or load_config(options.config)
        return _eval_options(options, config), config

    return watch_suite(load, stream, stream.reader_has_left)


def _eval_options(options: argparse.Namespace, config: Config) -> EvalOptions:
    from datetime import datetime

    from guarantee_email_agent.eval.execution import EvalOptions
    from guarantee_email_agent.utils.clock import utc_text

    started = datetime.now(UTC)
    return arguments.options_as(
        EvalOptions,
        options,
        directory=options.eval_dir or config.eval.test_suite_path,
        threshold=options.threshold if options.threshold is not None else config.eval.pass_threshold,
        only=tuple(options.only),
        kept=arguments.kept_run(config, keep=not options.no_store),
        run_id=f"{started:%Y%m%dT%H%M%S}-{os.urandom(4).hex()}",
        started=utc_text(started),
    )
