from __future__ import annotations

from guarantee_email_agent.runlog.totals import Totals


def test_invalid_files_count_as_failed() -> None:
    totals = Totals.of(["passed", "failed", "invalid", "error"])
    assert (totals.total, totals.passed, totals.failed, totals.invalid, totals.error) == (4, 1, 2, 1, 1)


def test_nothing() -> None:
    assert (Totals.of([]), Totals().total) == (Totals(), 0)
