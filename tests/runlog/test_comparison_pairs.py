"""The cases of two runs by name: what is counted, listed and gone through."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from stored_runs import StoredRuns, result

from guarantee_email_agent.runlog.comparison import PairedCases
from guarantee_email_agent.runlog.records import Usage
from guarantee_email_agent.runlog.run_reader import RunStore


@pytest.fixture
def pairs(tmp_path: Path) -> Iterator[PairedCases]:
    """Of four and three cases; the second one's repetitions differ, and the third got another description."""
    runs = StoredRuns(tmp_path / "runs.db")
    runs.write(1, [result(1), result(2), result(3, "failed", duration_ms=5.0, harm=None), result(4)])
    repeated = [result(2, verdict, repetition=number) for number, verdict in enumerate(("passed", "error"), 1)]
    changed = result(3, duration_ms=2.5, description="Another", usage=Usage(cost_usd=None), source=b"new")
    runs.write(2, [*repeated, changed, result(5)], "failed", 4)
    with RunStore(runs.file) as store:
        yield PairedCases(store, store.find_run("green"), store.find_run("last"))


def names(cases: object) -> list[str]:
    return [each.name for each in cases]  # type: ignore[attr-defined]


def test_each_case_is_there_once_with_the_worst_of_its_repetitions(pairs: PairedCases) -> None:
    assert pairs.counts() == (4, 3)
    (newly_failing,) = pairs.changed(passed=True, passes=False)
    after = newly_failing.after
    assert (after.name, after.verdict, after.passed, after.runs) == ("valid_warranty_002", "error", 1, 2)
    assert names(pairs.changed(passed=False, passes=True)) == ["valid_warranty_003"]
    assert pairs.still_passing() == 0


def test_those_of_one_run_alone_come_in_its_order(pairs: PairedCases) -> None:
    assert names(pairs.only_before()) == ["valid_warranty_001", "valid_warranty_004"]
    assert names(pairs.only_after()) == ["valid_warranty_005"]


def test_a_cost_that_is_not_known_makes_the_sum_unknown(pairs: PairedCases) -> None:
    sums = pairs.sums()
    assert (sums.cases, sums.duration_ms, sums.cost_usd) == (2, (5.0, 2.5), (0.0, None))


def test_what_differs_is_gone_through_any_number_of_times(pairs: PairedCases) -> None:
    for _ in range(2):
        assert names(pairs.with_other("source")) == ["valid_warranty_003"]
    assert list(pairs.with_other("judgement")) == []
