"""Long outputs in files beside the record: whole, bounded, and never through a link."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from guarantee_email_agent.solving.run_recorder import OutputFiles

LONG = "ä" * 40_000


@pytest.fixture
def outputs(tmp_path: Path) -> OutputFiles:
    return OutputFiles(tmp_path / "sum.json")


def test_an_output_is_whole_in_the_file_that_is_named(outputs: OutputFiles, tmp_path: Path) -> None:
    assert outputs.keep(7, LONG) == {"output_file": "sum.outputs/0007.txt", "output_characters": 40_000}
    assert (tmp_path / "sum.outputs" / "0007.txt").read_text(encoding="utf-8") == LONG


def test_nothing_is_made_where_nothing_is_kept(outputs: OutputFiles, tmp_path: Path) -> None:
    outputs.remove()
    assert list(tmp_path.iterdir()) == []


def test_half_a_character_is_written_as_its_escape(outputs: OutputFiles, tmp_path: Path) -> None:
    outputs.keep(1, "a\udc80b")
    assert (tmp_path / "sum.outputs" / "0001.txt").read_text() == "a\\udc80b"


def test_the_outputs_of_a_run_have_a_limit_together(tmp_path: Path) -> None:
    outputs = OutputFiles(tmp_path / "sum.json", max_bytes=100_000)
    assert outputs.keep(1, LONG)["output_file"] is not None
    lost = outputs.keep(2, LONG)
    assert (lost["output_file"], lost["output_characters"]) == (None, 40_000)
    assert lost["output_lost"] == "the outputs of this run take more than 100,000 bytes"
    assert outputs.keep(3, "x" * 20_000)["output_file"] == "sum.outputs/0003.txt"
    assert sorted(path.name for path in (tmp_path / "sum.outputs").iterdir()) == ["0001.txt", "0003.txt"]


def test_those_of_an_earlier_run_are_removed(outputs: OutputFiles, tmp_path: Path) -> None:
    outputs.keep(1, LONG)
    outputs.keep(2, LONG)
    OutputFiles(tmp_path / "sum.json").remove()
    assert not (tmp_path / "sum.outputs").exists()


def test_what_is_not_of_a_run_stays(outputs: OutputFiles, tmp_path: Path) -> None:
    folder = tmp_path / "sum.outputs"  # a task may have this name, where records lie among the tasks
    (folder / "assets").mkdir(parents=True)
    (folder / "test.py").write_text("mine")
    outputs.keep(1, LONG)
    outputs.remove()
    assert sorted(path.name for path in folder.iterdir()) == ["assets", "test.py"]


def test_a_file_in_the_place_of_the_folder_stays(outputs: OutputFiles, tmp_path: Path) -> None:
    (tmp_path / "sum.outputs").write_text("mine")
    outputs.remove()
    assert outputs.keep(1, LONG)["output_lost"] == "it cannot be written (Not a directory)"
    assert (tmp_path / "sum.outputs").read_text() == "mine"


def test_a_link_in_the_place_of_the_folder_is_not_followed(outputs: OutputFiles, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "mine.txt").write_text("mine")
    folder = tmp_path / "sum.outputs"
    folder.symlink_to(elsewhere)
    lost = outputs.keep(1, LONG)
    assert (lost["output_file"], lost["output_lost"]) == (None, "it cannot be written (Not a directory)")
    outputs.remove()
    assert not folder.is_symlink()
    assert outputs.keep(1, LONG)["output_file"] is not None
    assert [path.name for path in elsewhere.iterdir()] == ["mine.txt"]


def test_a_link_in_the_place_of_a_file_is_not_followed(outputs: OutputFiles, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    (tmp_path / "sum.outputs").mkdir()
    (tmp_path / "sum.outputs" / "0001.txt").symlink_to(tmp_path / "mine.txt")
    assert outputs.keep(1, LONG)["output_file"] is None
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_links_in_the_folder_are_removed_and_not_what_they_lead_to(outputs: OutputFiles, tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").touch()
    (tmp_path / "sum.outputs").mkdir()
    (tmp_path / "sum.outputs" / "0001.txt").symlink_to(tmp_path / "kept")
    outputs.remove()
    assert not (tmp_path / "sum.outputs").exists()
    assert (tmp_path / "kept" / "file").exists()


def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(outputs: OutputFiles, tmp_path: Path) -> None:
    (tmp_path / "sum.outputs").mkdir()
    os.mkfifo(tmp_path / "sum.outputs" / "0001.txt")
    assert outputs.keep(1, LONG)["output_lost"] == "it cannot be written (File exists)"


def test_a_name_that_is_too_long_costs_the_output_alone(tmp_path: Path) -> None:
    lost = OutputFiles(tmp_path / f"{'x' * 250}.json").keep(1, LONG)
    assert lost["output_lost"] == "it cannot be written (File name too long)"
