"""A run as plain data, for every form of report: `eval`, `grade` and `solve` fill it, and so can whoever keeps runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, Protocol

from guarantee_email_agent.reporting.kept_results import Results
from guarantee_email_agent.reporting.totals import Outcome, Totals
from guarantee_email_agent.store.records import Check

Gate = Literal["passed", "failed", "inconclusive", "undecided"]
"""inconclusive: only a proof that was asked for is missing. undecided: the run was stopped before its end."""

WORDS: Final[Mapping[Outcome, str]] = {
    "passed": "Passed",
    "failed": "Failed",
    "error": "Error",
    "invalid": "Invalid file",
}
SIGNS: Final[Mapping[Outcome, str]] = {"passed": "✓", "failed": "✗", "error": "✗", "invalid": "✗"}


class Run(NamedTuple):
    """One repetition of a case. cost_usd: None where there is no price."""

    outcome: Outcome
    duration_ms: float = 0.0
    failed_checks: tuple[Check, ...] = ()
    tokens: int = 0
    cost_usd: float | None = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A scenario, or the work on a task.

    group: what JUnit and the tables sum up by. file: as it is reached from the working directory; empty for none.
    locate: the line in that file that a check stands on. runs: every repetition; the case is as good as the worst.
    harmful: what in it would have harmed somebody, in words.
    request, response, trace, judgement: what happened, as JSON holds it; `transcript.sections` reads them.
    """

    name: str
    outcome: Outcome
    runs: tuple[Run, ...]
    failed_checks: tuple[Check, ...] = ()
    harmful: Sequence[str] = ()
    hints: str = ""
    group: str = ""
    language: str = ""
    description: str = ""
    file: str = ""
    locate: Callable[[Check], int] = lambda _: 1
    output: str = ""
    request: Any = None
    response: Any = None
    trace: Any = None
    judgement: Any = None

    @property
    def passed(self) -> bool:
        return self.outcome == "passed"

    @property
    def duration_ms(self) -> float:
        return sum(run.duration_ms for run in self.runs)


class PastRun(Protocol):
    """A run of the same suite from before, or this one, as it is kept."""

    @property
    def id(self) -> str: ...

    @property
    def started(self) -> str:
        """ISO 8601."""

    @property
    def passed(self) -> int: ...

    @property
    def total(self) -> int: ...

    @property
    def outcome(self) -> str | None:
        """`passed` where it passed its gate; None while it goes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A run as a whole.

    command: `eval`, `grade` or `solve`. noun: what a case is called. rate, threshold: in percent, as people read them;
    the rate empty where the results say nothing of an agent. verdict: what the gate says, in words. notes: sentences on
    what the run shows. facts: what else is to be known of the run. causes: reasons with the names of the cases that
    share each. planned: how many cases a whole run has. cases: those of a large run are made anew each time they are
    gone through. history: earlier runs, the oldest first.
    """

    command: str
    noun: str
    suite: str
    run_id: str
    started: str
    duration_s: float
    gate: Gate
    verdict: str
    totals: Totals
    planned: int
    cases: Results[Case]
    rate: str = ""
    threshold: str = ""
    notes: Sequence[str] = ()
    facts: Sequence[tuple[str, str]] = ()
    causes: Sequence[tuple[str, Sequence[str]]] = ()
    history: Sequence[PastRun] = ()

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


class GroupTotals(NamedTuple):
    """A row of the table by category and language."""

    group: str
    language: str
    passed: int
    total: int

    @property
    def failed(self) -> int:
        return self.total - self.passed


def totals_by_group(cases: Iterable[Case]) -> list[GroupTotals]:
    """By group and language, in the order of their names."""
    counts: dict[tuple[str, str], list[int]] = {}
    for case in cases:
        count = counts.setdefault((case.group, case.language), [0, 0])
        count[0] += case.passed
        count[1] += 1
    return [GroupTotals(*key, *counts[key]) for key in sorted(counts)]


def relative_to(file: str, root: str = "") -> str:
    """`file` as it is named from `root`, or from the working directory where that is empty; else as it is."""
    path, folder = Path(file).absolute(), Path(root or os.curdir).absolute()
    return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else file
