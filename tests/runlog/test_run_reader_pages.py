"""Pages of runs and results."""

from __future__ import annotations

from stored_runs import StoredRuns, result

from guarantee_email_agent.runlog.run_reader import GroupCounts, RunStore


def test_groups_count_cases_and_not_repetitions(runs: StoredRuns) -> None:
    kept = [
        result(1, repetition=1, language="en"),
        result(1, "failed", repetition=2, language="en"),
        result(2, language="de", category="missing-info"),
    ]
    runs.write(1, kept, repeat=2)
    with RunStore(runs.file) as store:
        groups = store.group_counts(store.find_run("last"))
    assert groups == [GroupCounts("missing-info", "de", 1, 1), GroupCounts("valid-warranty", "en", 0, 1)]
    assert [each.failed for each in groups] == [0, 1]
