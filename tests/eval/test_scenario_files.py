from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guarantee_email_agent.eval import scenario_files
from guarantee_email_agent.eval.scenario_files import ScenarioFiles


def in_byte_order(names: list[str]) -> list[str]:
    return [os.path.join("suite", name) for name in sorted(names, key=os.fsencode)]


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=8), unique=True))
def test_the_files_stand_in_the_byte_order_of_their_names(names: list[str]) -> None:
    files = ScenarioFiles("suite", names)
    expected = in_byte_order(names)
    assert list(files) == expected
    assert len(files) == len(names)
    assert [files[index] for index in range(len(files))] == expected
    assert files[1:3] == expected[1:3]
    assert list(ScenarioFiles.of(expected)) == expected
    assert [files.position(file) for file in expected] == list(range(1, len(names) + 1))


def test_more_names_than_are_sorted_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenario_files, "_SORTED_AT_ONCE", 3)
    names = [f"case_{number:03}.yaml" for number in range(17)]
    assert list(ScenarioFiles("suite", reversed(names))) == in_byte_order(names)


def test_a_name_that_is_no_text() -> None:
    name = os.fsdecode(b"case_\xff.yaml")
    files = ScenarioFiles("suite", [name, "case_a.yaml"])
    assert files[-1] == os.path.join("suite", name)
    assert files.position(files[-1]) == 2


@pytest.mark.parametrize("file", ["suite/b.yaml", "other/a.yaml", "", "suite/a.yaml/"])
def test_a_file_of_another_place_has_no_position(file: str) -> None:
    assert ScenarioFiles("suite", ["a.yaml", "c.yaml"]).position(file) == 0


@pytest.mark.parametrize("index", [2, -3])
def test_an_index_beyond_the_files(index: int) -> None:
    with pytest.raises(IndexError):
        ScenarioFiles("suite", ["a.yaml", "c.yaml"])[index]


def test_no_files() -> None:
    files = ScenarioFiles.of([])
    assert not files
    assert list(files) == []
    assert files.position("suite/a.yaml") == 0


def test_a_file_is_found_by_its_name_whatever_its_ending() -> None:
    files = ScenarioFiles("s", ["a.yaml", "a.b.yml", "a_1.YAML", "b.yml"])
    assert [files[files.position_of_name(name) - 1] for name in ("a", "a.b", "a_1", "b")] == [
        "s/a.yaml",
        "s/a.b.yml",
        "s/a_1.YAML",
        "s/b.yml",
    ]
    assert [files.position_of_name(name) for name in ("a_", "", "c", "a.yaml")] == [0, 0, 0, 0]
