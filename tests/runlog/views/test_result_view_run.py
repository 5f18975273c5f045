"""A stored run as a whole, and the list of runs."""

from __future__ import annotations

import io

from stored_runs import StoredRuns, result

from guarantee_email_agent.runlog.records import Check
from guarantee_email_agent.runlog.run_reader import RunStore
from guarantee_email_agent.runlog.run_writer import RunEnd
from guarantee_email_agent.runlog.views.result_view import print_run, print_runs
from guarantee_email_agent.runlog.views.stored_report import stored_report
from guarantee_email_agent.utils.terminal import Terminal


def shown(runs: StoredRuns) -> list[str]:
    stream = io.StringIO()
    with RunStore(runs.file) as store:
        print_run(store, store.find_run("last"), Terminal(stream, color=False, ascii_only=False))
    return stream.getvalue().splitlines()


def test_a_run_shows_what_of_it_failed_and_why(runs: StoredRuns) -> None:
    checks = tuple(Check("response_body_contains", f"missing phrase {number}") for number in range(5))
    runs.write(1, [result(1), result(2, "failed", checks=checks)], "failed", 4)
    assert shown(runs) == [
        "Run: 20260118T100001-00000001, eval of evals/scenarios, 2026-01-18T10:00:00Z, failed, 1/2 (50.0%)",
        "Version: 0.1.0, git 0123abc",
        "✗ valid_warranty_002: Customer 2 - FAILED",
        "    response_body_contains: missing phrase 0",
        "    response_body_contains: missing phrase 1",
        "    response_body_contains: missing phrase 2",
        "    … and 2 more",
        "✓ Passed: 1",
        "✗ Failed: 1",
    ]


def test_of_repetitions_the_first_that_failed_gives_the_reason(runs: StoredRuns) -> None:
    runs.write(1, [result(1), result(1, "failed", repetition=2, checks=(Check("a", "why"),)), result(1, repetition=3)])
    lines = shown(runs)
    assert "✗ valid_warranty_001: Customer 1 - FAILED (2 of 3 runs passed)" in lines
    assert "    a: why" in lines


def test_a_run_that_goes_on_says_so_with_what_ran_until_now(runs: StoredRuns) -> None:
    writer = runs.begin(1, at_once=True)
    writer.add(result(1))
    assert shown(runs)[0].endswith(", going on, 1/1 (100%), 1 of 2 ran")
    writer.finish(RunEnd("interrupted", 130, "2026-01-18T10:00:01Z", 1.0))


def test_what_did_not_run_is_named_until_it_has(runs: StoredRuns) -> None:
    announced = [f"valid_warranty_{number:03}" for number in (1, 2, 3)]
    writer = runs.begin(1, at_once=True, announced=announced, planned=3)
    writer.add(result(2))
    assert "Did not run: valid_warranty_001, valid_warranty_003" in shown(runs)
    writer.finish(RunEnd("interrupted", 130, "2026-01-18T10:00:01Z", 1.0, facts={"fail_fast": True}))
    with RunStore(runs.file) as store:
        report = stored_report(store, store.find_run("last"))
    assert report.summary["missing"] == ["valid_warranty_001", "valid_warranty_003"]
    whole = runs.begin(2, announced=announced[:1], planned=1)
    whole.add(result(1))
    whole.finish(RunEnd("passed", 0, "2026-01-18T10:00:01Z", 1.0))
    with RunStore(runs.file) as store:
        assert store.find_run("last").facts == {}


def test_the_list_has_a_line_a_run_with_its_count_and_rate(runs: StoredRuns) -> None:
    runs.write(1, [result(1), result(2)])
    runs.write(2, [result(1), result(2, "failed")], "failed", 4, selection=("valid_*",), repeat=3)
    stream = io.StringIO()
    with RunStore(runs.file) as store:
        print_runs(store.runs(), Terminal(stream, color=False, ascii_only=False))
    assert stream.getvalue().splitlines() == [
        (
            "20260118T100002-00000002  2026-01-18T10:00:00Z  failed  1/2 (50.0%)  "
            "eval evals/scenarios (1 pattern of it), 3 times"
        ),
        "20260118T100001-00000001  2026-01-18T10:00:00Z  passed  2/2 (100%)  eval evals/scenarios",
    ]
