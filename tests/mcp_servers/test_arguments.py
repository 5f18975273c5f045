from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guarantee_email_agent.mcp_servers.arguments import ArgumentError, ObjectSchema

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 2, "maxLength": 5},
        "kind": {"type": "string", "enum": ["a", "b"]},
        "count": {"type": "integer", "minimum": 1, "maximum": 9, "default": 3},
        "seconds": {"type": "number"},
        "wanted": {"type": "boolean"},
        "headers": {"type": "object", "additionalProperties": {"type": "string", "maxLength": 3}},
        "word": {"type": "string", "pattern": "^[a-z]+$"},
    },
    "required": ["name"],
}


def check(**arguments: Any) -> dict[str, Any]:
    return ObjectSchema(SCHEMA).check(arguments)


def refusal(**arguments: Any) -> str:
    with pytest.raises(ArgumentError) as caught:
        check(**arguments)
    return str(caught.value)


def test_defaults_are_filled_in() -> None:
    assert check(name="abc") == {"name": "abc", "count": 3}


def test_every_type_passes() -> None:
    given = {
        "name": "ab",
        "kind": "b",
        "count": 9,
        "seconds": 1.5,
        "wanted": True,
        "headers": {"X-A": "1"},
        "word": "w",
    }
    assert check(**given) == given


def test_an_integer_is_a_number() -> None:
    assert check(name="ab", seconds=2)["seconds"] == 2


def test_a_missing_argument_is_named() -> None:
    assert refusal() == "the argument 'name' is missing"


def test_an_unknown_argument_is_named_with_the_known_ones() -> None:
    told = refusal(name="ab", nmae="x")
    assert told == "unknown argument 'nmae'; its arguments are name, kind, count, seconds, wanted, headers, word"


@pytest.mark.parametrize(
    ("argument", "value", "told"),
    [
        ("name", 1, "'name' must be a string, and is an integer"),
        ("name", None, "'name' must be a string, and is null"),
        ("name", "a", "'name' is too short: 1 of at least 2 characters"),
        ("name", "abcdef", "'name' is too long: 6 of at most 5 characters"),
        ("name", "ab\ud800", "'name' holds a lone surrogate, which is no character"),
        ("kind", "c", "'kind' must be one of a, b"),
        ("count", True, "'count' must be an integer, and is a boolean"),
        ("count", 2.0, "'count' must be an integer, and is a number"),
        ("count", "2", "'count' must be an integer, and is a string"),
        ("count", 0, "'count' must be at least 1, and is 0"),
        ("count", 10, "'count' must be at most 9, and is 10"),
        ("seconds", math.nan, "'seconds' must be a number, and is no finite number"),
        ("wanted", 1, "'wanted' must be a boolean, and is an integer"),
        ("headers", [], "'headers' must be an object, and is an array"),
        ("headers", {"X-A": 1}, "'headers'['X-A'] must be a string, and is an integer"),
        ("headers", {"X-A": "long"}, "'headers'['X-A'] is too long: 4 of at most 3 characters"),
        ("word", "a b", "'word' is not of the form ^[a-z]+$"),
    ],
)
def test_a_wrong_value_is_told_in_one_line(argument: str, value: Any, told: str) -> None:
    assert refusal(**{"name": "ab", argument: value}) == told


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string"},
        {"type": "object", "properties": {"a": {"type": "array"}}},
        {"type": "object", "properties": {"a": {}}},
        {"type": "object", "properties": {"a": {"type": "string", "contentEncoding": "base64"}}},
        {"type": "object", "anyOf": []},
    ],
)
def test_a_schema_that_would_go_unchecked_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="schema"):
        ObjectSchema(schema)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from([*SCHEMA["properties"], "other"]) | st.text(), JSON))
def test_whatever_comes_is_checked_or_refused_in_one_line(arguments: dict[str, Any]) -> None:
    try:
        checked = ObjectSchema(SCHEMA).check(arguments)
    except ArgumentError as error:
        assert "\n" not in str(error)  # noqa: PT017 - either outcome is right
    else:
        assert checked.keys() >= arguments.keys()
