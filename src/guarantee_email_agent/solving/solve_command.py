"""The whole of `solve`: find the tasks, let an agent work on those that are left, report, gate on all passed."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from guarantee_email_agent.config.loader import read_secrets
from guarantee_email_agent.config.settings import Config, Secrets
from guarantee_email_agent.executors.executor import LOCAL, Executor
from guarantee_email_agent.executors.ray_executor import connected
from guarantee_email_agent.executors.remote_work import map_remotely
from guarantee_email_agent.files.report_files import check_report_paths, check_writable, make_folder
from guarantee_email_agent.judging.grade_report import UNWRITABLE, GradeReporter, as_cases
from guarantee_email_agent.judging.record import check_record_file, refuse_misplaced_reports, write_files
from guarantee_email_agent.judging.task import InvalidTask, Task, load_tasks, to_work_on
from guarantee_email_agent.judging.verdict import Graded, Verdict
from guarantee_email_agent.runlog.views.run_report import run_and_report
from guarantee_email_agent.sandbox.sandbox_factory import require_sandbox
from guarantee_email_agent.solving.output_files import OutputFiles
from guarantee_email_agent.solving.run_limits import Interruption
from guarantee_email_agent.solving.run_recorder import EarlierRun
from guarantee_email_agent.solving.solve_options import SolveOptions, task_runner
from guarantee_email_agent.solving.task_runner import OpenSandbox, TaskRunner
from guarantee_email_agent.solving.tools import SandboxApi
from guarantee_email_agent.utils.clock import utc_now
from guarantee_email_agent.utils.errors import ConfigurationError
from guarantee_email_agent.utils.parallel import map_in_order
from guarantee_email_agent.utils.progress import Progress
from guarantee_email_agent.utils.terminal import TextStream, pluralize

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
    tasks = [to_work_on(task) for task in load_tasks(options.directory, options.output_dir)]
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
        remote = None
        if executor is not None:
            config = load_config() if options.agent == "llm" else None
            remote = _solved_remotely(
                options,
                config,
                executor,
                [task for task in tasks if isinstance(task, Task) and task.name not in earlier],
            )
        return run_and_report(
            f"Solving {pluralize(len(tasks), 'task')}...{_said_of(earlier)}",
            as_cases(_results(runner, tasks, earlier, options.jobs, remote), options.directory, ""),
            len(tasks),
            GradeReporter(stream),
            options,
            progress=Progress(console, len(tasks), "done"),
            recorder=_recorder(options, len(tasks), resources),
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
    runner: TaskRunner,
    tasks: Sequence[Task | InvalidTask],
    earlier: dict[str, EarlierRun],
    jobs: int,
    remote: Generator[Graded, None, None] | None,
) -> Generator[Graded, None, None]:
    """The verdicts in the order of the tasks; `jobs` of them are worked on at a time, each in a sandbox of its own.

    remote: those of tasks that are worked on elsewhere; None where that is done here.
    """

    def work(task: Task | InvalidTask) -> Graded:
        if isinstance(task, InvalidTask):
            return Graded(task.name, Verdict("error", error=task.message))
        if (run := earlier.get(task.name)) is None:
            graded = runner.run(task) if remote is None else next(remote)
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
    finally:
        if remote is not None:
            remote.close()


def _solved_remotely(
    options: SolveOptions, config: Config | None, executor: Executor, tasks: Sequence[Task]
) -> Generator[Graded, None, None]:
    """The verdicts in the order of the tasks, each once its record is written here."""
    # What is of this process alone stays here; a worker has the model's key in its own environment, or says it has not.
    sent = replace(options, kept=None, github=None)
    work = partial(_solve, sent, None if config is None else replace(config, secrets=Secrets()))
    shared = () if options.script is None else (options.script,)
    with closing(map_remotely(executor, work, tasks, lambda task: [task.directory], shared)) as results:
        for graded, files in results:
            if files:
                OutputFiles(options.output_dir / f"{graded.task_name}.json").remove()
            write_files(options.output_dir, files)
            yield graded


def _solve(options: SolveOptions, config: Config | None, task: Task, output_dir: Path) -> Graded:
    """On a worker."""

    def load_config() -> Config:
        assert config is not None
        return replace(config, secrets=read_secrets(config, os.environ))

    require_sandbox(options.sandbox)
    options = replace(options, output_dir=output_dir)
    runner = task_runner(options, load_config, Interruption(), started=utc_now)
    try:
        return runner.run(task)
    except BaseException:
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
