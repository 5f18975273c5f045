from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guarantee_email_agent.eval.loader import names_twice, path_order, position_in


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8), unique=True))
def test_each_file_has_its_position_in_the_byte_order(files: list[str]) -> None:
    files = sorted([*files, os.fsdecode(b"case_\xff.yaml")], key=path_order)
    assert [position_in(files, file) for file in files] == list(range(1, len(files) + 1))


@pytest.mark.parametrize("file", ["suite/b.yaml", "other/a.yaml", "", "suite/a.yaml/", None])
def test_a_file_of_another_place_has_no_position(file: str | None) -> None:
    assert position_in(["suite/a.yaml", "suite/c.yaml"], file) == 0


def test_a_name_in_two_folders() -> None:
    assert names_twice(["s/a.b.yml", "s/a.yaml", "s/a_1.YAML", "s/sub/a.yml"]) == {"a"}
