"""Two stored runs side by side."""

from typing import Any

import pytest
from stored_runs import StoredRuns, ended, result

from guarantee_email_agent.runlog.comparison import Comparison, compare_runs, find_pair
from guarantee_email_agent.runlog.database import StoreError
from guarantee_email_agent.runlog.records import CaseResult, Input, InputSet, Usage
from guarantee_email_agent.runlog.run_reader import RunStore


def compare(runs: StoredRuns, before: list[CaseResult], after: list[CaseResult], **changes: Any) -> Comparison:
    runs.write(1, before)
    runs.write(2, after, "failed", 4, **changes)
    with RunStore(runs.file) as store:
        return compare_runs(store, *find_pair(store, "green", "last"))


def inputs(**contents: str) -> InputSet:
    return InputSet(Input.of("instruction", f"{name}.md", text.encode()) for name, text in contents.items())


def names(cases: Any) -> list[str]:
    return [each.name for each in cases]


def test_each_case_stands_where_it_belongs(runs: StoredRuns) -> None:
    found = compare(
        runs,
        [result(1), result(2, "failed"), result(3, "failed", duration_ms=5.0), result(4), result(5)],
        [result(1, "failed"), result(2), result(3, "failed", usage=Usage(cost_usd=None)), result(4), result(6)],
    )
    assert (found.sums.cases, found.sums.cost_usd) == (4, (0.0, None))
    assert found.sums.duration_ms == (3 * result(1).duration_ms + 5.0, 4 * result(1).duration_ms)
    assert names(found.newly_failing) == ["valid_warranty_001"]
    assert names(found.newly_passing) == ["valid_warranty_002"]
    assert names(found.still_failing) == ["valid_warranty_003"]
    assert found.still_passing == 1
    assert names(found.removed) == ["valid_warranty_005"]
    assert names(found.added) == ["valid_warranty_006"]


def test_a_case_that_passes_in_some_repetitions_alone_does_not_pass(runs: StoredRuns) -> None:
    found = compare(runs, [result(1)], [result(1), result(1, "failed", repetition=2), result(1, repetition=3)])
    (change,) = found.newly_failing
    assert (change.after.passed_runs, len(change.after.runs)) == (2, 3)


@pytest.mark.parametrize(("outcome", "state"), [("interrupted", "interrupted"), (None, "going on")])
def test_what_a_run_has_not_reached_is_not_gone(runs: StoredRuns, outcome: str | None, state: str) -> None:
    runs.write(1, [result(1), result(2), result(3, "failed")], "failed", 4)
    writer = runs.begin(2, at_once=True, planned=4)
    writer.add(result(1))
    if outcome == "interrupted":
        writer.finish(ended("interrupted", 130))
    with RunStore(runs.file) as store:
        found = compare_runs(store, store.runs()[1], store.runs()[0])
        back = compare_runs(store, store.runs()[0], store.runs()[1])
    assert (found.run.state, found.run.total) == (state, 1)
    assert (found.removed, names(found.not_reached)) == ((), ["valid_warranty_002", "valid_warranty_003"])
    assert (found.regressions, found.missing, found.shows_no_regression) == ([], 3, False)
    assert (back.added, names(back.not_reached_before)) == ((), ["valid_warranty_002", "valid_warranty_003"])
    assert back.shows_no_regression
    if outcome is None:
        writer.finish(ended("interrupted", 130))


def test_other_replies_are_told_and_equal_ones_are_not(runs: StoredRuns) -> None:
    before = [
        result(1),
        result(2, response={"response_body": "Hello"}),
        result(3, response={"response_body": "Bye", "turns": [{"answer": "Bye"}, {"answer": None}]}),
        result(4, response={"response_body": None, "answer": "10:00"}),
        result(5, response={"response_body": "Hi", "turns": [{"answer": "Hi"}, {"answer": "Four?"}]}),
    ]
    after = [
        result(1),
        result(2, response={"response_body": None}),
        result(3, response={"response_body": "Bye", "n": 1}),
        result(4, response={"response_body": None, "answer": "14:00"}),
        result(5, response={"response_body": "Hi", "turns": [{"answer": "Hi"}, {"answer": "Five?"}]}),
    ]
    assert compare(runs, before, after).replies.shown == (
        ("valid_warranty_002", "Hello", None),
        ("valid_warranty_004", "10:00", "14:00"),
        ("valid_warranty_005", "Hi\n\nFour?", "Hi\n\nFive?"),
    )


def test_the_file_that_changed_is_named_with_its_content_before_and_now(runs: StoredRuns) -> None:
    before, after = inputs(main="same", greeting="Hello", old="x"), inputs(main="same", greeting="Good day", new="y")
    found = compare(
        runs,
        [result(1, inputs=before), result(2, inputs=before)],
        [result(1, inputs=after), result(2, inputs=after)],
    )
    assert found.contents.shown == (
        ("instruction", "greeting.md", b"Hello", b"Good day", "changed", 2),
        ("instruction", "new.md", None, b"y", "added", 2),
        ("instruction", "old.md", b"x", None, "removed", 2),
    )


def test_tasks_have_files_of_their_own(runs: StoredRuns) -> None:
    def judged_by(text: str) -> InputSet:
        return InputSet([Input.of("judge", "test.py", text.encode())])

    found = compare(
        runs,
        [result(1, inputs=judged_by("a")), result(2, inputs=judged_by("b"))],
        [result(1, inputs=judged_by("a")), result(2, inputs=judged_by("c"))],
    )
    assert [(each.before, each.after, each.cases) for each in found.contents.shown] == [(b"b", b"c", 1)]


def test_a_changed_scenario_file_is_named(runs: StoredRuns) -> None:
    found = compare(
        runs, [result(1, source=b"old"), result(2, source=b"s")], [result(1, source=b"new"), result(2, source=b"s")]
    )
    assert [tuple(each) for each in found.contents.shown] == [
        ("scenario", "valid_warranty_001", b"old", b"new", "changed", 1)
    ]


def test_other_settings_are_named(runs: StoredRuns) -> None:
    found = compare(runs, [result(1)], [result(1)], model="other", threshold=90.0)
    assert found.settings == (("model", "", "other"), ("threshold", 100.0, 90.0))


def test_results_without_known_inputs_are_counted(runs: StoredRuns) -> None:
    known = inputs(main="same")
    after = [result(1, inputs=known), result(2, inputs=known), result(3, inputs=known), result(3, repetition=2)]
    found = compare(runs, [result(1, inputs=known), result(2), result(3, inputs=known)], after)
    assert found.unknown_inputs == 2


def test_green_is_the_last_run_before_the_other_that_passed(runs: StoredRuns) -> None:
    runs.write(1, [result(1)])
    runs.write(2, [result(1)], suite="another")
    runs.write(3, [result(1)])
    with RunStore(runs.file) as store:
        newest, _, oldest = store.runs()
        assert find_pair(store, "green", "last") == (oldest, newest)
        assert find_pair(store, "last", "green") == (newest, oldest)
        with pytest.raises(StoreError, match="no run of evals/scenarios has passed its gate before"):
            find_pair(store, "green", oldest.id)
