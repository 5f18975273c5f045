"""Apply the `test.py` of a task to the record of a run, or to those that show what the test is worth."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from guarantee_email_agent.config.task_allowance import NOTHING_MORE, TaskAllowance
from guarantee_email_agent.judging.judge import DEFAULT_TIMEOUT_S, judge
from guarantee_email_agent.judging.record import (
    CORRECT_RECORDS,
    Control,
    check_record,
    complete_record,
    correct_record,
    negative_controls,
)
from guarantee_email_agent.judging.task import MAX_TIMEOUT_S, TASK_FILE, Task, load_task
from guarantee_email_agent.judging.verdict import Verdict
from guarantee_email_agent.runlog.records import Usage
from guarantee_email_agent.utils.errors import TaskError
from guarantee_email_agent.utils.text import printable, truncate

_MAX_FEEDBACK_CHARACTERS: Final = 200
_CORRECT: Final = "the correct record"
_MAX_PORT: Final = 65_535

AskRubric = Callable[[Task, Mapping[str, Any]], tuple[list[dict[str, Any]], Usage]]
"""The answers to a task's rubric on a record, and what they took of a model."""


def grade(
    task_dir: str | Path,
    result: Mapping[str, Any] | str,
    *,
    timeout_s: float | None = None,
    allowed: TaskAllowance = NOTHING_MORE,
) -> Verdict:
    """The verdict of the task in `task_dir` on a run.

    result: the record of the run, of which any key may be missing, or just the agent's answer. timeout_s: seconds that
    the judge may take; None: as `task.yaml` says, else 60. allowed: the most that the task may ask for.

    Raises TaskError where the directory is no usable task, or `result` or `timeout_s` are nothing that it could be
    judged with. Whatever its judge does is a verdict, never an exception.
    """
    task = load_task(task_dir)
    record: object = {"task_result": result} if isinstance(result, str) else result
    if not isinstance(record, Mapping):
        remedy = "Pass a record such as {'task_result': …}, or an answer as text"
        problem = f"a value of type {type(record).__name__} is no result. {remedy}"
        raise TaskError(f"{printable(task.name)}: {problem}", "task_record_invalid")
    check_record(record, task.name)
    return grade_task(task, record, timeout_s=timeout_s, allowed=allowed)


def grade_task(
    task: Task,
    record: Mapping[str, Any],
    *,
    timeout_s: float | None = None,
    allowed: TaskAllowance = NOTHING_MORE,
    sandbox_port: int | None = None,
    ask: AskRubric | None = None,
) -> Verdict:
    """As `grade`, for a task that is loaded, and a record. ask: who answers its rubric; None for nobody.

    sandbox_port: of the sandbox that the agent worked in and that is still there, for the judge to look into. None:
    where its task asks for a network, the port that the record names.
    """
    completed = complete_record(record, task)
    is_error = str(completed["status"]).lower() == "error"
    if is_error or (completed.get("finished") is False and "digests" in completed):  # the latter as `solve` writes it
        ended = "ended in an error" if is_error else "did not come to its end"
        problem = f"the record says that the run {ended}, which is no failure of the agent"
        return Verdict("error", error=printable(problem + said_of_error(completed)))
    verdict = _run_judge(task, completed, timeout_s, allowed, sandbox_port)
    return _with_rubric(verdict, task, completed, ask) if task.rubric else verdict


def _with_rubric(verdict: Verdict, task: Task, record: Mapping[str, Any], ask: AskRubric | None) -> Verdict:
    from guarantee_email_agent.judging.rubric import closed_gates, not_asked  # few tasks have one

    if ask is None:
        return replace(verdict, rubric=not_asked(task.rubric, "no model was asked. Ask one with grade --llm live"))
    rubric, usage = ask(task, record)
    if verdict.passed and (closed := closed_gates(rubric)):
        feedback = "\n".join([verdict.feedback, *map(str, closed)]).strip()
        verdict = replace(verdict, verdict="failed", feedback=feedback)
    return replace(verdict, rubric=rubric, usage=usage)


def said_of_error(record: Mapping[str, Any]) -> str:
    """Why the run of a record ended in an error, to follow that it did."""
    for said in (record.get("reason"), record.get("error")):
        text = said.get("message") if isinstance(said, Mapping) else said
        if isinstance(text, str) and text:
            return f": {truncate(text, _MAX_FEEDBACK_CHARACTERS)}"
    return ""


