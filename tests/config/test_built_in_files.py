from pathlib import Path

import pytest

from guarantee_email_agent.config.built_in_files import fill_starter_folder
from guarantee_email_agent.utils.errors import ConfigurationError

ROOT = Path(__file__).parents[2]


def test_config_instructions_and_scenarios_are_copied_as_they_are(tmp_path: Path) -> None:
    filled = fill_starter_folder(tmp_path / "new" / "folder")
    copied = {path.relative_to(tmp_path / "new" / "folder") for path in (tmp_path / "new").rglob("*") if path.is_file()}
    assert copied == set(filled.written)
    assert {Path("config.yaml"), Path("instructions/main.md"), Path("evals/scenarios/_template.yaml")} <= copied
    assert all((tmp_path / "new" / "folder" / name).read_bytes() == (ROOT / name).read_bytes() for name in copied)


def test_a_second_call_adds_only_what_is_missing(tmp_path: Path) -> None:
    first = fill_starter_folder(tmp_path)
    (tmp_path / "instructions" / "main.md").unlink()
    second = fill_starter_folder(tmp_path)
    assert second.written == (Path("instructions/main.md"),)
    assert len(second.same) == len(first.written) - 1


def test_a_scenario_that_lies_elsewhere_is_not_written_twice(tmp_path: Path) -> None:
    suite = tmp_path / "evals" / "scenarios"
    suite.mkdir(parents=True)
    shipped = ROOT / "evals" / "scenarios" / "numbers" / "missing_info_002.yaml"
    (suite / "missing_info_002.yaml").write_bytes(shipped.read_bytes())
    (suite / "own").mkdir()
    (suite / "own" / "missing_info_010.yaml").write_text("ours: true\n")
    filled = fill_starter_folder(tmp_path)
    assert Path("evals/scenarios/missing_info_002.yaml") in filled.same
    assert filled.different == (Path("evals/scenarios/own/missing_info_010.yaml"),)
    assert len(list(suite.rglob("missing_info_002.yaml"))) == 1


def test_a_translation_that_is_there_stays_beside_a_reply_of_the_owners_own(tmp_path: Path) -> None:
    fill_starter_folder(tmp_path)
    scenarios = tmp_path / "instructions" / "scenarios"
    (scenarios / "missing-info.md").write_text("our own words")
    (scenarios / "missing-info.pl.md").write_text("i po polsku")
    filled = fill_starter_folder(tmp_path)
    assert filled.left_out == ()
    assert [path.name for path in filled.different] == ["missing-info.md", "missing-info.pl.md"]


def test_whatever_stands_in_a_files_place_stays(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").symlink_to("nowhere")
    (tmp_path / "instructions" / "main.md").mkdir(parents=True)
    filled = fill_starter_folder(tmp_path)
    assert filled.different == (Path("config.yaml"), Path("instructions/main.md"))
    assert (tmp_path / "config.yaml").is_symlink()


def test_a_folder_that_cannot_be_written_to_is_told() -> None:
    with pytest.raises(ConfigurationError, match=r"config.yaml cannot be written \([^)]+\)"):
        fill_starter_folder(Path("/proc"))


def test_a_link_to_a_folder_is_filled(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    fill_starter_folder(tmp_path / "link")
    assert (tmp_path / "real" / "config.yaml").is_file()
