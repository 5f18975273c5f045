"""The whole of `grade`: find what is to be judged, judge it, report, and say with the exit code whether all passed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from guarantee_email_agent.config.task_allowance import NOTHING_MORE, TaskAllowance
from guarantee_email_agent.files.report_files import check_report_paths
from guarantee_email_agent.judging.grade_report import UNWRITABLE, GradeReporter, as_cases
from guarantee_email_agent.judging.grading import grade_task, validate_task
from guarantee_email_agent.judging.record import (
    MAX_RECORD_BYTES,
    RECORD_ENDING,
    Record,
    parse_json,
    refuse_misplaced_reports,
)
from guarantee_email_agent.judging.record_files import (
    Extent,
    RecordIndex,
    RecordPlace,
    converted,
    find_records,
    no_such_task,
    record_file,
)
from guarantee_email_agent.judging.record_reference import converter
from guarantee_email_agent.judging.task import InvalidTask, Task, discover_tasks, load_task, load_tasks
from guarantee_email_agent.judging.verdict import Graded, Verdict
from guarantee_email_agent.runlog.views.report import RunOptions
from guarantee_email_agent.runlog.views.run_report import RunStoppedError, run_and_report
from guarantee_email_agent.utils.errors import ConfigurationError, TaskError
from guarantee_email_agent.utils.parallel import map_in_order
from guarantee_email_agent.utils.terminal import Progress, TextStream, pluralize
from guarantee_email_agent.utils.text import printable

if TYPE_CHECKING:
    from guarantee_email_agent.config.settings import Config
    from guarantee_email_agent.judging.grade_report import GradeRecorder
    from guarantee_email_agent.judging.rubric import TaskRubrics
    from guarantee_email_agent.runlog.records import KeptRun

logger = logging.getLogger(__name__)

STDIN: Final = "-"
ReadStdin = Callable[[int], bytes]
"""At most so many bytes of stdin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GradeOptions(RunOptions):
    """What the command line decides.

    directory: a task, or with `results` a folder of tasks. Exactly one of `answer`, `result_file`, `results` and
    `validate` is given; "-" for the first two is stdin. results: a folder of records, or a file of JSON lines.
    timeout_s: seconds for each judge. allowed: the most that a task may ask for.
    transcript: whose the results are, as `--from` has it; None: they are records.
    llm: who answers rubrics, as `eval --llm` has it: the model of `config`, which is there where one is asked.
    max_cost_usd: what that may take, in US dollars; None for no limit.
    kept: where the run is kept; None for nowhere.
    """

    answer: str | None = None
    result_file: str | None = None
    results: Path | None = None
    validate: bool = False
    timeout_s: float | None = None
    allowed: TaskAllowance = NOTHING_MORE
    transcript: str | None = None
    llm: Literal["offline", "live", "record", "replay"] = "offline"
    max_cost_usd: float | None = None
    config: Config | None = None
    kept: KeptRun | None = None


@dataclass(frozen=True, slots=True)
class WorkItem:
    """A verdict to come. judge: called with `timeout_s`, `allowed` and `ask`. The rest as `Graded` has it."""

    task_name: str
    judge: Callable[..., Verdict]
    index: int = 1
    of: int = 1
    place: RecordPlace | None = None


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
    rubrics = _rubrics(options)
    count, items = _work_items(options, read_stdin)
    with ExitStack() as resources:
        what = f"Validating {pluralize(count, 'task')}" if options.validate else f"Grading {pluralize(count, 'result')}"
        return run_and_report(
            f"{what}...",
            as_cases(_results(items, options, rubrics), options.directory, options.transcript or ""),
            count,
            GradeReporter(stream, measures_agent=not options.validate),
            options,
            progress=Progress(console, count, "judged"),
            recorder=_recorder(options, count, resources),
        )


def _recorder(options: GradeOptions, planned: int, resources: ExitStack) -> GradeRecorder | None:
    kept = None if options.validate else options.kept
    if kept is None and not options.wants_reports:
        return None
    from guarantee_email_agent.judging.grade_report import grade_recorder  # SQLite

    shown: dict[str, Any] = {"transcript": options.transcript, "timeout_s": options.timeout_s, "jobs": options.jobs}
    shown |= {"validate": True} if options.validate else {}
    run: dict[str, Any] = {"command": "grade", "planned": planned, "options": shown}
    if options.config is not None and options.llm != "offline":
        run |= {"llm": options.llm, "model": options.config.llm.model}
    return grade_recorder(kept, options, resources, **run)


def _rubrics(options: GradeOptions) -> TaskRubrics | None:
    if options.llm == "offline":
        return None
    from guarantee_email_agent.judging.rubric import TaskRubrics  # start-up, and few tasks have a rubric

    assert options.config is not None
    return TaskRubrics(options.config, options.llm, options.max_cost_usd)


