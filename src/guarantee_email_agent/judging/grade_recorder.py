"""Keeps a run of `grade` or `solve` in the run store while it goes on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

from guarantee_email_agent.files.text_file import NoFileError, read_start
from guarantee_email_agent.judging.grade_report import UNWRITABLE
from guarantee_email_agent.judging.judge_dependencies import follow_judges
from guarantee_email_agent.judging.record_reference import with_record
from guarantee_email_agent.judging.task import TEST_FILE
from guarantee_email_agent.runlog.program_inputs import code_inputs, incomplete, program_inputs
from guarantee_email_agent.runlog.records import Case, CaseResult, Input, InputSet, KeptRun, Run
from guarantee_email_agent.runlog.suite_manifest import calibration_file
from guarantee_email_agent.runlog.suite_statistics import ScoreCounter
from guarantee_email_agent.runlog.views.report import RunOptions
from guarantee_email_agent.runlog.views.run_recorder import RunRecorder, begin_recorder
from guarantee_email_agent.utils.version import __version__

_MAX_BYTES: Final = 1 << 20
"""Of a task's file whose content is kept; of larger ones only the digest of that much, and the size."""


class GradeRecorder(RunRecorder):
    UNWRITABLE = UNWRITABLE

    def __init__(self, kept: KeptRun, run: Run, wanted: RunOptions) -> None:
        """wanted: what the command line decides. Raises StoreError."""
        super().__init__(kept, run, wanted.directory, at_once=run.command == "solve")
        self._tasks, self._shows_records = wanted.directory, wanted.html_file is not None
        self._scores = ScoreCounter()

    def add(self, case: Case) -> None:
        self._scores.add(case)
        self._writer.add(*(result._replace(inputs=InputSet(self._inputs(result))) for result in case.runs))

    def _at_end(self) -> dict[str, Any]:
        score = self._scores.as_dict()
        return {"facts": {} if score is None else {"score": score}}

    def _read_record(self, result: CaseResult) -> CaseResult:
        return with_record(result) if self._shows_records else result

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
        if self._run.llm in ("live", "record"):
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
    """As `begin_recorder` has it. wanted: what the command line decides. run: what `Run` has beside the suite."""
    started = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z") if kept is None else kept.now()
    run_id = f"{''.join(character for character in started if character not in '-:Z')}-{os.urandom(4).hex()}"
    suite = wanted.directory.absolute().as_posix()
    new = Run(id=run_id, suite=suite, started=started, package_version=__version__, **run)
    return begin_recorder(partial(GradeRecorder, run=new, wanted=wanted), kept, wanted, resources)


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
