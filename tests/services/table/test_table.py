"""What counts as the same number, and which columns are used."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from guarantee_email_agent.services.table.table import TableError, TableLayout, number_key, parse_key


def layout(optional: tuple[str, ...] | None) -> TableLayout[Mapping[str, str]]:
    return TableLayout("table", "orders", "id", "order number", ("id",), optional, dict)


@pytest.mark.parametrize("other", ["ab-1", "AB 1", "ＡＢ１", "ab_1", "a–b1"])
def test_two_ways_to_write_a_number_have_one_key(other: str) -> None:
    assert number_key(other) == number_key("AB1")


def test_a_letter_is_no_digit() -> None:
    assert number_key("ABO") != number_key("AB0")


def test_columns_that_nobody_asked_for_are_not_used() -> None:
    assert layout(("status",)).used(["note", "status", "id"]) == ["status", "id"]
    assert layout(None).used(["note", "", "id"]) == ["note", "id"]


def test_a_row_without_a_number_is_refused() -> None:
    with pytest.raises(TableError, match="id is empty"):
        parse_key(layout(None), {"id": " - "})
