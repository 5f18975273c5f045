"""What came of grading: lines for people, JSON and JUnit XML for machines."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from guarantee_email_agent.judging.verdict import Graded, Verdict
from guarantee_email_agent.reporting.report_files import JUnitCase, as_json, as_junit, check_writable, write_report
from guarantee_email_agent.reporting.statistics import format_percentage, lower_bound_95, rounded_bound
from guarantee_email_agent.reporting.terminal import Progress, Terminal, TextStream
from guarantee_email_agent.utils.errors import ConfigurationError
from guarantee_email_agent.utils.printable import printable

SCHEMA_VERSION: Final = 1

_WANTED_PERCENT: Final = 100  # nothing less than all is a success, so no rounding may say 100
_SHOWN_LINES: Final = 20
_SHOWN_CHARACTERS: Final = 2_000
_INDENT: Final = "    "
_UNWRITABLE: Final = "task_report_unwritable"


@dataclass(slots=True)
class Totals:
    """Counts of verdicts."""

    passed: int = 0
    failed: int = 0
    error: int = 0

    @property
    def total(self) -> int:
        return self.passed + self.failed + self.error

    @property
    def all_passed(self) -> bool:
        """Whether there is a verdict at all, and none but passes."""
        return 0 < self.passed == self.total

    def add(self, verdict: Verdict) -> None:
        if verdict.verdict == "passed":
            self.passed += 1
        elif verdict.verdict == "failed":
            self.failed += 1
        else:
            self.error += 1


class GradeReporter:
    """Prints verdicts as they come: passed ones at once, failed ones and errors at the end, then the totals."""

    def __init__(self, stream: TextStream, progress: Progress | None = None) -> None:
        self._terminal = Terminal(stream)
        self._progress = progress
        self._failed: list[str] = []
        self._errors: list[str] = []
        self.totals = Totals()

    def header(self, text: str) -> None:
        self._terminal.line(text)

    def add(self, graded: Graded) -> None:
        """Counts one verdict, and prints it if it is a pass."""
        self.totals.add(graded.verdict)
        if self._progress is not None:
            self._progress.clear()
        text = described(graded)
        if graded.verdict.verdict == "passed":
            self._terminal.outcome(text)
        else:
            (self._failed if graded.verdict.verdict == "failed" else self._errors).append(text)
        if self._progress is not None:
            self._progress.show(self.totals.total)

    def finish(self, duration_s: float, planned: int, *, measures_agent: bool) -> None:
        """Failures, errors, totals. measures_agent: whether the verdicts say how good an agent is."""
        if self._progress is not None:
            self._progress.clear()
        for text in (*self._failed, *self._errors):
            self._terminal.outcome(text)
        totals = self.totals
        if measures_agent:
            rate = format_percentage(totals.passed, totals.total, _WANTED_PERCENT)
            self._terminal.line(f"Pass rate: {totals.passed}/{totals.total} ({rate})")
        self._terminal.outcome(f"✓ Passed: {totals.passed}")
        self._terminal.outcome(f"✗ Failed: {totals.failed}", paint=totals.failed > 0)
        self._terminal.outcome(f"✗ Errors: {totals.error}", paint=totals.error > 0)
        self._terminal.line(f"Duration: {duration_s:.1f}s")
        if totals.total < planned:
            self._terminal.line(f"Interrupted: {totals.total} of {planned} were judged")
        elif measures_agent and totals.total > 1:
            bound = rounded_bound(lower_bound_95(totals.passed, totals.total), _WANTED_PERCENT)
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
    totals = Totals()
    for graded in results:
        totals.add(graded.verdict)
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


@dataclass(frozen=True, slots=True)
class ReportFiles:
    """Where the results go for machines; None for nowhere. command: which of ours made them."""

    command: str
    json_file: Path | None = None
    junit_file: Path | None = None

    @property
    def wanted(self) -> list[Path]:
        return [file for file in (self.json_file, self.junit_file) if file is not None]

    def check(self) -> None:
        """Raise, before anything is judged, the ConfigurationError that writing them would end in."""
        for file in self.wanted:
            check_writable(file, _UNWRITABLE)
        if len({os.path.realpath(file) for file in self.wanted}) < len(self.wanted):
            raise ConfigurationError("--json and --junit name the same file. Name two", "cli_bad_usage")

    def write(self, results: Sequence[Graded], duration_s: float) -> None:
        """Raises ConfigurationError for one that cannot be written, once the other one is."""
        problems: list[ConfigurationError] = []
        for file in self.wanted:
            try:
                write_report(file, self._content(file, results, duration_s), _UNWRITABLE)
            except ConfigurationError as error:
                problems.append(error)
        if problems:
            raise problems[0]

    def _content(self, file: Path, results: Sequence[Graded], duration_s: float) -> bytes:
        if file is self.json_file:
            return as_json(as_report(results))
        return as_junit(f"guarantee-email-agent {self.command}", "tasks", map(junit_case, results), duration_s)


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
        kind=verdict.verdict,
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
