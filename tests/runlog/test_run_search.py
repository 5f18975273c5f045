"""Pages of runs and results."""

from __future__ import annotations

from stored_runs import StoredRuns, result

from guarantee_email_agent.runlog.run_search import GroupCounts, RunFilter, RunSearch
from guarantee_email_agent.runlog.stored_records import ResultFilter


def test_pages_of_runs_know_whether_there_are_more(runs: StoredRuns) -> None:
    for number in range(1, 6):
        runs.write(number, [result(1)], suite="a" if number % 2 else "b")
    with RunSearch(runs.file) as store:
        pages = [store.page_of_runs(page=page, limit=2) for page in (1, 2, 3)]
        assert [([run.number for run in found], has_more) for found, has_more in pages] == [
            ([5, 4], True),
            ([3, 2], True),
            ([1], False),
        ]
        found, has_more = store.page_of_runs(RunFilter(suite="b"), limit=2)
        assert ([run.number for run in found], has_more) == ([4, 2], False)
        assert store.suites() == [("eval", "a"), ("eval", "b")]


def test_results_by_filter(runs: StoredRuns) -> None:
    results = [result(1), result(2, "failed"), result(3, "failed", category="hand-over"), result(4, language="de")]
    runs.write(1, results)
    with RunSearch(runs.file) as store:
        run = store.find_run("last")

        def found(which: ResultFilter) -> list[int]:
            return [each.position for each in store.page_of_results(run, which)[0]]

        assert found(ResultFilter()) == [1, 2, 3, 4]
        assert found(ResultFilter(verdicts=("failed", "error"))) == [2, 3]
        assert found(ResultFilter(category="hand-over")) == [3]
        assert found(ResultFilter(language="de")) == [4]
        assert found(ResultFilter(text="CUSTOMER 4")) == [4]
        assert found(ResultFilter(text="%")) == []


def test_groups_count_cases_and_not_repetitions(runs: StoredRuns) -> None:
    kept = [
        result(1, repetition=1, language="en"),
        result(1, "failed", repetition=2, language="en"),
        result(2, language="de", category="missing-info"),
    ]
    runs.write(1, kept, repeat=2)
    with RunSearch(runs.file) as store:
        groups = store.group_counts(store.find_run("last"))
    assert groups == [GroupCounts("missing-info", "de", 1, 1), GroupCounts("valid-warranty", "en", 0, 1)]
    assert [each.failed for each in groups] == [0, 1]


def test_pages_of_results_and_how_many_fit(runs: StoredRuns) -> None:
    runs.write(1, [result(each, "failed" if each % 2 else "passed") for each in range(1, 8)])
    failed = ResultFilter(verdicts=("failed",))
    with RunSearch(runs.file) as store:
        run = store.find_run("last")
        pages = [store.page_of_results(run, failed, page, 3) for page in (1, 2, 3)]
    assert [([each.position for each in found], count) for found, count in pages] == [([1, 3, 5], 4), ([7], 4), ([], 4)]
