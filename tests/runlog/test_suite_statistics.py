"""Repetitions, and counts by category and language."""

from __future__ import annotations

import sample_reports

from guarantee_email_agent.runlog.records import Case
from guarantee_email_agent.runlog.suite_statistics import SuiteStatistics


def repeated(name: str, *passed: bool) -> Case:
    return Case(tuple(sample_reports.result(passed=each, name=name, repetition=n) for n, each in enumerate(passed, 1)))


def statistics(*cases: Case, deterministic: bool = False) -> SuiteStatistics:
    found = SuiteStatistics(deterministic=deterministic)
    for case in cases:
        found.add(case)
    return found


def test_runs_scenarios_that_passed_every_time_and_flaky_ones_are_counted() -> None:
    found = statistics(repeated("a", True, True, True), repeated("b", True, False, True), repeated("c", *[False] * 3))
    assert list(found.repetition_lines(99)) == [
        "Runs passed: 5/9 (55.6%); scenarios that passed every time (pass^3): 1/3 (33.3%)",
        "Flaky: 1: b (2 of 3)",
        "Repeats are no independent scenarios: the pass rate counts each once.",
    ]
    assert found.as_dict()["repeat"]["flaky"] == [{"scenario_id": "b", "passed": 2, "runs": 3}]


def test_without_repetitions_nothing_is_said_of_them() -> None:
    assert list(statistics(repeated("a", True)).repetition_lines(99)) == []


def test_deterministic_repeats_claim_no_reliability() -> None:
    lines = list(statistics(repeated("a", True, True), deterministic=True).repetition_lines(99))
    assert lines[-1].endswith("these repeats say nothing of reliability.")


def test_what_a_suite_shows_and_what_it_does_not() -> None:
    own, failed = (sample_reports.case(passed=passed, trace={"read": {}}) for passed in (True, False))
    assert statistics(own, own).conclusion() == (
        "2 of 2 scenarios pass. The agent was built on this suite, so this shows that nothing it guards has broken; "
        "it says nothing of how often new mail goes wrong."
    )
    assert statistics(own, failed).conclusion() == (
        "1 of 2 scenarios pass. "
        "The agent was built on this suite, so this says nothing of how often new mail goes wrong."
    )
    assert statistics(sample_reports.case()).conclusion() == (
        "1 of 1 scenario passes. If the agent was built on this suite, it says nothing of new cases."
    )
    assert statistics().conclusion() == "No scenario ran."


def test_each_group_has_its_count_with_its_rate() -> None:
    found = statistics(
        sample_reports.case(language="de"),
        sample_reports.case(passed=False),
        sample_reports.case(category="no-reply", language=""),
    )
    assert list(found.group_lines(99)) == [
        "By category:",
        "    no-reply        1/1 (100%)",
        "    valid-warranty  1/2 (50.0%)",
        "By language:",
        "    (not known)  1/1 (100%)",
        "    de           1/1 (100%)",
        "    en           0/1 (0.0%)",
    ]
