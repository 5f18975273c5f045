"""How many scenarios passed: the counts that the summary, the reports and the gate share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from guarantee_email_agent.eval.models import EvalResult


@dataclass(slots=True)
class Totals:
    """Counts of results; `failed` includes `invalid`, the files that could not be used."""

    total: int = 0
    passed: int = 0
    invalid: int = 0

    @classmethod
    def of(cls, results: Iterable[EvalResult]) -> Totals:
        totals = cls()
        for result in results:
            totals.add(result)
        return totals

    @property
    def failed(self) -> int:
        return self.total - self.passed

    def add(self, result: EvalResult) -> None:
        self.total += 1
        self.passed += result.passed
        self.invalid += result.invalid
