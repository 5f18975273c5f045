"""What is watched, and what counts as a change."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from guarantee_email_agent.config.settings import Config, InstructionSettings
from guarantee_email_agent.eval.options import EvalOptions
from guarantee_email_agent.eval.watch.watched_files import (
    LOOK_S,
    SETTLE_S,
    Files,
    ProgramFiles,
    Watch,
    WatchedFile,
    changed_files,
    find_files,
)


@pytest.fixture
def find(tmp_path: Path) -> Callable[[], Files]:
    """What stands in a small project."""
    for name in ("instructions/scenarios", "instructions/lexicon", "scenarios", "recordings/valid_warranty_001"):
        (tmp_path / name).mkdir(parents=True)
    for name in (
        "config.yaml",
        "instructions/main.md",
        "instructions/scenarios/valid-warranty.md",
        "instructions/lexicon/en.md",
        "scenarios/valid_warranty_001.yaml",
        "scenarios/valid_warranty_001.eml",
        "scenarios/check.py",
        "scenarios/notes.txt",
        "scenarios/.valid_warranty_001.yaml.swp",
        "scenarios/_template.yaml",
        "recordings/valid_warranty_001/run1.yaml",
    ):
        (tmp_path / name).write_text("before")
    instructions = InstructionSettings(tmp_path / "instructions" / "main.md", tmp_path / "instructions" / "scenarios")
    config = replace(Config(), source=tmp_path / "config.yaml", instructions=instructions)
    options = EvalOptions(directory=tmp_path / "scenarios", threshold=99.0, llm="replay")
    return lambda: find_files(config, options)


def test_what_verdicts_depend_on_is_watched_and_nothing_else(find: Callable[[], Files]) -> None:
    assert {(file.kind, file.name) for file in find().values()} == {
        ("configuration", "config.yaml"),
        ("instruction", "main.md"),
        ("instruction", "scenarios/valid-warranty.md"),
        ("lexicon", "en.md"),
        ("scenario", "valid_warranty_001.yaml"),
        ("mail", "valid_warranty_001.eml"),
        ("judge", "check.py"),
        ("recording", "valid_warranty_001"),
    }


def test_a_replaced_a_removed_and_a_new_file_are_changes(find: Callable[[], Files], tmp_path: Path) -> None:
    before = find()
    scenario = tmp_path / "scenarios" / "valid_warranty_001.yaml"
    (tmp_path / "scenarios" / "new.tmp").write_text("before")
    os.replace(tmp_path / "scenarios" / "new.tmp", scenario)  # as editors save: the same text in another file
    (tmp_path / "scenarios" / "check.py").unlink()
    (tmp_path / "instructions" / "lexicon" / "de.md").write_text("new")
    changed = changed_files(before, find())
    assert sorted(file.name for file in changed.values()) == ["check.py", "de.md", "valid_warranty_001.yaml"]


def test_rights_and_the_file_that_a_link_leads_to_are_changes(find: Callable[[], Files], tmp_path: Path) -> None:
    scenario = tmp_path / "scenarios" / "valid_warranty_001.yaml"
    elsewhere = tmp_path / "elsewhere.yaml"
    scenario.rename(elsewhere)
    scenario.symlink_to(elsewhere)
    before = find()
    elsewhere.chmod(0)
    now = find()
    assert list(changed_files(before, now)) == [str(scenario)]
    elsewhere.chmod(0o600)
    elsewhere.write_text("after, through the link")
    assert list(changed_files(now, find())) == [str(scenario)]


def test_a_configuration_that_comes_later_is_a_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    options = EvalOptions(directory=tmp_path / "scenarios", threshold=99.0)
    before = find_files(Config(), options)
    (tmp_path / "config.yaml").write_text("{}")
    assert list(changed_files(before, find_files(Config(), options))) == [str(tmp_path / "config.yaml")]


class Moments:
    """States of the files, one for each look, and how long was waited between them."""

    def __init__(self, *versions: int) -> None:
        self._versions: Iterator[int] = iter(versions)
        self.paused: list[float] = []
        self.told: list[list[str]] = []

    def find(self) -> Files:
        return state(next(self._versions))

    def watch(self, program: Path, over_after: int = 1_000, step_s: float = 0.0) -> Watch:
        looks, seconds = count(), count()
        return Watch(
            ProgramFiles(program),
            self.told.append,
            lambda: next(looks) >= over_after,
            self.paused.append,
            lambda: next(seconds) * step_s,
        )


def state(version: int) -> Files:
    return {"a.yaml": WatchedFile("scenario", "a.yaml", ("a.yaml", version, 0, 0, 0))}


def test_a_change_counts_once_nothing_changes_any_more(tmp_path: Path) -> None:
    moments = Moments(1, 1, 2, 3, 4, 4)
    assert moments.watch(tmp_path).wait(state(1), moments.find) == state(4)
    assert moments.paused == [LOOK_S, LOOK_S, SETTLE_S, SETTLE_S]


def test_a_file_that_is_written_all_the_time_does_not_hold_it_up(tmp_path: Path) -> None:
    moments = Moments(*range(1, 100))
    assert moments.watch(tmp_path, step_s=0.3).wait(state(0), moments.find) is not None


def test_what_is_undone_at_once_is_no_change(tmp_path: Path) -> None:
    moments = Moments(2, 1, 1, 1, 1)
    assert moments.watch(tmp_path, over_after=2).wait(state(1), moments.find) is None


def test_the_longer_a_look_takes_the_longer_it_waits(tmp_path: Path) -> None:
    moments = Moments(1, 1)
    moments.watch(tmp_path, over_after=1, step_s=0.2).wait(state(1), moments.find)
    assert moments.paused[0] > 1


def test_a_change_of_the_program_itself_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "eval").mkdir()
    (tmp_path / "eval" / "checks.py").write_text("before = 1\n")
    moments = Moments(*[1] * 9)
    watch = moments.watch(tmp_path, over_after=3, step_s=1.0)
    (tmp_path / "eval" / "checks.py").write_text("after = 22\n")
    (tmp_path / "notes.txt").write_text("no code")
    watch.wait(state(1), moments.find)
    assert moments.told == [["eval/checks.py"]]
