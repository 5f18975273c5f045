"""How scenarios name the arguments of calls."""

from __future__ import annotations

from typing import Any

import pytest

from guarantee_email_agent.eval.argument_matchers import find_matcher_problems, has_arguments


@pytest.mark.parametrize(
    ("actual", "wanted", "same"),
    [
        ({"n": 1}, {}, True),
        ({"n": 1, "m": 2}, {"n": 1}, True),
        ({"n": 1}, {"n": 1.0}, True),
        ({"n": 1}, {"n": True}, False),
        ({"n": True}, {"n": True}, True),
        ({"n": "1"}, {"n": 1}, False),
        ({}, {"n": None}, False),
        ({"n": None}, {"n": None}, True),
        ({"n": {"a": [1]}}, {"n": {"a": [1]}}, True),
        ({"n": "a late parcel"}, {"n": {"contains": "late"}}, True),
        ({"n": "a Late parcel"}, {"n": {"contains": "late"}}, False),
        ({"n": ["late"]}, {"n": {"contains": "late"}}, False),
        ({"n": "AB-12"}, {"n": {"matches": r"^AB-\d+$"}}, True),
        ({"n": "AB-12x"}, {"n": {"matches": r"^AB-\d+$"}}, False),
        ({"n": None}, {"n": {"any": True}}, True),
        ({}, {"n": {"any": True}}, False),
        ({"n": 10.4}, {"n": {"number": 10, "within": 0.5}}, True),
        ({"n": 10.6}, {"n": {"number": 10, "within": 0.5}}, False),
        ({"n": "10"}, {"n": {"number": 10}}, False),
        ({"n": True}, {"n": {"number": 1}}, False),
        ({"n": "SELECT  a,b\nFROM t WHERE c='X y';"}, {"n": {"sql": "select a, b from T where c = 'X y'"}}, True),
        ({"n": "select a from t where c='x y'"}, {"n": {"sql": "select a from t where c='X y'"}}, False),
        ({"n": {"contains": "x"}}, {"n": {"equals": {"contains": "x"}}}, True),
        ({"n": "x"}, {"n": {"equals": {"contains": "x"}}}, False),
        ({"n": {"number": 1, "street": "A"}}, {"n": {"number": 1, "street": "A"}}, True),
    ],
)
def test_arguments(actual: dict[str, Any], wanted: dict[str, Any], same: bool) -> None:
    assert has_arguments(actual, wanted) is same


@pytest.mark.parametrize(
    ("value", "wrong"),
    [
        ({"contains": 5}, "must be text"),
        ({"sql": ""}, "must be text"),
        ({"any": False}, "must be true"),
        ({"number": "5"}, "must be a number"),
        ({"number": 5, "within": -1}, "one that is not negative"),
        ({"matches": "("}, "is no regular expression"),
        ({"equals": {"matches": "("}}, None),
        ({"matches": "(", "street": "A"}, None),
    ],
)
def test_what_is_wrong_with_one(value: dict[str, object], wrong: str | None) -> None:
    problems = list(find_matcher_problems({"n": value}, ("when",)))
    assert [problem.path[:2] for problem in problems] == ([] if wrong is None else [("when", "n")])
    assert all(wrong in problem.message for problem in problems if wrong)
