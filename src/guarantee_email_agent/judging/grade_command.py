"""The whole of `grade`: find what is to be judged, judge it, report, and say with the exit code whether all passed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypedDict

from guarantee_email_agent.config.task_allowance import NOTHING_MORE, TaskAllowance
from guarantee_email_agent.judging.grade_report import UNWRITABLE, GradeReporter, write_task_reports
from guarantee_email_agent.judging.grading import grade_task, validate_task
from guarantee_email_agent.judging.record import (
    MAX_RECORD_BYTES,
    RECORD_ENDING,
    Record,
    parse_json,
    record_of_answer,
    refuse_misplaced_reports,
)
from guarantee_email_agent.judging.record_files import (
    Convert,
    Extent,
    RecordIndex,
    RecordPlace,
    SingleRecordFile,
    converted,
    find_records,
    no_such_task,
)
from guarantee_email_agent.judging.task import InvalidTask, Task, discover_tasks, load_task, load_tasks
from guarantee_email_agent.judging.verdict import Graded, Verdict
from guarantee_email_agent.reporting.progress import Progress
from guarantee_email_agent.reporting.report_files import check_report_paths
from guarantee_email_agent.reporting.run_report import RunOptions, run_and_report
from guarantee_email_agent.reporting.terminal import TextStream, pluralize
from guarantee_email_agent.utils.errors import ConfigurationError, TaskError
from guarantee_email_agent.utils.parallel import map_in_order
from guarantee_email_agent.utils.text import printable

if TYPE_CHECKING:
    from guarantee_email_agent.judging.grade_recorder import GradeRecorder
    from guarantee_email_agent.store.records import KeptRun

logger = logging.getLogger(__name__)

STDIN: Final = "-"
INSPECT: Final = "inspect"
ReadStdin = Callable[[int], bytes]
"""At most so many bytes of stdin."""


@dataclass(frozen=True, slots=True)
class _Pending:
    """A verdict that is still to be given. index, of: as `Graded` has them."""

    task_name: str
    judge: Callable[[], Verdict]
    index: int = 1
    of: int = 1


class _Terms(TypedDict):
    """What holds for every judge."""

    timeout_s: float | None
    allowed: TaskAllowance


@dataclass(frozen=True, slots=True, kw_only=True)
class GradeOptions(RunOptions):
    """What the command line decides.

    directory: a task, or with `results` a folder of tasks. Exactly one of `answer`, `result_file`, `results` and
    `validate` is given; "-" for the first two is stdin. results: a folder of records, or a file of JSON lines.
    timeout_s: seconds for each judge. allowed: the most that a task may ask for.
    transcript: whose the results are, `openai`, `langchain` or `inspect`; None: they are records.
    kept: where the run is kept; None for nowhere.
    """

    answer: str | None = None
    result_file: str | None = None
    results: Path | None = None
    validate: bool = False
    timeout_s: float | None = None
    allowed: TaskAllowance = NOTHING_MORE
    transcript: str | None = None
    kept: KeptRun | None = None


def grade_command(options: GradeOptions, stream: TextStream, console: TextStream, read_stdin: ReadStdin) -> int:
    """Judge what the options name, print the outcome to `stream` and progress to `console`; the exit code.

    0 if there is a verdict and every one is a pass, else 4; 130 after Ctrl-C. Raises TaskError for a directory or a
    single record that cannot be used, and ConfigurationError for a report that cannot be written, or not there.
    """
    if options.transcript is not None and options.result_file is None and options.results is None:
        raise ConfigurationError("--from says what --result or --results holds. Name one of them", "cli_bad_usage")
    check_report_paths(options.report_files, UNWRITABLE)
    place = options.results
    folder, file = (place, options.result_file) if place is None or place.is_dir() else (None, str(place))
    refuse_misplaced_reports(
        options.report_files.values(), folder=folder, file=None if file == STDIN else file, tasks=options.directory
    )
    count, pending = _pending_verdicts(options, read_stdin)
    recorder = _recorder(options, count)
    write = (
        partial(write_task_reports, "grade", options, count, recorder, not options.validate)
        if options.wants_reports
        else None
    )
    return run_and_report(
        f"Validating {pluralize(count, 'task')}..." if options.validate else f"Grading {pluralize(count, 'result')}...",
        _results(pending, options.jobs),
        count,
        GradeReporter(stream, measures_agent=not options.validate),
        write,
        progress=Progress(console, count, "judged"),
        recorder=recorder,
    )


def _recorder(options: GradeOptions, planned: int) -> GradeRecorder | None:
    if options.kept is None or options.validate:
        return None
    from guarantee_email_agent.judging.grade_recorder import grade_recorder  # SQLite

    file = options.result_file
    records = options.results or (Path(file) if file is not None and file != STDIN else None)
    shown = {"transcript": options.transcript, "timeout_s": options.timeout_s, "jobs": options.jobs}
    return grade_recorder(options.kept, options.directory, records, command="grade", planned=planned, options=shown)


def _results(pending: Iterator[_Pending], jobs: int) -> Generator[Graded, None, None]:
    def judge(each: _Pending) -> Graded:
        return Graded(each.task_name, each.judge(), each.index, each.of)

    for graded in map_in_order(judge, pending, jobs):
        logger.info("Judged %s: %s", graded.name, graded.verdict.verdict)
        yield graded


def _pending_verdicts(options: GradeOptions, read_stdin: ReadStdin) -> tuple[int, Iterator[_Pending]]:
    """How many verdicts there will be, and each as it is wanted."""
    terms = _Terms(timeout_s=options.timeout_s, allowed=options.allowed)
    if options.validate:
        loaded = load_tasks(options.directory)
        return len(loaded), (_Pending(task.name, partial(_validate, task, terms)) for task in loaded)
    if options.results is not None:
        tasks = {task.name: task for task in discover_tasks(options.directory, options.results)}
        if options.transcript == INSPECT:
            from guarantee_email_agent.judging.inspect_log import find_inspect_samples  # few have such logs

            index = find_inspect_samples(options.results)
        else:
            index = find_records(options.results, tasks, _converter(options.transcript))
        missing = sum(not index.count_of(name) for name in tasks)
        return index.count + len(index.problems) + missing, _pending_records(tasks, index, options.results, terms)
    task = load_task(options.directory)
    record = _read_single_record(options, read_stdin)
    return 1, iter([_Pending(task.name, partial(grade_task, task, record, **terms))])


def _pending_records(
    tasks: dict[str, Task | InvalidTask], index: RecordIndex, results: Path, terms: _Terms
) -> Iterator[_Pending]:
    """Every record of every task, in the order of the tasks' names; then the records that name no task."""
    for name in sorted({*tasks, *index.task_names}, key=lambda name: name.encode("utf-8", "surrogatepass")):
        of = index.count_of(name)
        if not of:
            problem = f"there is no record {printable(name)}{RECORD_ENDING} for this task"
            if results.is_file():
                problem = f"there is no record of this task in {printable(str(results))}"
            task = tasks[name]
            error = task.message if isinstance(task, InvalidTask) else problem
            yield _Pending(name, partial(Verdict, "error", error=error))
        for number, place in enumerate(index.places(name), 1):
            yield _Pending(name, partial(_grade, tasks, name, place, terms), number, of)
    for place in index.places(None):
        yield _Pending(place.name, partial(_grade, tasks, None, place, terms))
    for name, problem in index.problems.items():
        yield _Pending(name, partial(Verdict, "error", error=problem))


