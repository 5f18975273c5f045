"""How many passed: the counts that summaries, reports and gates share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Outcome = Literal["passed", "failed", "error", "invalid"]
"""error: no verdict came. invalid: a file that could not be used, which counts as failed."""


@dataclass(slots=True)
class Totals:
    """Counts of outcomes; `failed` includes `invalid`."""

    passed: int = 0
    failed: int = 0
    error: int = 0
    invalid: int = 0

    @classmethod
    def of(cls, outcomes: Iterable[Outcome]) -> Totals:
        totals = cls()
        for outcome in outcomes:
            totals.add(outcome)
        return totals

    @property
    def total(self) -> int:
        return self.passed + self.failed + self.error

    def add(self, outcome: Outcome) -> None:
        if outcome == "passed":
            self.passed += 1
        elif outcome == "error":
            self.error += 1
        else:
            self.failed += 1
            self.invalid += outcome == "invalid"
