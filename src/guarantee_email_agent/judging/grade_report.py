"""What came of grading: lines for people, JSON and JUnit XML for machines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from guarantee_email_agent.judging.verdict import Graded, Verdict
from guarantee_email_agent.reporting.report_files import JUnitCase, ReportFiles
from guarantee_email_agent.reporting.run_report import RunOptions, RunReporter
from guarantee_email_agent.reporting.statistics import lower_bound_95, rounded_bound
from guarantee_email_agent.reporting.terminal import Terminal, TextStream
from guarantee_email_agent.reporting.totals import Totals
from guarantee_email_agent.utils.printable import printable

SCHEMA_VERSION: Final = 1
UNWRITABLE: Final = "task_report_unwritable"

_WANTED_PERCENT: Final = 100  # nothing less than all is a success, so no rounding may say 100
_SHOWN_LINES: Final = 20
_SHOWN_CHARACTERS: Final = 2_000
_INDENT: Final = "    "


class GradeReporter(RunReporter[Graded]):
    """Prints verdicts: passed ones as they come, then failed ones, errors, and the totals."""

    INTERRUPTED = "were judged"
    COUNTS_ERRORS = True

    def __init__(self, stream: TextStream, *, measures_agent: bool = True) -> None:
        super().__init__(Terminal(stream), _WANTED_PERCENT, measures_agent=measures_agent)

    def add(self, result: Graded) -> None:
        self._add(result.verdict.verdict, described(result))

    def _print_conclusion(self, totals: Totals) -> None:
        if self._measures_agent and totals.total > 1:
            bound = rounded_bound(lower_bound_95(totals.passed, totals.total), self.threshold)
            self._terminal.line(f"Proven with 95% confidence: of tasks like these, the agent solves at least {bound}%.")


def described(graded: Graded) -> str:
    """One verdict for people: a line, and for what is no pass the reason and what the judge printed, indented."""
    verdict, name = graded.verdict, printable(graded.task_name)
    if verdict.verdict == "passed":
        feedback = printable(" ".join(verdict.feedback[:_SHOWN_CHARACTERS].split()))
        return f"✓ {name}: {feedback}" if feedback else f"✓ {name}"
    word = "FAILED" if verdict.verdict == "failed" else "ERROR"
    lines = [f"✗ {name} - {word}", *_beginning(verdict.error or verdict.feedback)]
    if printed := _end(verdict.output):
        lines += [f"{_INDENT}printed:", *(f"{_INDENT}{line}" for line in printed)]
    return "\n".join(lines)


def as_report(results: Sequence[Graded]) -> dict[str, Any]:
    """The results as JSON holds them. duration_ms: wall time of the judge."""
    totals = Totals.of(graded.verdict.verdict for graded in results)
    return {
        "schema_version": SCHEMA_VERSION,
        "totals": {
            "total": totals.total,
            "passed": totals.passed,
            "failed": totals.failed,
            "error": totals.error,
        },
        "results": [_entry(graded) for graded in results],
    }


def task_report_files(command: str, options: RunOptions) -> ReportFiles[Graded]:
    """The report files of `grade` and `solve`, whose content has one shape."""
    content = (options.json_file, options.junit_file, command, "tasks", UNWRITABLE)
    return ReportFiles(*content, lambda results, _: as_report(results), junit_case)


def verdict_as_json(verdict: Verdict) -> dict[str, Any] | None:
    """What the judge returned, as `eval` holds it in a report and in a record; None where it gave no verdict."""
    if verdict.verdict == "error":
        return None
    return {
        "passed": verdict.verdict == "passed",
        "feedback": verdict.feedback,
        "details": dict(verdict.details),
    }


def junit_case(graded: Graded) -> JUnitCase:
    """One result as a CI shows it: a failed one is a failure, an error an error."""
    verdict = graded.verdict
    reason = verdict.error or verdict.feedback
    return JUnitCase(
        graded.task_name,
        "tasks",
        verdict.duration_ms / 1000,
        verdict.verdict,
        message=reason.partition("\n")[0] or verdict.verdict,
        text=reason,
        output=verdict.output,
    )


def _entry(graded: Graded) -> dict[str, Any]:
    verdict = graded.verdict
    return {
        "task_name": graded.task_name,
        "verdict": verdict.verdict,
        "eval": verdict_as_json(verdict),
        "error": verdict.error,
        "output": verdict.output,
        "duration_ms": round(verdict.duration_ms, 1),
    }


def _beginning(text: str) -> list[str]:
    """The first lines of a text, indented."""
    lines = text[:_SHOWN_CHARACTERS].rstrip().split("\n")
    shown = [f"{_INDENT}{printable(line)}" for line in lines[:_SHOWN_LINES]]
    if len(text.rstrip()) > _SHOWN_CHARACTERS or len(lines) > _SHOWN_LINES:
        shown.append(f"{_INDENT}…")
    return shown if text.strip() else []


def _end(text: str) -> list[str]:
    """The last lines of a text, indented: what a program prints last says most."""
    text = text.rstrip()
    lines = text[-_SHOWN_CHARACTERS:].split("\n")
    shown = [f"{_INDENT}{printable(line)}" for line in lines[-_SHOWN_LINES:]]
    if len(text) > _SHOWN_CHARACTERS or len(lines) > _SHOWN_LINES:
        shown.insert(0, f"{_INDENT}…")
    return shown if text else []