def validate_task(task: Task, *, timeout_s: float | None = None, allowed: TaskAllowance = NOTHING_MORE) -> Verdict:
    """Whether the judge of a task passes its correct record, rejects every negative control, and says the same twice.

    `details` has the verdict on each control. `failed` where there is no correct record, where one of them has the
    wrong verdict, another one when it is judged again, or no well-formed one though its types are those of any record;
    `feedback` then has a line for each. A judge may raise on odd types: that is an error, which never counts as a pass.
    Raises TaskError for a correct record that cannot be read.
    """
    correct = correct_record(task)
    told = (correct or {}).get("instruction")  # which a task may leave to its records
    controls = list(
        negative_controls(replace(task, instruction=task.instruction or (told if isinstance(told, str) else "")))
    )
    controls_by_problem: dict[str, list[str]] = {}
    if correct is not None:
        controls.insert(0, Control(_CORRECT, complete_record(correct, task), must_pass=True))
    verdicts = [_run_judge(task, control.record, timeout_s, allowed) for control in controls]
    raised: list[str] = []
    details: dict[str, Any] = {}
    output = ""
    for control, verdict in zip(controls, verdicts, strict=True):
        details[control.name] = {"verdict": verdict.verdict, "said": verdict.error or verdict.feedback}
        feedback = " ".join(verdict.feedback[:_MAX_FEEDBACK_CHARACTERS].split())
        if verdict.verdict == "error":
            problem = f"no verdict: {verdict.error}"
        elif verdict.passed is not control.must_pass:
            said = "passes, but must not" if verdict.passed else "fails, but must pass"
            problem = f"{said}: {feedback}" if feedback else said
        # After all the others, so that a clock has gone on; by `repr`, since NaN is no equal of itself.
        elif _said(verdict) != _said(again := _run_judge(task, control.record, timeout_s, allowed)):
            problem = f"is judged otherwise when it is judged again: {again.verdict}"
        else:
            continue
        is_crash = (verdict.error or "").startswith(f"{task.test_file.name} raised ")
        if control.has_odd_types and is_crash and problem not in controls_by_problem:
            raised.append(control.name)
            continue
        output = output or verdict.output
        controls_by_problem.setdefault(problem, []).append(control.name)
    negative = [control.name for control in controls if not control.must_pass]
    lines = [f"{_names(names, negative)}: {problem}" for problem, names in controls_by_problem.items()]
    if correct is None:
        file = printable(f"{CORRECT_RECORDS}/{task.name}.json")
        lines.append(
            f"{_CORRECT}: there is none, so that nobody knows whether anything passes. Write {file} beside the task"
        )
    if lines:
        return Verdict("failed", "\n".join(lines), details, None, output)
    said = f"passes {_CORRECT}, and "
    count = f"{len(details) - 1} negative controls"
    said += f"none of {count}, but crashes on {', '.join(raised)}" if raised else f"rejects all {count}"
    return Verdict("passed", said, details)


def _names(names: list[str], negative: list[str]) -> str:
    if names[-len(negative) :] != negative:
        return ", ".join(names)
    return "every negative control" if names == negative else "every control"


def _said(verdict: Verdict) -> str:
    return repr((verdict.verdict, verdict.feedback, verdict.details, verdict.score))


def refused_timeout(task: Task, timeout_s: float | None, allowed: TaskAllowance) -> str | None:
    """Why the judge would not be started, in one line: its task asks for more time than is allowed.

    timeout_s: the operator's word, which counts whatever the task asks for.
    """
    if timeout_s is not None or task.judge_timeout_s is None:
        return None
    problem = allowed.excess({"judge_timeout_s": task.judge_timeout_s})
    return None if problem is None else printable(f"{task.directory / TASK_FILE}: {problem}")


def _run_judge(
    task: Task,
    record: Mapping[str, Any],
    timeout_s: float | None,
    allowed: TaskAllowance,
    sandbox_port: int | None = None,
) -> Verdict:
    if (problem := refused_timeout(task, timeout_s, allowed)) is not None:
        return Verdict("error", error=problem)
    if timeout_s is None:
        timeout_s = DEFAULT_TIMEOUT_S if task.judge_timeout_s is None else task.judge_timeout_s
    given: object = timeout_s
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given <= MAX_TIMEOUT_S:
        problem = f"timeout_s is {truncate(repr(timeout_s), 40)}. Pass seconds above 0 and at most {MAX_TIMEOUT_S}"
        raise TaskError(f"{printable(task.name)}: {problem}", "task_invalid_value")
    named = _port_in(record) if sandbox_port is None else None
    if task.judge_network:
        sandbox_port, named = sandbox_port or named, None
    network = task.judge_network and allowed.network
    verdict = judge(task.test_file, record, timeout_s, network=network, sandbox_port=sandbox_port, withheld_port=named)
    return verdict if verdict.error is None else replace(verdict, error=f"{task.test_file.name} {verdict.error}")


def _port_in(record: Mapping[str, Any]) -> int | None:
    """Of the sandbox, as a record names it, which may hold anything."""
    sandbox = record["sandbox"]
    port = sandbox.get("docker_port") if isinstance(sandbox, Mapping) else None
    return port if type(port) is int and 0 < port <= _MAX_PORT else None
