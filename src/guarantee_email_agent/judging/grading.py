"""Apply the `test.py` of a task to the record of a run, or to the records that it must never pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from guarantee_email_agent.judging.judge import DEFAULT_TIMEOUT_S, judge
from guarantee_email_agent.judging.record import complete_record, negative_controls, record_of_answer
from guarantee_email_agent.judging.task import MAX_TIMEOUT_S, Task, load_task
from guarantee_email_agent.judging.verdict import Verdict
from guarantee_email_agent.utils.errors import TaskError
from guarantee_email_agent.utils.text import printable

_MAX_FEEDBACK_CHARACTERS: Final = 200


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
        remedy = "Pass a record such as {'task_result': …}, or an answer as text"
        problem = f"a value of type {type(record).__name__} is no result. {remedy}"
        raise TaskError(f"{printable(task.name)}: {problem}", "task_record_invalid")
    return _run_judge(task, complete_record(record, task), timeout_s)


def validate_task(task: Task, *, timeout_s: float | None = None) -> Verdict:
    """Whether the judge of a task rejects every negative control. `details` has its verdict on each.

    `failed` where it passes one or gives no well-formed verdict on one; `feedback` then has a line for each.
    """
    controls_by_problem: dict[str, list[str]] = {}
    details: dict[str, Any] = {}
    output = ""
    for name, record in negative_controls(task):
        verdict = _run_judge(task, record, timeout_s)
        details[name] = {"verdict": verdict.verdict, "said": verdict.error or verdict.feedback}
        if verdict.verdict == "failed":
            continue
        output = output or verdict.output
        if verdict.verdict == "error":
            problem = f"no verdict: {verdict.error}"
        else:
            feedback = " ".join(verdict.feedback[:_MAX_FEEDBACK_CHARACTERS].split())
            problem = f"passes, but must not: {feedback}" if feedback else "passes, but must not"
        controls_by_problem.setdefault(problem, []).append(name)
    if not controls_by_problem:
        return Verdict("passed", f"rejects all {len(details)} negative controls", details)
    lines = [
        f"{', '.join(names) if len(names) < len(details) else 'every control'}: {problem}"
        for problem, names in controls_by_problem.items()
    ]
    return Verdict("failed", "\n".join(lines), details, None, output)


def _run_judge(task: Task, record: Mapping[str, Any], timeout_s: float | None) -> Verdict:
    if timeout_s is None:
        timeout_s = DEFAULT_TIMEOUT_S if task.judge_timeout_s is None else task.judge_timeout_s
    if not 0 < timeout_s <= MAX_TIMEOUT_S:
        problem = f"timeout_s is {timeout_s:g}. Pass seconds above 0 and at most {MAX_TIMEOUT_S}"
        raise TaskError(f"{printable(task.name)}: {problem}", "task_invalid_value")
    verdict = judge(task.test_file, record, timeout_s, network=task.judge_network)
    return verdict if verdict.error is None else replace(verdict, error=f"{task.test_file.name} {verdict.error}")
