"""The whole of `solve`: find the tasks, let an agent work on those that are left, report, gate on all passed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.executors.executor import LOCAL
from guarantee_email_agent.executors.ray_executor import connected
from guarantee_email_agent.judging.grade_report import UNWRITABLE, GradeReporter, as_cases
from guarantee_email_agent.judging.record import check_record_file, refuse_misplaced_reports
from guarantee_email_agent.judging.task import InvalidTask, Task, load_tasks
from guarantee_email_agent.judging.verdict import Graded, Verdict
from guarantee_email_agent.reporting.progress import Progress
from guarantee_email_agent.reporting.report_files import check_report_paths, check_writable, make_folder
from guarantee_email_agent.reporting.run_report import run_and_report
from guarantee_email_agent.reporting.terminal import TextStream, pluralize
from guarantee_email_agent.sandbox.sandbox_factory import require_sandbox
from guarantee_email_agent.solving.run_limits import Interruption
from guarantee_email_agent.solving.run_recorder import EarlierRun
from guarantee_email_agent.solving.shipped_solving import map_shipped
from guarantee_email_agent.solving.solve_options import SolveOptions, task_runner
from guarantee_email_agent.solving.task_runner import OpenSandbox, TaskRunner
from guarantee_email_agent.solving.tools import SandboxApi
from guarantee_email_agent.utils.errors import ConfigurationError
from guarantee_email_agent.utils.parallel import map_in_order

if TYPE_CHECKING:
    from guarantee_email_agent.judging.grade_recorder import GradeRecorder

logger = logging.getLogger(__name__)


def solve_command(
    options: SolveOptions,
    stream: TextStream,
    console: TextStream,
    *,
    load_config: Callable[[], Config],
    started: Callable[[], str],
    open_sandbox: OpenSandbox | None = None,
    connect: Callable[[str], SandboxApi] | None = None,
) -> int:
    """Work on what the options name, print the outcome to `stream` and progress to `console`; the exit code.

    0 if every task has a pass, else 4; 130 after Ctrl-C. load_config is called for the agent `llm` alone. started: the
    time now, ISO 8601. Raises TaskError and ConfigurationError for what cannot be used.
    """
    check_report_paths(options.report_files, UNWRITABLE)
    refuse_misplaced_reports(options.report_files.values(), folder=options.output_dir, tasks=options.directory)
    tasks = load_tasks(options.directory, options.output_dir)
    is_local = options.executor == LOCAL
    if not is_local and options.agent == "human":
        problem = f"--agent human works at this terminal. Remove --executor {options.executor}"
        raise ConfigurationError(problem, "cli_bad_usage")
    interruption = Interruption()
    runner = task_runner(
        options, load_config, interruption, started=started, open_sandbox=open_sandbox, connect=connect
    )
    make_folder(options.output_dir, "--output-dir", "task_output_dir")
    check_writable(options.output_dir / "record.json", UNWRITABLE)
    earlier = {} if options.run_all else _earlier_runs(runner, tasks)
    for task in tasks:
        if isinstance(task, Task) and (task.name not in earlier or earlier[task.name].verdict is None):
            check_record_file(runner.record_file(task))
    works_here = is_local and any(isinstance(task, Task) and task.name not in earlier for task in tasks)
    if open_sandbox is None and works_here:
        require_sandbox(options.sandbox)
    with connected(options.executor, options.jobs) as executor, ExitStack() as resources:
        if executor is None:
            results = _results(runner, tasks, earlier, options.jobs)
        else:
            config = load_config() if options.agent == "llm" else None
            results = map_shipped(runner, options, config, executor, tasks, earlier)
        recorder = _recorder(options, len(tasks), resources)
        reporter = GradeReporter(stream)

        def write() -> None:
            assert recorder is not None
            recorder.write_reports(options, reporter.totals.total)

        return run_and_report(
            f"Solving {pluralize(len(tasks), 'task')}...{_said_of(earlier)}",
            as_cases(results, options.directory, ""),
            len(tasks),
            reporter,
            write if options.wants_reports else None,
            progress=Progress(console, len(tasks), "done"),
            recorder=recorder,
        )


def _recorder(options: SolveOptions, planned: int, resources: ExitStack) -> GradeRecorder | None:
    if options.kept is None and not options.wants_reports:
        return None
    from guarantee_email_agent.judging.grade_recorder import grade_recorder  # SQLite

    shown = {"sandbox": options.sandbox, "jobs": options.jobs, "run_all": options.run_all}
    return grade_recorder(
        options.kept,
        options,
        resources,
        command="solve",
        planned=planned,
        agent=options.agent,
        model=options.model or "",
        options=shown,
    )


def _results(
    runner: TaskRunner, tasks: Sequence[Task | InvalidTask], earlier: dict[str, EarlierRun], jobs: int
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
