"""The repetitions of a case make one outcome."""

from __future__ import annotations

from pathlib import Path

from stored_runs import StoredRuns, result

from guarantee_email_agent.runlog.records import Case, Check, Usage
from guarantee_email_agent.runlog.run_reader import RunStore


def test_the_repetitions_of_a_case_are_one_outcome_as_bad_as_the_worst(tmp_path: Path) -> None:
    runs = StoredRuns(tmp_path / "runs.db")
    usages = [Usage(cost_usd=0.5), Usage(cost_usd=0.25), Usage(cost_usd=None)]
    repeated = [result(1, repetition=number, duration_ms=2.0, usage=usages[number - 1]) for number in (1, 2)]
    worst = [
        result(2, verdict, repetition=n, usage=usages[n - 1])
        for n, verdict in enumerate(("error", "failed", "passed"), 1)
    ]
    runs.write(1, [*repeated, *worst], "failed", 4)
    with RunStore(runs.file) as store:
        first, second = store.case_outcomes(store.find_run("last"))
    assert (first.verdict, first.passed, first.runs, first.duration_ms, first.cost_usd) == ("passed", 2, 2, 4.0, 0.75)
    assert (second.verdict, second.passed, second.runs, second.cost_usd) == ("error", 1, 3, None)


def test_a_case_is_as_good_as_the_worst_of_its_runs_and_says_which_failed() -> None:
    failed = result(1, "failed", repetition=2, duration_ms=2.0, checks=(Check("a", "b"),), harm=("a promise",))
    case = Case((result(1, duration_ms=1.0), failed, result(1, "failed", repetition=3, harm=None)))
    assert (case.verdict, case.passed, case.shown, case.duration_ms) == ("failed", False, failed, 3.0)
    assert ([str(check) for check in case.failed_checks], case.harm) == (["run 2 of 3: a: b"], ("a promise",))
    assert [str(check) for check in Case((failed, failed)).failed_checks] == ["a: b"]
    assert Case((failed, result(1, "error"), result(1, "invalid"))).verdict == "error"