def _results(
    items: Iterator[WorkItem], options: GradeOptions, rubrics: TaskRubrics | None
) -> Generator[Graded, None, None]:
    def judged(item: WorkItem) -> Graded | None:
        """None once the limit of cost is reached."""
        if rubrics is not None and rubrics.limit.stop_reason is not None:
            return None
        name = item.task_name if item.of == 1 else f"{item.task_name}-{item.index}"
        ask = None if rubrics is None else partial(rubrics.ask, name)
        try:
            verdict = item.judge(timeout_s=options.timeout_s, allowed=options.allowed, ask=ask)
        except RunStoppedError:
            return None
        return Graded(item.task_name, verdict, item.index, item.of, item.place)

    with closing(map_in_order(judged, items, options.jobs)) as results:
        for graded in filter(None, results):
            logger.info("Judged %s: %s", graded.name, graded.verdict.verdict)
            yield graded
    if rubrics is not None and rubrics.limit.stop_reason is not None:
        raise RunStoppedError(rubrics.limit.stop_reason)


def _work_items(options: GradeOptions, read_stdin: ReadStdin) -> tuple[int, Iterator[WorkItem]]:
    """How many verdicts there will be, and each as it is wanted."""
    if options.validate:
        loaded = load_tasks(options.directory)
        return len(loaded), (WorkItem(task.name, partial(_validate, task)) for task in loaded)
    if options.results is not None:
        tasks = {task.name: task for task in discover_tasks(options.directory, options.results)}
        index = find_records(options.results, tasks, converter(options.transcript))
        missing = sum(not index.count_of(name) for name in tasks)
        return index.count + len(index.problems) + missing, _of_records(tasks, index, options.results)
    task = load_task(options.directory)
    record, place = _read_single_record(options, read_stdin)
    return 1, iter([WorkItem(task.name, partial(grade_task, task, record), place=place)])


def _of_records(tasks: dict[str, Task | InvalidTask], index: RecordIndex, results: Path) -> Iterator[WorkItem]:
    """Every record of every task, in the order of the tasks' names; then the records that name no task."""
    for name in sorted({*tasks, *index.task_names}, key=lambda name: name.encode("utf-8", "surrogatepass")):
        of = index.count_of(name)
        if not of:
            problem = f"there is no record {printable(name)}{RECORD_ENDING} for this task"
            if results.is_file():
                problem = f"there is no record of this task in {printable(str(results))}"
            task = tasks[name]
            error = task.message if isinstance(task, InvalidTask) else problem
            yield WorkItem(name, partial(_refused, error))
        for number, place in enumerate(index.places(name), 1):
            yield WorkItem(name, partial(_grade_place, tasks, name, place), number, of, place)
    for place in index.places(None):
        yield WorkItem(place.name, partial(_grade_place, tasks, None, place), place=place)
    for name, problem in index.problems.items():
        yield WorkItem(name, partial(_refused, problem))


def _refused(problem: str, **_: Any) -> Verdict:
    return Verdict("error", error=problem)


def _validate(task: Task | InvalidTask, **terms: Any) -> Verdict:
    terms.pop("ask")  # controls are no work that a rubric could be about
    if isinstance(task, InvalidTask):
        return _refused(task.message)
    try:
        return validate_task(task, **terms)
    except TaskError as error:
        return _refused(error.message)


def _grade_place(
    tasks: dict[str, Task | InvalidTask], task_name: str | None, place: RecordPlace, **terms: Any
) -> Verdict:
    """One record of many; a record without a task is an error."""
    task = None if task_name is None else tasks.get(task_name)
    if isinstance(task, InvalidTask):
        return _refused(task.message)
    if task is None and task_name is not None:
        return _refused(no_such_task(task_name, place, tasks))
    try:
        record = place.read()
    except TaskError as error:
        return _refused(error.message)
    if task is None:
        return _refused(f"{printable(place.name)}: the file was changed while it was judged")
    return grade_task(task, record, **terms)


def _read_single_record(options: GradeOptions, read_stdin: ReadStdin) -> tuple[Record, RecordPlace | None]:
    """The record, and where it lies; None where that is no file."""
    if options.answer is not None:
        if options.answer != STDIN:
            return {"task_result": options.answer}, None
        # As the shell's $(…) does it: the line break that ends a program's output is not part of its answer.
        answer = _text_of_stdin(read_stdin).removesuffix("\n").removesuffix("\r")
        return {"task_result": answer}, None
    if options.result_file == STDIN:
        text = _text_of_stdin(read_stdin)
        data = _parse_exports(text) if options.transcript == "otel" else parse_json(text, "stdin")
        return converted(data, converter(options.transcript), "stdin"), None
    file = Path(options.result_file or "")
    place = RecordPlace(record_file(file, None, converter(options.transcript)), Extent())
    return place.read(), place


def _parse_exports(text: str) -> object:
    """The JSON of an export of spans, or of one on each line, as a collector's file exporter writes them."""
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if len(lines) < 2 or not lines[0][1].rstrip().endswith("}"):  # one export, maybe over several lines
        return parse_json(text, "stdin")
    return [parse_json(line, f"stdin:{number}", is_line=True) for number, line in lines]


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
