"""A run as plain data, for every form of report."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Literal

from guarantee_email_agent.runlog.records import Case, Check, GroupCounts, Run, Verdict
from guarantee_email_agent.runlog.suite_statistics import Totals

Gate = Literal["passed", "failed", "inconclusive", "undecided"]
"""inconclusive: only a proof that was asked for is missing. undecided: the run was stopped before its end."""

WORDS: Final[Mapping[Verdict, str]] = {
    "passed": "Passed",
    "failed": "Failed",
    "error": "Error",
    "invalid": "Invalid file",
}
SIGNS: Final[Mapping[Verdict, str]] = {"passed": "✓", "failed": "✗", "error": "✗", "invalid": "✗"}


REPORT_FORMS: Final = ("json", "jsonl", "csv", "junit", "html", "markdown")
"""Each has an option that names a file for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What the command line decides for each of the three.

    directory: of what is run or judged. jobs: how many at a time. executor: where, `local`, `ray` or `ray://host:port`.
    json_file to markdown_file: reports to write. html_for: `board`, if the page is for those who decide.
    github: shows the run in the step of a workflow; None elsewhere.
    """

    directory: Path
    jobs: int = 1
    executor: str = "local"
    json_file: Path | None = None
    jsonl_file: Path | None = None
    csv_file: Path | None = None
    junit_file: Path | None = None
    html_file: Path | None = None
    html_for: str | None = None
    markdown_file: Path | None = None
    github: Callable[[Report], None] | None = None

    @property
    def report_files(self) -> dict[str, Path]:
        """Those that are wanted, by the option that named each."""
        files = {f"--{form}": getattr(self, f"{form}_file") for form in REPORT_FORMS}
        return {option: path for option, path in files.items() if path is not None}

    @property
    def wants_reports(self) -> bool:
        return bool(self.report_files) or self.github is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A run as a whole.

    rate, threshold: in percent, as people read them; the rate empty where the results say nothing of an agent. verdict:
    what the gate says, in words. notes: sentences on what the run shows. facts: what else is to be known of the run.
    causes: reasons with the names of the cases that share each. groups: how those of each category and language did.
    cases: those of a large run are read anew each time they are gone through. history: earlier runs, the oldest first.
    summary: what `--json` has beside the cases, and json_case: a case there.
    """

    run: Run
    gate: Gate
    verdict: str
    totals: Totals
    cases: Iterable[Case]
    rate: str = ""
    threshold: str = ""
    notes: Sequence[str] = ()
    facts: Sequence[tuple[str, str]] = ()
    causes: Sequence[tuple[str, Sequence[str]]] = ()
    groups: Sequence[GroupCounts] = ()
    history: Sequence[Run] = ()
    summary: Mapping[str, Any] = field(default_factory=dict)
    json_case: Callable[[Case], Mapping[str, Any]] = Case._asdict

    @property
    def noun(self) -> str:
        """What a case is called."""
        return "scenario" if self.run.command == "eval" else "task"

    @property
    def suite(self) -> str:
        return self.run.suite if self.run.command == "eval" else relative_to(self.run.suite)

    @property
    def interrupted(self) -> bool:
        return self.gate == "undecided"

    @property
    def title(self) -> str:
        """What happened, in one line."""
        return f"{self.verdict}: {self.rate or self.totals.passed} of {self.suite}" if self.suite else self.verdict

    @property
    def failed_count(self) -> int:
        """How many cases did not pass."""
        return self.totals.total - self.totals.passed

    def cases_that(self, *, passed: bool) -> Iterator[Case]:
        """Those that passed, or those that did not."""
        if self.totals.passed if passed else self.failed_count:
            yield from (case for case in self.cases if case.passed is passed)

    def failed_first(self) -> Iterator[Case]:
        """Every case; those that did not pass before the others."""
        yield from self.cases_that(passed=False)
        yield from self.cases_that(passed=True)


_LINE: Final = re.compile(r"\(line (\d+)\)|, line (\d+)|:(\d+):")


def line_of(case: Case, check: Check) -> int:
    """The line of a scenario's file that says what was expected, or that cannot be read; the first where none does."""
    if case.shown.verdict == "invalid" and (named := _LINE.search(check.reason)):
        return int(next(filter(None, named.groups())))
    key = re.compile(rf"\s*[\"']?{re.escape(check.name.rpartition(': ')[2])}[\"']?\s*:")
    lines = (case.shown.source or b"").decode(errors="replace").splitlines()
    return next((number for number, line in enumerate(lines, 1) if key.match(line)), 1)


def relative_to(file: str, root: str = "") -> str:
    """`file` as it is named from `root`, or from the working directory where that is empty; else as it is."""
    folder, name = os.path.split(file)
    if not name:
        return file
    shown = _folder_from(folder, root, os.getcwd())
    return name if shown == "." else os.path.join(shown, name)


@lru_cache(maxsize=64)  # the scenarios of a run share a few
def _folder_from(folder: str, root: str, working_directory: str) -> str:
    path, start = Path(working_directory, folder), Path(working_directory, root)
    return path.relative_to(start).as_posix() if path.is_relative_to(start) else folder
