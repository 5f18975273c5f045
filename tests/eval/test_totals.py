from __future__ import annotations

from typing import Any

from guarantee_email_agent.eval.models import EvalResult, InvalidScenario
from guarantee_email_agent.eval.totals import Totals


def test_invalid_files_count_as_failed(scenario: Any) -> None:
    invalid = EvalResult.of_invalid(InvalidScenario("a_1.yaml", "a_1.yaml", "Missing field: created", "eval_x"))
    totals = Totals.of([EvalResult(scenario(), True), EvalResult(scenario(), False), invalid])
    assert (totals.total, totals.passed, totals.failed, totals.invalid) == (3, 1, 2, 1)


def test_nothing() -> None:
    assert Totals.of([]) == Totals(0, 0, 0)
