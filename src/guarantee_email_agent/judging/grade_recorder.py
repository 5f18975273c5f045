"""Keeps a run of `grade` or `solve` in the run store while it goes on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from guarantee_email_agent.files.text_file import NoFileError, read_start
from guarantee_email_agent.judging.grade_report import UNWRITABLE
from guarantee_email_agent.judging.judge_dependencies import follow_judges
from guarantee_email_agent.judging.record_reference import with_record
from guarantee_email_agent.judging.task import TEST_FILE
from guarantee_email_agent.runlog.database import StoreError, temporary_store
from guarantee_email_agent.runlog.program_inputs import code_inputs, incomplete, program_inputs
from guarantee_email_agent.runlog.records import Case, CaseResult, Input, InputSet, KeptRun, NewRun, Outcome
from guarantee_email_agent.runlog.run_writer import RunEnd, RunWriter
from guarantee_email_agent.runlog.suite_manifest import calibration_file
from guarantee_email_agent.runlog.suite_statistics import ScoreCounter
from guarantee_email_agent.runlog.views.run_report import RunOptions
from guarantee_email_agent.utils.git_state import GitQuestion
from guarantee_email_agent.utils.terminal import warn_on_stderr
from guarantee_email_agent.utils.version import __version__

_MAX_BYTES: Final = 1 << 20
"""Of a task's file whose content is kept; of larger ones only the digest of that much, and the size."""


class GradeRecorder:
    """One run."""

    def __init__(self, kept: KeptRun, run: NewRun, tasks: Path) -> None:
        """tasks: a task's folder, or a folder of them. Raises StoreError."""
        self._kept, self._tasks = kept, tasks
        self._scores, self._llm = ScoreCounter(), run.llm
        self._git = GitQuestion(tasks)
        try:
            at_once = run.command == "solve"
            self._writer = RunWriter(kept.file, run, warn_on_stderr, at_once=at_once, keep_runs=kept.keep_runs)
        except StoreError:
            self._git.answer()
            raise

    def add(self, case: Case) -> None:
        self._scores.add(case)
        self._writer.add(*(result._replace(inputs=InputSet(self._inputs(result))) for result in case.runs))

    def finish(self, outcome: Outcome, exit_code: int, duration_s: float) -> None:
        score = self._scores.as_dict()
        facts = {} if score is None else {"score": score}
        self._writer.finish(RunEnd(outcome, exit_code, self._kept.now(), duration_s, self._git.answer(), facts=facts))

    def write_reports(self, options: RunOptions, ran: int) -> None:
        """Of the run, once it is finished. ran: how many verdicts there were."""
        from guarantee_email_agent.runlog.views.stored_report import write_stored_reports  # every form of report

        read_record = with_record if options.html_file is not None else None
        with ExitStack() as resources:
            write_stored_reports(*self._writer.readable(resources), options, UNWRITABLE, ran, read_record)

    def _inputs(self, result: CaseResult) -> Iterator[Input]:
        """The files of the task, and the record."""
        yield from program_inputs()
        own = self._tasks / result.name
        folder = own if own.is_dir() else self._tasks
        try:
            for path in sorted(each for each in folder.iterdir() if each.is_file() and each.name[0] != "."):
                yield from _input("judge" if path.suffix == ".py" else "task", path.name, path)
        except OSError as error:
            yield incomplete(f"the folder of {result.name} cannot be listed ({error.strerror})")
        place = folder.absolute()
        if (said := calibration_file(place)) is not None:
            yield from _input("rubric", said.name, said)
        if self._llm in ("live", "record"):
            yield incomplete("a live model can answer otherwise")
        code = follow_judges([str(place / TEST_FILE)])
        for path in map(Path, code.files):
            if path.parent != place or path.name.startswith("."):
                name = path.relative_to(place).as_posix() if path.is_relative_to(place) else path.name
                yield from _input("judge", name, path)
        yield from code_inputs(code)
        if result.trace is not None:
            record = result.trace["record"]
            number = f", {record['number']}" if record["number"] else ""
            yield Input("record", f"{os.path.basename(record['file'])}{number}", bytes.fromhex(record["sha256"]))


def grade_recorder(kept: KeptRun | None, wanted: RunOptions, resources: ExitStack, **run: Any) -> GradeRecorder | None:
    """None where nobody reads the run.

    Where it is not to be kept, or the store cannot be used, which no gate rests on, it is kept in a temporary file for
    its reports. wanted: what the command line decides. run: what `NewRun` has beside the suite.
    """
    tasks = wanted.directory
    started = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z") if kept is None else kept.now()
    run_id = f"{''.join(character for character in started if character not in '-:Z')}-{os.urandom(4).hex()}"
    new = NewRun(id=run_id, suite=tasks.absolute().as_posix(), started=started, package_version=__version__, **run)
    if kept is not None:
        try:
            return GradeRecorder(kept, new, tasks)
        except StoreError as error:
            warn_on_stderr(f"This run is not kept: {error.message}")
    return GradeRecorder(temporary_store(resources), new, tasks) if wanted.wants_reports else None


def _input(kind: str, name: str, path: Path) -> Iterator[Input]:
    try:
        content, size = read_start(path, _MAX_BYTES + 1), path.stat().st_size
    except NoFileError:
        yield incomplete(f"{name} is no file")
        return
    except OSError as error:
        yield incomplete(f"{name} cannot be read ({error.strerror})")
        return
    if size > _MAX_BYTES:
        content = b"%d " % size + content
    yield Input.of(kind, name, content, keep=size <= _MAX_BYTES)
