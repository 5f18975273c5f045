"""What is watched, and what counts as a change."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from guarantee_email_agent.config.settings import Config, InstructionSettings
from guarantee_email_agent.eval.execution import EvalOptions
from guarantee_email_agent.eval.models import EvalResult, EvalTestCase, InvalidScenario
from guarantee_email_agent.eval.watch import (
    LOOK_S,
    SETTLE_S,
    Files,
    WatchedFile,
    affected_files,
    changed_files,
    find_files,
    wait_for_change,
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


@pytest.mark.parametrize(
    ("versions", "step_s", "found", "pauses"),
    [
        ([1, 1, 2, 3, 4, 4], 0.0, 4, [LOOK_S, LOOK_S, SETTLE_S, SETTLE_S]),
        ([2, *range(2, 99)], 0.3, 5, [SETTLE_S] * 3),  # one that is written all the time does not hold it up
        ([2, 1, 1], 0.0, None, [SETTLE_S, LOOK_S]),  # undone at once
        ([1], 0.2, None, [2.0]),  # the longer a look takes, the longer it waits
    ],
)
def test_a_change_counts_once_nothing_changes_any_more(
    versions: list[int], step_s: float, found: int | None, pauses: list[float]
) -> None:
    seconds, paused, left = count(), list[float](), iter(versions)

    def state(version: int) -> Files:
        return {"a.yaml": WatchedFile("scenario", "a.yaml", ("a.yaml", version, 0, 0, 0))}

    def is_over() -> bool:
        return found is None and bool(paused)

    now = wait_for_change(state(1), lambda: state(next(left)), is_over, paused.append, lambda: next(seconds) * step_s)
    assert now == (None if found is None else state(found))
    assert paused == pytest.approx(pauses)


FILES = ["s/a_1.yaml", "s/a_2.yaml", "s/a_3.yaml", "s/a_4.yaml"]


@pytest.mark.parametrize(
    ("kind", "name", "affected"),
    [
        ("scenario", "a_4.yaml", {4}),
        ("mail", "mail.eml", {2}),
        ("mail", "gone.eml", {3}),
        ("mail", "of_nobody.eml", set()),
        ("recording", "a_2", {2}),
        ("judge", "check.py", {1, 2, 3, 4}),
        ("server", "orders.yaml", {1, 2, 3, 4}),
        ("configuration", "config.yaml", {1, 2, 3, 4}),
    ],
)
def test_what_depends_on_a_file_is_affected_by_it(
    scenario: Callable[..., EvalTestCase], kind: str, name: str, affected: set[int]
) -> None:
    case = scenario()
    with_mail = replace(case, input=replace(case.input, email=replace(case.input.email, raw_file="mail.eml")))
    invalid = InvalidScenario("a_3.yaml", FILES[2], "Mail not found: gone.eml is not beside this file", "code")
    results = dict(
        zip(FILES, [EvalResult(each, passed=True) for each in (case, with_mail, invalid, case)], strict=True)
    )
    changed = {f"s/{name}": WatchedFile(kind, name, ("", 0, 0, 0, 0))}
    assert affected_files(changed, FILES, results) == [f"s/a_{number}.yaml" for number in sorted(affected)]
    assert affected_files({}, FILES, {FILES[0]: results[FILES[0]]}) == FILES[1:]
