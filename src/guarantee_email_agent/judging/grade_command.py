"""The whole of `grade`: find what is to be judged, judge it, report, and say with the exit code whether all passed."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from guarantee_email_agent.judging.grade_report import UNWRITABLE, GradeReporter, task_report_files
from guarantee_email_agent.judging.grading import (
    Pair,
    grade_pair,
    grade_task,
    in_order,
    is_record_name,
    pairs,
    validate_task,
)
from guarantee_email_agent.judging.record import Record, parse_record, read_record, record_of_answer
from guarantee_email_agent.judging.task import InvalidTask, Task, discover_tasks, is_task, load_task
from guarantee_email_agent.judging.verdict import Graded, Verdict
from guarantee_email_agent.reporting.report_files import check_report_paths
from guarantee_email_agent.reporting.run_report import RunOptions, run_and_report
from guarantee_email_agent.reporting.terminal import Progress, TextStream
from guarantee_email_agent.utils.errors import ConfigurationError, TaskError
from guarantee_email_agent.utils.printable import printable

logger = logging.getLogger(__name__)

STDIN: Final = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class GradeOptions(RunOptions):
    """What the command line decides.

    directory: a task, or with `results_dir` a folder of tasks. Exactly one of `answer`, `result_file`, `results_dir`
    and `validate` is given; "-" for the first two is stdin. timeout_s: seconds for each judge.
    """

    answer: str | None = None
    result_file: str | None = None
    results_dir: Path | None = None
    validate: bool = False
    timeout_s: float | None = None


@dataclass(frozen=True, slots=True)
class _Work:
    """What to judge and how: `judge_one` is called for each of `items`."""

    title: str
    items: Sequence[Any]
    judge_one: Callable[[Any], Graded]
    measures_agent: bool = True


def grade_command(
    options: GradeOptions, stream: TextStream, console: TextStream, read_stdin: Callable[[], bytes]
) -> int:
    """Judge what the options name, print the outcome to `stream` and progress to `console`; the exit code.

    0 if there is a verdict and every one is a pass, else 4; 130 after Ctrl-C. Raises TaskError for a directory or a
    single record that cannot be used, and ConfigurationError for a report that cannot be written, or not there.
    """
    check_report_paths(options.report_paths, UNWRITABLE)
    _spare_records(options)
    work = _work(options, read_stdin)
    return run_and_report(
        work.title,
        _results(work, options.jobs),
        len(work.items),
        GradeReporter(stream, measures_agent=work.measures_agent),
        task_report_files("grade", options) if options.report_paths else None,
        progress=Progress(console, len(work.items), "judged"),
    )


def _results(work: _Work, jobs: int) -> Generator[Graded, None, None]:
    for graded in in_order(work.judge_one, work.items, jobs):
        logger.info("Judged %s: %s", graded.task_name, graded.verdict.verdict)
        yield graded


def _work(options: GradeOptions, read_stdin: Callable[[], bytes]) -> _Work:
    timeout_s = options.timeout_s
    if options.validate:
        single = is_task(options.directory)
        tasks = [load_task(options.directory)] if single else discover_tasks(options.directory)
        title = f"Validating {len(tasks)} task{'' if len(tasks) == 1 else 's'}..."
        return _Work(title, tasks, partial(_validated, timeout_s=timeout_s), measures_agent=False)
    if options.results_dir is not None:
        found: Sequence[Pair] = pairs(options.directory, options.results_dir)
        title = f"Grading {len(found)} result{'' if len(found) == 1 else 's'}..."
        return _Work(title, found, partial(grade_pair, timeout_s=timeout_s))
    task = load_task(options.directory)
    record = _single_record(options, read_stdin)
    return _Work(
        "Grading 1 result...", [task], lambda task: Graded(task.name, grade_task(task, record, timeout_s=timeout_s))
    )


def _spare_records(options: GradeOptions) -> None:
    """Refuse a report in the place of a record, or where the next call would take it for one."""
    record = None if options.result_file in (None, STDIN) else os.path.realpath(str(options.result_file))
    records = None if options.results_dir is None else os.path.realpath(options.results_dir)
    for file in options.report_paths:
        place = os.path.realpath(file)
        if place == record or (os.path.dirname(place) == records and is_record_name(os.path.basename(place))):
            raise ConfigurationError(
                f"{printable(str(file))}: the report would take the place of a record. Name a file in another folder",
                "task_report_is_record",
            )


def _validated(task: Task | InvalidTask, timeout_s: float | None) -> Graded:
    if isinstance(task, InvalidTask):
        return Graded(task.name, Verdict("error", error=task.message))
    return Graded(task.name, validate_task(task, timeout_s=timeout_s))


def _single_record(options: GradeOptions, read_stdin: Callable[[], bytes]) -> Record:
    if options.answer is not None:
        if options.answer != STDIN:
            return record_of_answer(options.answer)
        # As the shell's $(…) does it: the line break that ends a program's output is not part of its answer.
        return record_of_answer(_text_of(read_stdin()).removesuffix("\n").removesuffix("\r"))
    if options.result_file == STDIN:
        return parse_record(_text_of(read_stdin()), "stdin")
    return read_record(options.result_file or "")


def _text_of(data: bytes) -> str:
    try:
        return data.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise TaskError(
            f"stdin: this is not UTF-8 text (byte {error.start}). Convert it before it is piped in",
            "task_stdin_not_utf8",
        ) from None
