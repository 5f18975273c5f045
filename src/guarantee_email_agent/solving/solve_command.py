"""The whole of `solve`: find the tasks, let an agent work on those that are left, report, gate on all passed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.config.task_allowance import NOTHING_MORE, TaskAllowance
from guarantee_email_agent.files.report_files import check_report_paths, check_writable, make_folder
from guarantee_email_agent.judging.grade_report import UNWRITABLE, GradeReporter, as_cases
from guarantee_email_agent.judging.record import check_record_file, refuse_misplaced_reports
from guarantee_email_agent.judging.task import InvalidTask, Task, load_tasks, to_work_on
from guarantee_email_agent.judging.verdict import Graded, Verdict
from guarantee_email_agent.runlog.views.report import RunOptions
from guarantee_email_agent.runlog.views.run_report import run_and_report
from guarantee_email_agent.sandbox import open_sandbox as open_real_sandbox
from guarantee_email_agent.sandbox import require_sandbox
from guarantee_email_agent.sandbox.sandbox import SandboxKind, usual_limits
from guarantee_email_agent.solving.agents.agent import AgentFactory
from guarantee_email_agent.solving.agents.program_agent import program_agent_factory
from guarantee_email_agent.solving.agents.script_agent import script_agent_factory
from guarantee_email_agent.solving.run_limits import RunLimits
from guarantee_email_agent.solving.run_recorder import EarlierRun
from guarantee_email_agent.solving.task_runner import OpenSandbox, TaskRunner
from guarantee_email_agent.utils.errors import ConfigurationError
from guarantee_email_agent.utils.parallel import Interruption, map_in_order
from guarantee_email_agent.utils.terminal import Progress, TextStream, pluralize

if TYPE_CHECKING:
    from guarantee_email_agent.judging.grade_report import GradeRecorder
    from guarantee_email_agent.runlog.records import KeptRun

logger = logging.getLogger(__name__)

AgentKind = Literal["llm", "script", "command"]
JUDGE_MARGIN_S: Final = 3600.0
"""Seconds that a sandbox may live on for its judge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SolveOptions(RunOptions):
    """What the command line decides.

    directory: a task or a folder of tasks. script: for the agent `script`, a file, or a folder with one for each task.
    command: for the agent `command`. model: for the agent `llm`, if not the configured one. judge_timeout_s: seconds
    for each judge, None as the task says. allowed: the most that a task may ask for.
    kept: where the run is kept; None for nowhere.
    """

    output_dir: Path
    agent: AgentKind = "llm"
    script: Path | None = None
    command: str | None = None
    model: str | None = None
    sandbox: SandboxKind = "embedded"
    run_all: bool = False
    limits: RunLimits = field(default_factory=RunLimits)
    judge_timeout_s: float | None = None
    allowed: TaskAllowance = NOTHING_MORE
    kept: KeptRun | None = None


def task_runner(
    options: SolveOptions,
    load_config: Callable[[], Config],
    interruption: Interruption,
    *,
    started: Callable[[], str],
    open_sandbox: OpenSandbox | None = None,
) -> TaskRunner:
    """Raises ConfigurationError for an agent that cannot be used."""
    return TaskRunner(
        _agent_factory(options, load_config),
        options.agent,
        open_sandbox or _sandbox_opener(options, interruption),
        options.limits,
        options.output_dir,
        started=started,
        sandbox_kind=options.sandbox,
        judge_timeout_s=options.judge_timeout_s,
        allowed=options.allowed,
        interruption=interruption,
    )


def _sandbox_opener(options: SolveOptions, interruption: Interruption) -> OpenSandbox:
    usual = usual_limits(options.allowed)
    # The judge looks into it after the agent's time is over.
    lasting = replace(usual, time_s=max(usual.time_s, options.limits.wall_time_s + JUDGE_MARGIN_S))
    hidden = (options.directory, options.output_dir)
    return lambda task: open_real_sandbox(
        task, options.sandbox, lasting, interruption.requested, options.allowed, hidden
    )


def _agent_factory(options: SolveOptions, load_config: Callable[[], Config]) -> AgentFactory:
    """Raises ConfigurationError where something that the agent needs is missing, or given for another kind."""
    for name, value, kind in (
        ("--script", options.script, "script"),
        ("--command", options.command, "command"),
        ("--model", options.model, "llm"),
        ("--max-tokens", options.limits.max_tokens, "llm"),  # what another takes, nobody counts
        ("--max-cost", options.limits.max_cost_usd, "llm"),
    ):
        if value is not None and options.agent != kind:
            raise ConfigurationError(f"{name} goes with --agent {kind}, not {options.agent}", "cli_bad_usage")
    match options.agent:
        case "llm":
            from guarantee_email_agent.solving.agents.llm_agent import llm_agent_factory  # loads asyncio

            has_cost_limit = options.limits.max_cost_usd is not None
            return llm_agent_factory(load_config(), options.model, has_cost_limit=has_cost_limit)
        case "script":
            return script_agent_factory(options.script)
        case "command":
            return program_agent_factory(options.command)


