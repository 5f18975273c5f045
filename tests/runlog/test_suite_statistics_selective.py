"""Which mails the agent answers, which it leaves, and what caution would change."""

from __future__ import annotations

from typing import Any

import pytest
import sample_reports

from guarantee_email_agent.runlog.records import Case
from guarantee_email_agent.runlog.suite_statistics import Selectivity, handling_of


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
