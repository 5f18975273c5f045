"""Keeps a run of `grade` or `solve` in the run store while it goes on."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from guarantee_email_agent.judging.judge_dependencies import follow_judges
from guarantee_email_agent.judging.record_reference import RecordReference, refer_to
from guarantee_email_agent.judging.task import TEST_FILE
from guarantee_email_agent.judging.verdict import Graded
from guarantee_email_agent.reporting.run_report import RunOutcome
from guarantee_email_agent.reporting.terminal import warn_on_stderr
from guarantee_email_agent.store.database import StoreError
from guarantee_email_agent.store.program_inputs import code_inputs, incomplete, program_inputs
from guarantee_email_agent.store.records import Check, Input, InputSet, KeptRun, NewResult, NewRun
from guarantee_email_agent.store.run_writer import RunEnd, RunWriter
from guarantee_email_agent.utils.git_state import GitQuestion
from guarantee_email_agent.utils.version import __version__

_MAX_BYTES: Final = 1 << 20
"""Of a task's file whose content is kept; of larger ones only the digest of that much, and the size."""


class GradeRecorder:
    """One run; `add` is called in the order of the results."""

    def __init__(self, kept: KeptRun, run: NewRun, tasks: Path, form: str) -> None:
        """tasks: a task's folder, or a folder of them. form: of the records, as `--from` has it. Raises StoreError."""
        self.file, self.run = kept.file, run
        self._kept, self._tasks, self._form = kept, tasks, form
        self._git = GitQuestion(tasks)
        self._position = 0
        try:
            at_once = run.command == "solve"
            self._writer = RunWriter(kept.file, run, warn_on_stderr, at_once=at_once, keep_runs=kept.keep_runs)
        except StoreError:
            self._git.answer()
            raise

    def add(self, result: Graded) -> None:
        self._position += result.index == 1
        verdict = result.verdict
        reason = verdict.error or verdict.feedback
        record = None if result.place is None else refer_to(result.place, self._form)
        self._writer.add(
            NewResult(
                name=result.task_name,
                position=self._position,
                repetition=result.index,
                verdict=verdict.verdict,
                category="tasks",
                duration_ms=verdict.duration_ms,
                inputs=InputSet(self._inputs(result, record)),
                checks=() if verdict.verdict == "passed" else (Check("test", reason),),
                trace=None if record is None else {"record": record._asdict()},
                judgement=verdict.as_dict(),
            )
        )

    def finish(self, outcome: RunOutcome, exit_code: int, duration_s: float) -> None:
        self._writer.finish(RunEnd(outcome, exit_code, self._kept.now(), duration_s, self._git.answer()))

    def _inputs(self, result: Graded, record: RecordReference | None) -> Iterator[Input]:
        """The files of the task, and the record."""
        yield from program_inputs()
        own = self._tasks / result.task_name
        folder = own if own.is_dir() else self._tasks
        for path in _files(folder):
            kind = "judge" if path.suffix == ".py" else "task"
            yield from _input(kind, path.name, path)
        place = folder.absolute()
        code = follow_judges([str(place / TEST_FILE)])
        for path in map(Path, code.files):
            if path.parent != place or path.name.startswith("."):
                name = path.relative_to(place).as_posix() if path.is_relative_to(place) else path.name
                yield from _input("judge", name, path)
        yield from code_inputs(code)
        if record is not None:
            number = f", {record.number}" if record.number else ""
            yield Input("record", f"{os.path.basename(record.file)}{number}", bytes.fromhex(record.sha256))


def grade_recorder(kept: KeptRun | None, tasks: Path, form: str, **run: Any) -> GradeRecorder | None:
    """None where the run is not kept: as that was asked for, or as the store cannot be used, which no gate rests on.

    form: of the records, as `--from` has it. run: what `NewRun` has beside the suite.
    """
    if kept is None:
        return None
    started = kept.now()
    run_id = f"{''.join(character for character in started if character not in '-:Z')}-{os.urandom(4).hex()}"
    new = NewRun(id=run_id, suite=tasks.absolute().as_posix(), started=started, package_version=__version__, **run)
    try:
        return GradeRecorder(kept, new, tasks, form)
    except StoreError as error:
        warn_on_stderr(f"This run is not kept: {error.message}")
        return None


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(Path(entry.path) for entry in os.scandir(folder) if entry.is_file() and entry.name[0] != ".")
    except OSError:
        return []


def _input(kind: str, name: str, path: Path) -> Iterator[Input]:
    try:
        # Not blocking, since a named pipe would wait for a writer for ever.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                yield incomplete(f"{name} is no file")
                return
            content, size = file.read(_MAX_BYTES + 1), status.st_size
    except OSError as error:
        yield incomplete(f"{name} cannot be read ({error.strerror})")
        return
    if size > _MAX_BYTES:
        content = b"%d " % size + content
    yield Input.of(kind, name, content, keep=size <= _MAX_BYTES)
