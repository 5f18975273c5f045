"""What an address may ask for."""

from __future__ import annotations

import pytest
from starlette.datastructures import QueryParams

from guarantee_email_agent.viewer.site import Query, QueryError


def test_values_are_read_and_missing_or_empty_ones_are_none() -> None:
    query = Query(QueryParams("text=a+b&number=12&choice=x&empty="))
    assert (query.text("text"), query.number("number")) == ("a b", 12)
    assert query.choice("choice", ("x", "y")) == "x"
    assert query.text("empty") is query.number("empty") is query.choice("none", ()) is None


@pytest.mark.parametrize("number", ["-1", "1.5", "x", "9" * 16, "١"])
def test_what_is_no_number(number: str) -> None:
    with pytest.raises(QueryError, match="is not a whole number"):
        Query(QueryParams({"n": number})).number("n")


def test_what_is_no_choice_and_what_is_too_long() -> None:
    with pytest.raises(QueryError, match=r"c='z\\x1b' in the address is not one of x, y"):
        Query(QueryParams({"c": "z\x1b"})).choice("c", ("x", "y"))
    with pytest.raises(QueryError, match="at most 200 characters"):
        Query(QueryParams({"t": "x" * 201})).text("t")
