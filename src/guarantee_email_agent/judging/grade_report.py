"""What came of grading: the value that runs are kept by, lines for people, and the run in the run store."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any, Final

from guarantee_email_agent.files.text_file import NoFileError, read_start
from guarantee_email_agent.judging.judge_dependencies import follow_judges
from guarantee_email_agent.judging.record_reference import refer_to, with_record
from guarantee_email_agent.judging.task import TEST_FILE
from guarantee_email_agent.judging.verdict import Graded
from guarantee_email_agent.runlog.program_inputs import code_inputs, incomplete, program_inputs
from guarantee_email_agent.runlog.records import Case, CaseResult, Check, Input, InputSet, KeptRun, Run
from guarantee_email_agent.runlog.suite_manifest import calibration_file
from guarantee_email_agent.runlog.suite_statistics import RubricCounter, ScoreCounter
from guarantee_email_agent.runlog.views.report import RunOptions, relative_to
from guarantee_email_agent.runlog.views.run_recorder import RunRecorder, begin_recorder
from guarantee_email_agent.runlog.views.run_report import RunReporter
from guarantee_email_agent.runlog.views.stored_report import WANTED_PERCENT
from guarantee_email_agent.utils.clock import utc_now
from guarantee_email_agent.utils.distribution import __version__
from guarantee_email_agent.utils.terminal import Terminal, TextStream
from guarantee_email_agent.utils.text import printable

UNWRITABLE: Final = "task_report_unwritable"

_MAX_LINES: Final = 20
_MAX_CHARACTERS: Final = 2_000
_INDENT: Final = "    "


def as_cases(results: Generator[Graded, None, None], tasks: Path, form: str) -> Generator[Case, None, None]:
    """Each verdict as a case. tasks: a task, or a folder of them. form: of the records, as `--from` has it."""
    position = 0
    with closing(results):
        for graded in results:
            position += graded.index == 1
            verdict = graded.verdict
            record = None if graded.place is None else refer_to(graded.place, form)
            result = CaseResult(
                name=graded.task_name,
                position=position,
                repetition=graded.index,
                of=graded.of,
                verdict=verdict.verdict,
                category="tasks",
                file=_judge_of(tasks, graded.task_name),
                duration_ms=verdict.duration_ms,
                usage=verdict.usage,
                checks=() if verdict.passed else (Check("", verdict.error or verdict.feedback or verdict.verdict),),
                harm=() if verdict.passed else None,
                trace=None if record is None else {"record": record._asdict()},
                judgement=verdict.as_dict(),
            )
            yield Case((result,))


def _judge_of(tasks: Path, task_name: str) -> str:
    """A task's test.py; empty where there is none, as for a record without a task."""
    for folder in (tasks / task_name, tasks):
        if folder.name == task_name and (folder / TEST_FILE).is_file():
            return relative_to(str(folder / TEST_FILE))
    return ""


class GradeReporter(RunReporter):
    """Prints verdicts: passed ones as they come, then failed ones, errors, and the totals."""

    INTERRUPTED = "were judged"
    COUNTS_ERRORS = True

    def __init__(self, stream: TextStream, *, measures_agent: bool = True) -> None:
        super().__init__(Terminal(stream), WANTED_PERCENT, measures_agent=measures_agent)
        self._by_task: dict[str, list[int]] = {}
        self._scores, self._rubric = ScoreCounter(), RubricCounter()

    def add(self, case: Case) -> None:
        self.totals.add(case.verdict)
        self._scores.add(case)
        self._rubric.add(case)
        totals = self._by_task.setdefault(case.shown.name, [0, 0])
        totals[0] += case.passed
        totals[1] += 1
        if case.passed:
            self._terminal.outcome(format_graded(case))
        else:
            self._list(case.verdict, format_graded(case))

    def _print_conclusion(self) -> None:
        """What the run says of the agent. Records of one task are no independent tasks, so tasks are counted."""
        for name, value in (*self._scores.facts(), *self._rubric.facts()):
            self._terminal.line(f"{name}: {value}")
        repeated = [(name, passed, total) for name, (passed, total) in self._by_task.items() if total > 1]
        if repeated:
            every_time = sum(passed == total for passed, total in self._by_task.values())
            self._terminal.line(f"Tasks passed every time: {every_time}/{len(self._by_task)}")
            for name, passed, total in repeated:
                self._terminal.line(f"{_INDENT}{printable(name)}: {passed} of {total}")


def format_graded(case: Case) -> str:
    """One verdict for people: a line, and for what is no pass the reason and what the judge printed, indented."""
    said, name = case.shown.judgement or {}, printable(case.name)
    if case.passed:
        feedback = printable(" ".join(said["feedback"][:_MAX_CHARACTERS].split()))
        return f"✓ {name}: {feedback}" if feedback else f"✓ {name}"
    word = "FAILED" if case.verdict == "failed" else "ERROR"
    lines = [f"✗ {name} - {word}", *_excerpt(said["error"] or said["feedback"])]
    if printed := _excerpt(said["output"], from_end=True):  # what a program prints last says most
        lines += [f"{_INDENT}printed:", *(f"{_INDENT}{line}" for line in printed)]
    return "\n".join(lines)


def _excerpt(text: str, *, from_end: bool = False) -> list[str]:
    if not (text := text.rstrip()):
        return []
    lines = (text[-_MAX_CHARACTERS:] if from_end else text[:_MAX_CHARACTERS].rstrip()).split("\n")
    mark = ["…"] if len(text) > _MAX_CHARACTERS or len(lines) > _MAX_LINES else []
    shown = [*mark, *lines[-_MAX_LINES:]] if from_end else [*lines[:_MAX_LINES], *mark]
    return [f"{_INDENT}{printable(line)}" for line in shown]


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
    started = utc_now() if kept is None else kept.now()
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
