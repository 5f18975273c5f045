"""What came of grading: lines for people, JSON and JUnit XML for machines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from guarantee_email_agent.judging.verdict import Graded
from guarantee_email_agent.reporting.kept_results import Results
from guarantee_email_agent.reporting.run_report import RunReporter
from guarantee_email_agent.reporting.terminal import Terminal, TextStream
from guarantee_email_agent.reporting.totals import Totals
from guarantee_email_agent.utils.text import printable

if TYPE_CHECKING:
    pass

SCHEMA_VERSION: Final = 1
UNWRITABLE: Final = "task_report_unwritable"

WANTED_PERCENT: Final = 100
"""Nothing less than all is a success, so no rounding may say 100."""

_MAX_LINES: Final = 20
_MAX_CHARACTERS: Final = 2_000
_INDENT: Final = "    "


class GradeReporter(RunReporter[Graded]):
    """Prints verdicts: passed ones as they come, then failed ones, errors, and the totals."""

    INTERRUPTED = "were judged"
    COUNTS_ERRORS = True

    def __init__(self, stream: TextStream, *, measures_agent: bool = True) -> None:
        super().__init__(Terminal(stream), WANTED_PERCENT, measures_agent=measures_agent)
        self._by_task: dict[str, TaskTotals] = {}

    def add(self, result: Graded) -> None:
        self._add(result.verdict.verdict, format_graded(result))
        _count(self._by_task, result)

    def _print_conclusion(self) -> None:
        """What the run says of the agent. Records of one task are no independent tasks, so tasks are counted."""
        repeated = [(name, totals) for name, totals in self._by_task.items() if totals.total > 1]
        passed = sum(totals.passed == totals.total for totals in self._by_task.values())
        if repeated:
            self._terminal.line(f"Tasks passed every time: {passed}/{len(self._by_task)}")
            for name, totals in repeated:
                self._terminal.line(f"{_INDENT}{printable(name)}: {totals.passed} of {totals.total}")


@dataclass(slots=True)
class TaskTotals:
    """Of the records of one task."""

    passed: int = 0
    total: int = 0


def totals_by_task(results: Iterable[Graded]) -> dict[str, TaskTotals]:
    """By the names of the tasks."""
    by_task: dict[str, TaskTotals] = {}
    for graded in results:
        _count(by_task, graded)
    return by_task


def _count(by_task: dict[str, TaskTotals], graded: Graded) -> None:
    totals = by_task.setdefault(graded.task_name, TaskTotals())
    totals.passed += graded.verdict.verdict == "passed"
    totals.total += 1


def format_graded(graded: Graded) -> str:
    """One verdict for people: a line, and for what is no pass the reason and what the judge printed, indented."""
    verdict, name = graded.verdict, printable(graded.name)
    if verdict.verdict == "passed":
        feedback = printable(" ".join(verdict.feedback[:_MAX_CHARACTERS].split()))
        return f"✓ {name}: {feedback}" if feedback else f"✓ {name}"
    word = "FAILED" if verdict.verdict == "failed" else "ERROR"
    lines = [f"✗ {name} - {word}", *_excerpt(verdict.error or verdict.feedback)]
    if printed := _excerpt(verdict.output, from_end=True):  # what a program prints last says most
        lines += [f"{_INDENT}printed:", *(f"{_INDENT}{line}" for line in printed)]
    return "\n".join(lines)


def json_summary(results: Results[Graded], *, interrupted: bool = False, planned: int | None = None) -> dict[str, Any]:
    """The report but for its last key, `results`. interrupted: whether some are missing.

    planned: how many a whole run has; as many as there are if None.

    Where a task has several records, each result says which it is about, and `tasks` sums them up: a task passed
    where every one of its records did.
    """
    totals = Totals.of(graded.verdict.verdict for graded in results)
    by_task = totals_by_task(results)
    tasks = [
        {"task_name": name, "passed": each.passed == each.total, "records_passed": each.passed, "records": each.total}
        for name, each in by_task.items()
    ]
    return {
        "schema_version": SCHEMA_VERSION,
        "planned": totals.total if planned is None else planned,
        "totals": {"total": totals.total, "passed": totals.passed, "failed": totals.failed, "error": totals.error},
        "interrupted": interrupted,
        **({"tasks": tasks} if len(tasks) < totals.total else {}),
    }


def json_results(results: Results[Graded]) -> Iterator[dict[str, Any]]:
    """One for each record. duration_ms: wall time of the judge."""
    return map(_json_result, results)


def json_rows(results: Results[Graded]) -> Iterator[dict[str, Any]]:
    """Each result as `json_results` has it, with the number of the task's record."""
    for graded in results:
        yield {"repetition": graded.index, **_json_result(graded)}


def _json_result(graded: Graded) -> dict[str, Any]:
    verdict = graded.verdict
    returned = {"passed": verdict.verdict == "passed", "feedback": verdict.feedback, "details": dict(verdict.details)}
    return {
        "task_name": graded.task_name,
        **({"index": graded.index} if graded.of > 1 else {}),
        "verdict": verdict.verdict,
        "eval": None if verdict.verdict == "error" else returned,
        "error": verdict.error,
        "output": verdict.output,
        "duration_ms": round(verdict.duration_ms, 1),
    }


def _excerpt(text: str, *, from_end: bool = False) -> list[str]:
    if not (text := text.rstrip()):
        return []
    lines = (text[-_MAX_CHARACTERS:] if from_end else text[:_MAX_CHARACTERS].rstrip()).split("\n")
    mark = ["…"] if len(text) > _MAX_CHARACTERS or len(lines) > _MAX_LINES else []
    shown = [*mark, *lines[-_MAX_LINES:]] if from_end else [*lines[:_MAX_LINES], *mark]
    return [f"{_INDENT}{printable(line)}" for line in shown]
