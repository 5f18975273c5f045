"""Apply the `test.py` of a task to the record of a run: one, a whole folder, or the records that must never pass."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeVar

from guarantee_email_agent.judging.judge import DEFAULT_TIMEOUT_S, judge
from guarantee_email_agent.judging.record import complete_record, negative_controls, read_record, record_of_answer
from guarantee_email_agent.judging.task import MAX_TIMEOUT_S, InvalidTask, Task, discover_tasks, load_task
from guarantee_email_agent.judging.verdict import Graded, Verdict
from guarantee_email_agent.utils.errors import TaskError
from guarantee_email_agent.utils.printable import printable

_CTRL_C_S: Final = 0.2
_RECORD_ENDING: Final = ".json"
_SHOWN_CHARACTERS: Final = 200
_Item = TypeVar("_Item")


def grade(task_dir: str | Path, result: Mapping[str, Any] | str, *, timeout_s: float | None = None) -> Verdict:
    """The verdict of the task in `task_dir` on a run.

    result: the record of the run, of which any key may be missing, or just the agent's answer. timeout_s: seconds that
    the judge may take; None: as `task.yaml` says, else 60.

    Raises TaskError where the directory is no usable task, or `result` or `timeout_s` are nothing that it could be
    judged with. Whatever its judge does is a verdict, never an exception.
    """
    return grade_task(load_task(task_dir), result, timeout_s=timeout_s)


def grade_task(task: Task, result: Mapping[str, Any] | str, *, timeout_s: float | None = None) -> Verdict:
    """As `grade`, for a task that is loaded."""
    record: object = record_of_answer(result) if isinstance(result, str) else result
    if not isinstance(record, Mapping):
        kind = type(record).__name__
        problem = (
            f"a value of type {kind} is no result. Pass a record such as {{'task_result': …}}, or an answer as text"
        )
        raise TaskError(f"{printable(task.name)}: {problem}", "task_record_invalid")
    return _judged(task, complete_record(record, task), timeout_s)


def grade_file(task: Task, record_file: str | Path, *, timeout_s: float | None = None) -> Verdict:
    """As `grade_task`, for a record in a JSON file; one that cannot be read is an error verdict."""
    try:
        record = read_record(record_file)
    except TaskError as error:
        return Verdict("error", error=error.message)
    return grade_task(task, record, timeout_s=timeout_s)


def validate_task(task: Task, *, timeout_s: float | None = None) -> Verdict:
    """Whether the judge of a task rejects every negative control. `details` has what it said of each.

    `failed` where it passes one or gives no well-formed verdict on one; `feedback` then has a line for each.
    """
    complaints: dict[str, list[str]] = {}
    details: dict[str, Any] = {}
    output = ""
    for name, record in negative_controls(task):
        verdict = _judged(task, record, timeout_s)
        details[name] = {"verdict": verdict.verdict, "said": verdict.error or verdict.feedback}
        if verdict.verdict == "passed":
            said = " ".join(verdict.feedback[:_SHOWN_CHARACTERS].split())
            complaints.setdefault(f"passes, but must not: {said}" if said else "passes, but must not", []).append(name)
        elif verdict.verdict == "error":
            complaints.setdefault(f"no verdict: {verdict.error}", []).append(name)
        if verdict.verdict != "failed":
            output = output or verdict.output
    lines = [
        f"{', '.join(names) if len(names) < len(details) else 'every control'}: {complaint}"
        for complaint, names in complaints.items()
    ]
    if lines:
        return Verdict("failed", "\n".join(lines), details, None, output)
    return Verdict("passed", f"rejects all {len(details)} negative controls", details)


@dataclass(frozen=True, slots=True)
class Pair:
    """A task and the record to be judged by it; either may be missing, which is an error in the total."""

    task_name: str
    task: Task | InvalidTask | None
    record_file: Path | None


def pairs(tasks_dir: str | Path, results_dir: str | Path) -> list[Pair]:
    """Every task of one folder with its `<task_name>.json` of another, in the byte order of the names.

    Files whose names begin with '.' or '_' are no records. Raises TaskError where either folder cannot be used.
    """
    tasks = {task.name: task for task in discover_tasks(tasks_dir)}
    records = _record_files(Path(results_dir))
    names = sorted({*tasks, *records}, key=os.fsencode)
    return [Pair(name, tasks.get(name), records.get(name)) for name in names]


def grade_pair(pair: Pair, *, timeout_s: float | None = None) -> Graded:
    """The verdict on one pair; what cannot be judged is an error that says why."""
    return Graded(pair.task_name, _verdict_on(pair, timeout_s))


def grade_folder(
    tasks_dir: str | Path, results_dir: str | Path, *, timeout_s: float | None = None, jobs: int = 1
) -> Iterator[Graded]:
    """The verdicts on a folder of records, in the byte order of the task names, each as it is ready.

    Raises TaskError where either folder cannot be used. jobs: judges at a time.
    """
    return in_order(lambda each: grade_pair(each, timeout_s=timeout_s), pairs(tasks_dir, results_dir), jobs)


def in_order(work: Callable[[_Item], Graded], items: Sequence[_Item], jobs: int) -> Iterator[Graded]:
    """`work` done on `jobs` items at a time; the results in the order of the items."""
    jobs = min(jobs, len(items))
    if jobs <= 1:
        yield from map(work, items)
        return
    import threading
    from concurrent.futures import Future, wait

    futures = deque[Future[Graded]](Future() for _ in items)
    waiting = deque(zip(futures, items, strict=True))

    def work_off() -> None:
        while waiting:
            try:
                future, item = waiting.popleft()
            except IndexError:  # another thread has taken the last one
                return
            try:
                future.set_result(work(item))
            except BaseException as error:  # noqa: BLE001 - whoever waits for the result gets it
                future.set_exception(error)

    for _ in range(jobs):
        # The judges are processes of their own, which end with ours: after Ctrl-C nobody has to wait for them.
        threading.Thread(target=work_off, daemon=True).start()
    try:
        while futures:
            future = futures.popleft()
            # A wait without a limit may miss Ctrl-C: the signal may reach another thread, which wakes nobody.
            while not future.done():
                wait([future], timeout=_CTRL_C_S)
            yield future.result()
    finally:
        waiting.clear()


def _verdict_on(pair: Pair, timeout_s: float | None) -> Verdict:
    task, record_file = pair.task, pair.record_file
    if task is None:
        remedy = "Name the record after its task, or remove it"
        return Verdict("error", error=f"there is no task for the record {_shown(record_file)}. {remedy}")
    if isinstance(task, InvalidTask):
        return Verdict("error", error=task.message)
    if record_file is None:
        return Verdict("error", error=f"there is no record {printable(task.name)}{_RECORD_ENDING} for this task")
    return grade_file(task, record_file, timeout_s=timeout_s)


def _judged(task: Task, record: Mapping[str, Any], timeout_s: float | None) -> Verdict:
    if timeout_s is None:
        timeout_s = DEFAULT_TIMEOUT_S if task.judge_timeout_s is None else task.judge_timeout_s
    if not 0 < timeout_s <= MAX_TIMEOUT_S:
        problem = f"timeout_s is {timeout_s:g}. Pass seconds above 0 and at most {MAX_TIMEOUT_S}"
        raise TaskError(f"{printable(task.name)}: {problem}", "task_invalid_value")
    verdict = judge(task.test_file, record, timeout_s, network=task.judge_network)
    return verdict if verdict.error is None else replace(verdict, error=f"{task.test_file.name} {verdict.error}")


def _record_files(folder: Path) -> dict[str, Path]:
    try:
        names = os.listdir(folder)
    except OSError as error:
        reason = "does not exist" if isinstance(error, FileNotFoundError) else f"cannot be read ({error.strerror})"
        raise TaskError(
            f"{_shown(folder)}: the folder of records {reason}. Name the one that has a <task_name>.json for each task",
            "task_results_not_found",
            {"path": str(folder)},
        ) from None
    return {name.removesuffix(_RECORD_ENDING): folder / name for name in names if is_record_name(name)}


def is_record_name(name: str) -> bool:
    """Whether a file of this name counts as a record in a folder of them."""
    return name[0] not in "._" and name.endswith(_RECORD_ENDING)


def _shown(path: Path | None) -> str:
    return printable(str(path))