def _validate(task: Task | InvalidTask, terms: _Terms) -> Verdict:
    if isinstance(task, InvalidTask):
        return Verdict("error", error=task.message)
    return validate_task(task, **terms)


def _grade(tasks: dict[str, Task | InvalidTask], task_name: str | None, place: RecordPlace, terms: _Terms) -> Verdict:
    """The verdict on one record of many; a record without a task is an error."""
    task = None if task_name is None else tasks.get(task_name)
    if isinstance(task, InvalidTask):
        return Verdict("error", error=task.message)
    if task is None and task_name is not None:
        return Verdict("error", error=no_such_task(task_name, place, tasks))
    try:
        record = place.read()
    except TaskError as error:
        return Verdict("error", error=error.message)
    if task is None:
        return Verdict("error", error=f"{printable(place.name)}: the file was changed while it was judged")
    return grade_task(task, record, **terms)


def _read_single_record(options: GradeOptions, read_stdin: ReadStdin) -> Record:
    if options.answer is not None:
        if options.answer != STDIN:
            return record_of_answer(options.answer)
        # As the shell's $(…) does it: the line break that ends a program's output is not part of its answer.
        return record_of_answer(_text_of_stdin(read_stdin).removesuffix("\n").removesuffix("\r"))
    if options.result_file == STDIN:
        return converted(parse_json(_text_of_stdin(read_stdin), "stdin"), _converter(options.transcript), "stdin")
    file = Path(options.result_file or "")
    if options.transcript == INSPECT:
        from guarantee_email_agent.judging.inspect_log import read_single_sample

        return read_single_sample(file)
    return RecordPlace(SingleRecordFile(file, "", _converter(options.transcript)), Extent()).read()


def _converter(transcript: str | None) -> Convert | None:
    """What makes a record of a transcript; None where it is one."""
    if transcript is None:
        return None
    if transcript == "openai":
        from guarantee_email_agent.judging.openai_transcript import record_from_openai

        return record_from_openai
    if transcript == "langchain":
        from guarantee_email_agent.judging.langchain_transcript import record_from_langchain

        return record_from_langchain
    from guarantee_email_agent.judging.inspect_log import record_from_inspect

    return record_from_inspect


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