def solve_command(
    options: SolveOptions,
    stream: TextStream,
    console: TextStream,
    *,
    load_config: Callable[[], Config],
    started: Callable[[], str],
    open_sandbox: OpenSandbox | None = None,
) -> int:
    """Work on what the options name, print the outcome to `stream` and progress to `console`; the exit code.

    0 if every task has a pass, else 4; 130 after Ctrl-C. load_config is called for the agent `llm` alone. started: the
    time now, ISO 8601. Raises TaskError and ConfigurationError for what cannot be used.
    """
    check_report_paths(options.report_files, UNWRITABLE)
    refuse_misplaced_reports(options.report_files.values(), folder=options.output_dir, tasks=options.directory)
    tasks = [to_work_on(task) for task in load_tasks(options.directory, options.output_dir)]
    interruption = Interruption()
    runner = task_runner(options, load_config, interruption, started=started, open_sandbox=open_sandbox)
    make_folder(options.output_dir, "--output-dir", "task_output_dir")
    check_writable(options.output_dir / "record.json", UNWRITABLE)
    earlier = {} if options.run_all else _earlier_runs(runner, tasks)
    for task in tasks:
        if isinstance(task, Task) and (task.name not in earlier or earlier[task.name].verdict is None):
            check_record_file(runner.record_file(task))
    works = any(isinstance(task, Task) and task.name not in earlier for task in tasks)
    if open_sandbox is None and works:
        require_sandbox(options.sandbox)
    with ExitStack() as resources:
        return run_and_report(
            f"Solving {pluralize(len(tasks), 'task')}...{_said_of(earlier)}",
            as_cases(_results(runner, tasks, earlier, options.jobs), options.directory, ""),
            len(tasks),
            GradeReporter(stream),
            options,
            progress=Progress(console, len(tasks), "done"),
            recorder=_recorder(options, len(tasks), resources) if options.kept or options.wants_reports else None,
        )


def _recorder(options: SolveOptions, planned: int, resources: ExitStack) -> GradeRecorder | None:
    from guarantee_email_agent.judging.grade_report import grade_recorder  # SQLite

    shown = {"sandbox": options.sandbox, "jobs": options.jobs, "run_all": options.run_all}
    run = {"command": "solve", "planned": planned, "agent": options.agent, "model": options.model or ""}
    return grade_recorder(options.kept, options, resources, options=shown, **run)


def _results(
    runner: TaskRunner,
    tasks: Sequence[Task | InvalidTask],
    earlier: dict[str, EarlierRun],
    jobs: int,
) -> Generator[Graded, None, None]:
    """The verdicts in the order of the tasks; `jobs` of them are worked on at a time, each in a sandbox of its own."""

    def work(task: Task | InvalidTask) -> Graded:
        if isinstance(task, InvalidTask):
            return Graded(task.name, Verdict("error", error=task.message))
        if (run := earlier.get(task.name)) is None:
            graded = runner.run(task)
        else:
            graded = runner.judge_again(task) if run.verdict is None else Graded(task.name, run.verdict)
        return replace(graded, place=runner.record_place(task.name))

    try:
        for graded in map_in_order(work, tasks, jobs):
            logger.info("Solved %s: %s", graded.task_name, graded.verdict.verdict)
            yield graded
    except BaseException:
        # Ctrl-C reaches this thread alone.
        runner.interrupt()
        raise


def _earlier_runs(runner: TaskRunner, tasks: Sequence[Task | InvalidTask]) -> dict[str, EarlierRun]:
    found = {task.name: runner.earlier_run(task) for task in tasks if isinstance(task, Task)}
    return {name: run for name, run in found.items() if run is not None}


def _said_of(earlier: Mapping[str, EarlierRun]) -> str:
    """How many tasks are not worked on, to follow how many tasks there are."""
    if not earlier:
        return ""
    again = sum(run.verdict is None for run in earlier.values())
    judged = f", {again} of these judged again" if again else ""
    return f", {len(earlier)} of them finished before{judged}; --run-all repeats them"
