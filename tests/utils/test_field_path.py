from typing import Any

import pytest

from guarantee_email_agent.utils.field_path import (
    MISSING,
    ONLY,
    FieldPathError,
    json_or_missing,
    parse_field_path,
    put_at,
    value_at,
)


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        (".", ()),
        ("state", ("state",)),
        ("data.rows[0].state", ("data", "rows", 0, "state")),
        ("[only].id", (ONLY, "id")),
        ("[0][1]", (0, 1)),
        ('a["x.y"].z', ("a", "x.y", "z")),
        ("Gültig bis.am Tag", ("Gültig bis", "am Tag")),
    ],
)
def test_path_is_its_steps(text: str, steps: tuple[object, ...]) -> None:
    assert parse_field_path(text) == steps


@pytest.mark.parametrize(
    "text", ["", "a.", ".a", "a..b", "[x]", "[-1]", "a[999]", "[0]a", 'a"b', ".".join("abcdefghijklm")]
)
def test_what_is_no_path_is_refused(text: str) -> None:
    with pytest.raises(FieldPathError):
        parse_field_path(text)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("rows[only].state", "active"),
        ("rows[0].ends", None),
        ("rows[1].state", MISSING),
        ("rows.state", MISSING),
        ("none[only]", MISSING),
        ("text.deep[0]", 1),
        ("rows[0].state.more", MISSING),
    ],
)
def test_value_stands_where_the_path_leads(path: str, value: object) -> None:
    content = {"rows": [{"state": "active", "ends": None}], "none": [], "text": '{"deep": [1]}'}
    assert value_at(content, parse_field_path(path)) == value


def test_several_items_are_not_the_only_one() -> None:
    with pytest.raises(FieldPathError, match="several"):
        value_at({"rows": [1, 2]}, parse_field_path("rows[only]"))


@pytest.mark.parametrize("text", ["NaN", '{"a": Infinity}', "[" * 100_000, "9" * 5000, "prose", ""])
def test_text_that_is_no_json_is_missing(text: str) -> None:
    assert json_or_missing(text) is MISSING


def test_values_are_put_where_paths_lead() -> None:
    built: dict[str, Any] = {}
    for path, value in (("filter.serials[0]", "SN-1"), ("filter.exact", True), ("filter.serials[1].x", 2)):
        put_at(built, parse_field_path(path), value)
    assert built == {"filter": {"serials": ["SN-1", {"x": 2}], "exact": True}}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (["a"], "a"),
        (["a"], "a.b"),
        (["a.b"], "a"),
        ([], "a[1]"),
        (["a[0]"], "a[0]"),
        ([], "[0]"),
        ([], "a[only]"),
        ([], "."),
    ],
)
def test_paths_that_collide_are_refused(first: list[str], second: str) -> None:
    built: dict[str, Any] = {}
    for path in first:
        put_at(built, parse_field_path(path), 1)
    with pytest.raises(FieldPathError):
        put_at(built, parse_field_path(second), 1)
