from __future__ import annotations

from pathlib import Path

import pytest

from guarantee_email_agent.eval.loader import select_scenarios
from guarantee_email_agent.utils.errors import EvalError

NAMES = ("hand_over_001", "hand_over_002", "missing_info_001", "valid_warranty_001")


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    paths = [tmp_path / f"{name}.yaml" for name in NAMES]
    for path in paths:
        path.touch()
    return [str(path) for path in paths]


def selected(files: list[str], *patterns: str) -> list[str]:
    return [Path(file).stem for file in select_scenarios(files, patterns, Path(files[0]).parent)]


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("hand_over_001", ["hand_over_001"]),
        ("hand_over_001.yaml", ["hand_over_001"]),
        ("*_001", ["hand_over_001", "missing_info_001", "valid_warranty_001"]),
        ("hand_over_00[2-9].yaml", ["hand_over_002"]),
        ("hand-over", ["hand_over_001", "hand_over_002"]),
        ("*-warranty", ["valid_warranty_001"]),
        ("*", list(NAMES)),
    ],
)
def test_an_id_a_file_name_or_a_category(files: list[str], pattern: str, names: list[str]) -> None:
    assert selected(files, pattern) == names


def test_several_patterns_keep_the_order_of_the_suite_and_take_nothing_twice(files: list[str]) -> None:
    assert selected(files, "valid-warranty", "hand_over_001", "*_001") == [
        "hand_over_001",
        "missing_info_001",
        "valid_warranty_001",
    ]


@pytest.mark.parametrize("path", ["{}/missing_info_001.yaml", "{}/miss*.yaml", "{}/../scenarios/missing_info_001.yaml"])
def test_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    folder = tmp_path / "scenarios"
    folder.mkdir()
    file = folder / "missing_info_001.yaml"
    file.touch()
    monkeypatch.chdir(tmp_path)
    assert selected([str(file)], path.format(folder)) == ["missing_info_001"]
    assert selected([str(file)], path.format("scenarios")) == ["missing_info_001"]


@pytest.mark.parametrize(
    ("pattern", "remedy"),
    [
        ("valid_warrenty_001", "– did you mean 'valid_warranty_001'?"),
        ("valid_warrenty_001.yaml", "– did you mean 'valid_warranty_001'?"),
        ("hand-ovr", "– did you mean 'hand-over'?"),
        ("xyz", "lists what there is"),
    ],
)
def test_a_pattern_that_matches_nothing_is_told_with_what_is_near(files: list[str], pattern: str, remedy: str) -> None:
    with pytest.raises(EvalError) as caught:
        selected(files, "hand-over", pattern)
    error = caught.value
    assert (error.code, error.exit_code) == ("eval_nothing_selected", 2)
    assert error.message.startswith(f"--only {pattern} matches none of the 4 scenarios in ")
    assert error.message.endswith(remedy)


def test_a_file_of_another_folder_is_told_apart(files: list[str], tmp_path: Path) -> None:
    other = tmp_path / "other" / "hand_over_001.yaml"
    other.parent.mkdir()
    other.touch()
    with pytest.raises(EvalError, match=r"it is no scenario file of .* Name its folder with --eval-dir"):
        selected(files, str(other))


def test_a_word_without_a_folder_selects_by_no_folder(files: list[str]) -> None:
    folder = Path(files[0]).parent.name
    with pytest.raises(EvalError):
        selected(files, f"*{folder}*")
