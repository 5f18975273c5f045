"""Tasks for agents on other machines: a task goes there, its record and the verdict come back.

A model's key does not travel: a worker has it in its own environment, or says that it has not.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from guarantee_email_agent.config.loader import read_secrets
from guarantee_email_agent.config.settings import Config, Secrets
from guarantee_email_agent.executors.executor import Executor
from guarantee_email_agent.executors.file_bundle import FileBundle, unpacked
from guarantee_email_agent.judging.record import write_content
from guarantee_email_agent.judging.shipped_grading import with_original_paths
from guarantee_email_agent.judging.task import OUTPUTS_ENDING, InvalidTask, Task, load_task
from guarantee_email_agent.judging.verdict import Graded, Verdict
from guarantee_email_agent.sandbox.sandbox_factory import require_sandbox
from guarantee_email_agent.solving.output_files import OutputFiles
from guarantee_email_agent.solving.run_limits import Interruption
from guarantee_email_agent.solving.run_recorder import EarlierRun
from guarantee_email_agent.solving.solve_options import SolveOptions, task_runner
from guarantee_email_agent.solving.task_runner import TaskRunner


class _Work(NamedTuple):
    """directory: of a task, absolute; None where nothing is to be done for the verdict."""

    graded: Graded
    directory: str | None
    bundle: FileBundle


class _Done(NamedTuple):
    """files: the record and long outputs, by their paths from the folder of records."""

    graded: Graded
    files: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class ShippedSolving:
    """The work on a task. config: of the agent `llm`, without secrets."""

    options: SolveOptions
    config: Config | None

    def __call__(self, work: _Work) -> _Done:
        if work.directory is None:
            return _Done(work.graded, {})
        with unpacked(work.bundle) as copies, TemporaryDirectory(prefix="records-") as records:
            script = self.options.script
            options = replace(
                self.options,
                directory=copies.path(self.options.directory),
                output_dir=Path(records),
                script=None if script is None else copies.path(script),
            )
            require_sandbox(options.sandbox)
            interruption = Interruption()
            runner = task_runner(options, self._load_config, interruption, started=_now)
            try:
                graded = runner.run(load_task(copies.path(work.directory)))
            except BaseException:
                runner.interrupt()
                raise
            return _Done(replace(graded, verdict=with_original_paths(graded.verdict, copies)), _contents(Path(records)))

    def _load_config(self) -> Config:
        assert self.config is not None
        return replace(self.config, secrets=read_secrets(self.config, os.environ))


def map_shipped(
    runner: TaskRunner,
    options: SolveOptions,
    config: Config | None,
    executor: Executor,
    tasks: Sequence[Task | InvalidTask],
    earlier: Mapping[str, EarlierRun],
) -> Generator[Graded, None, None]:
    """The verdicts in the order of the tasks, each once its record is written here; runner: for what is here already.

    Raises ConfigurationError for what cannot be sent, and TaskError for a record that cannot be written.
    """
    script = None if options.script is None else options.script.absolute()
    # What is of this process alone stays here.
    sent = replace(options, directory=options.directory.absolute(), script=script, kept=None, github=None)
    work = ShippedSolving(sent, None if config is None else replace(config, secrets=Secrets()))
    todo = (_work(runner, options, task, earlier) for task in tasks)
    for done in executor.map_in_order(work, todo):
        if done.files:
            OutputFiles(options.output_dir / f"{done.graded.task_name}.json").remove()
        for name, content in done.files.items():
            if folder := os.path.dirname(name):  # of long outputs
                (options.output_dir / folder).mkdir(exist_ok=True)
            write_content(options.output_dir / name, content)
        yield replace(done.graded, place=runner.record_place(done.graded.task_name))


def _work(
    runner: TaskRunner, options: SolveOptions, task: Task | InvalidTask, earlier: Mapping[str, EarlierRun]
) -> _Work:
    if isinstance(task, InvalidTask):
        return _Work(Graded(task.name, Verdict("error", error=task.message)), None, FileBundle())
    if (run := earlier.get(task.name)) is not None:
        graded = runner.judge_again(task) if run.verdict is None else Graded(task.name, run.verdict)
        return _Work(graded, None, FileBundle())
    needed = [task.directory] if options.script is None else [task.directory, options.script]
    directory = os.path.abspath(task.directory)
    return _Work(Graded(task.name, Verdict("error")), directory, FileBundle.of(needed))


def _contents(records: Path) -> dict[str, bytes]:
    files = [path for path in records.rglob("*") if path.is_file() and not path.is_symlink()]
    names = {path.relative_to(records).as_posix(): path for path in files}
    return {name: path.read_bytes() for name, path in names.items() if "/" not in name or OUTPUTS_ENDING in name}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
