"""Addresses, and how values are written on pages."""

from pathlib import Path

import pytest
from starlette.datastructures import QueryParams

from guarantee_email_agent.viewer.pages import Query, QueryError, Site, result_url, with_query


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path / "runs.db")


def test_names_of_any_kind_make_an_address_of_this_site() -> None:
    assert result_url("r1", "a/b?c#d&e") == "/runs/r1/results/a%2Fb%3Fc%23d%26e"
    assert result_url("r1", "a", 2) == "/runs/r1/results/a#repetition-2"
    assert result_url("r1", "\ud800") == "/runs/r1/results/%5Cud800"
    assert result_url("r1", "//evil.example") == "/runs/r1/results/%2F%2Fevil.example"
    assert with_query("/", command=None, suite="a b&c") == "/?suite=a+b%26c"


def test_changed_words_are_marked_and_nothing_else_is_markup(site: Site) -> None:
    line = "a [-<b>-] {+&+} [-unclosed"
    assert site.environment.filters["changes"](line) == "a <del>&lt;b&gt;</del> <ins>&amp;</ins> [-unclosed"


def test_a_page_of_lone_surrogates_is_written_all_the_same(site: Site) -> None:
    page = site.page("error.html.jinja", 404, title="\ud800", message="\ud800")
    assert b"\\ud800" in bytes(page.body)


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
