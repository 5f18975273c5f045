"""Repetitions, counts by category and language, the gate, and which mails the agent answers or leaves."""

from collections.abc import Sequence
from typing import Any

import pytest
import sample_reports

from guarantee_email_agent.runlog.records import Case
from guarantee_email_agent.runlog.suite_statistics import GateDecision, Selectivity, SuiteStatistics, handling_of


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


def decide(passed: int, failed: int = 0, must_failed: Sequence[str] = (), **rules: Any) -> GateDecision:
    statistics = SuiteStatistics(deterministic=True)
    statistics.totals.passed, statistics.totals.failed = passed, failed
    statistics.must_failed += must_failed
    return statistics.decide_gate(99.0, **{"require_proof": False} | rules)


@pytest.mark.parametrize(
    ("decision", "expected"),
    [
        (decide(2), ("passed", "≥99% threshold")),
        (decide(1, 1), ("failed", "<99% threshold")),
        (decide(0), ("failed", "<99% threshold")),
        (decide(99, 1, must_failed=["a"]), ("failed", "1 scenario that must pass failed")),
        (decide(1, 2, must_failed=["a", "b"]), ("failed", "<99% threshold; 2 scenarios that must pass failed")),
        (
            decide(299, require_proof=True),
            ("inconclusive", "a suite that the agent was built on proves no rate on new mail"),
        ),
        (decide(1, 1, require_proof=True), ("failed", "<99% threshold")),
        (decide(99, regressions=["a", "b"]), ("failed", "2 regressions since the baseline")),
        (decide(99, regressions=["a"], require_proof=True), ("failed", "1 regression since the baseline")),
        (decide(99, 1, fail_fast=True), ("failed", "stopped at a failure")),
        (
            decide(99, 1, fail_fast=True, planned=120),
            ("failed", "stopped at the first failure, 100 of 120 scenarios ran"),
        ),
        (decide(99, fail_fast=True), ("passed", "≥99% threshold")),
    ],
)
def test_the_gate_and_why(decision: GateDecision, expected: tuple[str, str]) -> None:
    assert decision == expected
    assert decision.passes == (expected[0] == "passed")


def case(
    used: str | None = "valid-warranty",
    *harm: str,
    passed: bool = True,
    doubt: int | None = None,
    is_ours: bool = True,
    **actual: Any,
) -> Case:
    """Of our agent, or of another."""
    measured = {} if doubt is None else {"doubt": doubt}
    response = {"email_sent": used is not None, "scenario_used": used, **measured, **actual}
    trace = {"read": {} if is_ours else None}
    return sample_reports.case(passed=passed and not harm, harm=harm, response=response, trace=trace)


def counted(*cases: Case) -> Selectivity:
    selectivity = Selectivity()
    for each in cases:
        selectivity.add(each)
    return selectivity


@pytest.mark.parametrize(
    ("actual", "handling"),
    [
        ({"email_sent": True, "scenario_used": "valid-warranty"}, "answered"),
        ({"email_sent": True, "scenario_used": "out-of-scope", "hand_over_reasons": ["fire"]}, "answered"),
        ({"email_sent": True, "scenario_used": "missing-info"}, "asked_back"),
        ({"email_sent": True, "scenario_used": "graceful-degradation"}, "asked_back"),
        ({"email_sent": False, "scenario_used": "hand-over", "hand_over_reasons": ["fire"]}, "to_a_person"),
        ({"email_sent": False, "scenario_used": "missing-info", "draft_stored": True}, "to_a_person"),
        ({"email_sent": False, "scenario_used": "no-reply"}, "not_answered"),
        ({"email_sent": False, "scenario_used": "valid-warranty", "failed_step": "send"}, "stopped"),
    ],
)
def test_what_became_of_a_mail(actual: dict[str, Any], handling: str) -> None:
    assert handling_of(actual) == handling


def test_each_is_counted_once() -> None:
    found = counted(
        case(),
        case(passed=False),
        case("missing-info"),
        case(None, hand_over_reasons=["fire"]),
        case("out-of-scope", "a machine was answered"),
    )
    assert found.as_dict() == {
        "mails": 5,
        "answered": 3,
        "right": 1,
        "to_a_person": 1,
        "asked_back": 1,
        "not_answered": 0,
        "stopped": 0,
    }
    assert found.harmful == 1
    assert list(found.lines()) == [
        "Answered: 3 of 5 mails, 1 of them rightly",
        "To a person: 1; asked back: 1",
        "Harmful: 1",
    ]
    assert dict(found.facts()).items() >= {("Asked back", "1"), ("Harmful", "1")}


def test_of_other_agents_the_harm_alone_is_counted() -> None:
    invalid = sample_reports.case(verdict="invalid", response=None)
    found = counted(case("a", "a mail for a person was answered", is_ours=False), case(is_ours=False), invalid)
    assert (found.as_dict(), list(found.lines())) == ({}, ["Harmful: 1"])


def test_harm_that_nobody_looked_for_makes_the_count_unknown() -> None:
    unknown = sample_reports.case(passed=False, harm=None)
    for cases in ((unknown, case("a", "a machine was answered")), (case(), unknown, case())):
        assert (counted(*cases).harmful, dict(counted(*cases).facts())["Harmful"]) == (None, "not known")


def test_the_curve_hands_over_what_is_in_doubt() -> None:
    found = counted(
        case(),
        case(doubt=0),
        case(doubt=40),
        case(passed=False, doubt=41),
        case("out-of-scope", "a fault was called out of scope", doubt=70),
        case("missing-info", "a mail for a person was answered", doubt=100),
        case(None, doubt=100, hand_over_reasons=["fire"]),
    )
    assert [line.rstrip() for line in found.curve_lines()] == [
        "Caution Answered              Right                 Harmful answers",
        "0       5 of 7 (71.4%)        3 of 5 (60.0%)        2",
        "10      5 of 7 (71.4%)        3 of 5 (60.0%)        1",
        "20      5 of 7 (71.4%)        3 of 5 (60.0%)        1",
        "30      5 of 7 (71.4%)        3 of 5 (60.0%)        1",
        "40      4 of 7 (57.1%)        3 of 4 (75.0%)        0",
        "50      4 of 7 (57.1%)        3 of 4 (75.0%)        0",
        "60      3 of 7 (42.9%)        3 of 3 (100%)         0",
        "70      2 of 7 (28.6%)        2 of 2 (100%)         0",
        "80      2 of 7 (28.6%)        2 of 2 (100%)         0",
        "90      2 of 7 (28.6%)        2 of 2 (100%)         0",
        "100     2 of 7 (28.6%)        2 of 2 (100%)         0",
    ]


def test_a_curve_of_no_measured_doubt_says_so() -> None:
    *_, row, last = counted(case()).curve_lines()
    assert row.startswith("100     1 of 1 (100%)")
    assert last == "No doubt was measured, so that every caution comes to the same."
