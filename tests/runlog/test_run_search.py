"""Pages of runs and results."""

from __future__ import annotations

import pytest
from stored_runs import StoredRuns, result

from guarantee_email_agent.runlog import run_search
from guarantee_email_agent.runlog.run_search import GroupCounts, RunFilter, RunSearch
from guarantee_email_agent.runlog.stored_records import ResultFilter


def test_pages_of_runs_know_whether_there_are_more(runs: StoredRuns) -> None:
    for number in range(1, 6):
        runs.write(number, [result(1)], suite="a" if number % 2 else "b")
    with RunSearch(runs.file) as store:
        page = store.page_of_runs(limit=2)
        assert ([run.number for run in page.runs], page.has_newer, page.has_older) == ([5, 4], False, True)
        page = store.page_of_runs(below=4, limit=2)
        assert ([run.number for run in page.runs], page.has_newer, page.has_older) == ([3, 2], True, True)
        page = store.page_of_runs(above=1, limit=2)
        assert ([run.number for run in page.runs], page.has_newer, page.has_older) == ([3, 2], True, True)
        page = store.page_of_runs(RunFilter(suite="b"), above=1, limit=2)
        assert ([run.number for run in page.runs], page.has_newer, page.has_older) == ([4, 2], False, False)
        assert store.suites() == [("eval", "a"), ("eval", "b")]


def test_results_by_filter(runs: StoredRuns) -> None:
    results = [result(1), result(2, "failed"), result(3, "failed", category="hand-over"), result(4, language="de")]
    runs.write(1, results)
    with RunSearch(runs.file) as store:
        run = store.find_run("last")

        def found(which: ResultFilter) -> list[int]:
            return [each.position for each in store.page_of_results(run, which).results]

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


def test_the_newest_results_come_first(runs: StoredRuns) -> None:
    runs.begin(1, at_once=True).add(result(1), result(2), result(3))
    with RunSearch(runs.file) as store:
        (run,) = store.page_of_runs(RunFilter(outcome="going on")).runs
        assert [each.position for each in store.newest_results(run, 2)] == [3, 2]
        assert store.page_of_runs(RunFilter(outcome="interrupted")).runs == []


def test_a_page_of_a_large_run_looks_at_a_part_of_it(runs: StoredRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_search, "MAX_SCANNED", 10)
    runs.write(1, [result(each, "failed" if each in (7, 35) else "passed") for each in range(1, 41)])
    failed = ResultFilter(verdicts=("failed",))
    with RunSearch(runs.file) as store:
        run = store.find_run("last")
        found, after, pages = [], (0, 0), 0
        while after is not None:
            page = store.page_of_results(run, failed, after=after)
            found += [each.position for each in page.results]
            after, pages = page.after, pages + 1
            assert page.is_cut == (after is not None)
            assert page.matching is None
        assert (found, pages) == ([7, 35], 4)
        found, before = [], (41, 0)
        while before is not None:
            page = store.page_of_results(run, failed, before=before)
            found += [each.position for each in page.results]
            before = page.before
        assert found == [35, 7]


def test_an_empty_run_has_an_empty_page(runs: StoredRuns) -> None:
    runs.write(1, [])
    with RunSearch(runs.file) as store:
        page = store.page_of_results(store.find_run("last"))
    assert page == ([], None, None, 0, False)
