"""The whole of `grade`: find what is to be judged, judge it, report, and say with the exit code whether all passed."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, TypedDict

from guarantee_email_agent.config.task_allowance import NOTHING_MORE, TaskAllowance
from guarantee_email_agent.judging.grade_report import UNWRITABLE, GradeReporter, write_task_reports
from guarantee_email_agent.judging.grading import grade_task, validate_task
from guarantee_email_agent.judging.record import (
    MAX_RECORD_BYTES,
    RECORD_ENDING,
    Record,
    is_record_name,
    parse_record,
    read_record_to_judge,
    record_of_answer,
    refuse_misplaced_reports,
)
from guarantee_email_agent.judging.task import InvalidTask, Task, discover_tasks, load_task, load_tasks
from guarantee_email_agent.judging.verdict import Graded, Verdict
from guarantee_email_agent.reporting.report_files import check_report_paths
from guarantee_email_agent.reporting.run_report import RunOptions, run_and_report
from guarantee_email_agent.reporting.terminal import Progress, TextStream, pluralize
from guarantee_email_agent.utils.errors import TaskError
from guarantee_email_agent.utils.parallel import map_in_order
from guarantee_email_agent.utils.text import printable

logger = logging.getLogger(__name__)

STDIN: Final = "-"
ReadStdin = Callable[[int], bytes]
"""At most so many bytes of stdin."""
_Pending = tuple[str, Callable[[], Verdict]]
"""The name of a task, and what gives the verdict on it."""


class _Terms(TypedDict):
    """What holds for every judge."""

    timeout_s: float | None
    allowed: TaskAllowance


@dataclass(frozen=True, slots=True, kw_only=True)
class GradeOptions(RunOptions):
    """What the command line decides.

    directory: a task, or with `results_dir` a folder of tasks. Exactly one of `answer`, `result_file`, `results_dir`
    and `validate` is given; "-" for the first two is stdin. timeout_s: seconds for each judge. allowed: the most that
    a task may ask for.
    """

    answer: str | None = None
    result_file: str | None = None
    results_dir: Path | None = None
    validate: bool = False
    timeout_s: float | None = None
    allowed: TaskAllowance = NOTHING_MORE


def grade_command(options: GradeOptions, stream: TextStream, console: TextStream, read_stdin: ReadStdin) -> int:
    """Judge what the options name, print the outcome to `stream` and progress to `console`; the exit code.

    0 if there is a verdict and every one is a pass, else 4; 130 after Ctrl-C. Raises TaskError for a directory or a
    single record that cannot be used, and ConfigurationError for a report that cannot be written, or not there.
    """
    check_report_paths(options.report_paths, UNWRITABLE)
    file = None if options.result_file == STDIN else options.result_file
    refuse_misplaced_reports(options.report_paths, folder=options.results_dir, file=file, tasks=options.directory)
    pending = _pending_verdicts(options, read_stdin)
    return run_and_report(
        f"Validating {pluralize(len(pending), 'task')}..."
        if options.validate
        else f"Grading {pluralize(len(pending), 'result')}...",
        _results(pending, options.jobs),
        len(pending),
        GradeReporter(stream, measures_agent=not options.validate),
        partial(write_task_reports, "grade", options) if options.report_paths else None,
        progress=Progress(console, len(pending), "judged"),
    )


def _results(pending: Sequence[_Pending], jobs: int) -> Generator[Graded, None, None]:
    for graded in map_in_order(lambda each: Graded(each[0], each[1]()), pending, jobs):
        logger.info("Judged %s: %s", graded.task_name, graded.verdict.verdict)
        yield graded


def _pending_verdicts(options: GradeOptions, read_stdin: ReadStdin) -> list[_Pending]:
    terms = _Terms(timeout_s=options.timeout_s, allowed=options.allowed)
    if options.validate:
        return [(task.name, partial(_validate, task, terms)) for task in load_tasks(options.directory)]
    if options.results_dir is not None:
        tasks = {task.name: task for task in discover_tasks(options.directory, options.results_dir)}
        records = _record_files(options.results_dir)
        names = sorted({*tasks, *records}, key=os.fsencode)
        return [(name, partial(_grade, tasks.get(name), records.get(name), name, terms)) for name in names]
    task = load_task(options.directory)
    record = _read_single_record(options, read_stdin)
    return [(task.name, partial(grade_task, task, record, **terms))]


def _validate(task: Task | InvalidTask, terms: _Terms) -> Verdict:
    if isinstance(task, InvalidTask):
        return Verdict("error", error=task.message)
    return validate_task(task, **terms)


def _grade(task: Task | InvalidTask | None, record_file: Path | None, name: str, terms: _Terms) -> Verdict:
    """The verdict on one record of a folder; a task without a record, or a record without a task, is an error."""
    if task is None:
        problem = f"there is no task for the record {printable(str(record_file))}"
        return Verdict("error", error=f"{problem}. Name the record after its task, or remove it")
    if isinstance(task, InvalidTask):
        return Verdict("error", error=task.message)
    if record_file is None:
        return Verdict("error", error=f"there is no record {printable(name)}{RECORD_ENDING} for this task")
    try:
        record = read_record_to_judge(record_file)
    except TaskError as error:
        return Verdict("error", error=error.message)
    return grade_task(task, record, **terms)


def _record_files(folder: Path) -> dict[str, Path]:
    try:
        names = os.listdir(folder)
    except OSError as error:
        reason = "does not exist" if isinstance(error, FileNotFoundError) else f"cannot be read ({error.strerror})"
        problem = f"the folder of records {reason}. Name the one that has a <task_name>.json for each task"
        path = str(folder)
        raise TaskError(f"{printable(path)}: {problem}", "task_results_not_found", {"path": path}) from None
    return {name.removesuffix(RECORD_ENDING): folder / name for name in names if is_record_name(name)}


def _read_single_record(options: GradeOptions, read_stdin: ReadStdin) -> Record:
    if options.answer is not None:
        if options.answer != STDIN:
            return record_of_answer(options.answer)
        # As the shell's $(…) does it: the line break that ends a program's output is not part of its answer.
        return record_of_answer(_text_of_stdin(read_stdin).removesuffix("\n").removesuffix("\r"))
    if options.result_file == STDIN:
        return parse_record(_text_of_stdin(read_stdin), "stdin")
    return read_record_to_judge(options.result_file or "")


def _text_of_stdin(read_stdin: ReadStdin) -> str:
    data = read_stdin(MAX_RECORD_BYTES + 1)
    if len(data) > MAX_RECORD_BYTES:
        problem = f"this is more than {MAX_RECORD_BYTES:,} bytes, the most that is read. Make it smaller"
        raise TaskError(f"stdin: {problem}", "task_record_too_large")
    try:
        return data.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        problem = f"this is not UTF-8 text (byte {error.start}). Convert it before it is piped in"
        raise TaskError(f"stdin: {problem}", "task_stdin_not_utf8") from None
