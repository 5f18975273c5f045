"""Patterns for the names and paths of files."""

from __future__ import annotations

from pathlib import Path

import pytest

from guarantee_email_agent.sandbox.inside.api_request import Arguments
from guarantee_email_agent.sandbox.inside.files import Files
from guarantee_email_agent.sandbox.inside.search import find, glob

NAMES = ("a.py", "b.txt", "deep/c.py", "deep/er/d.py", "deep/[x].md", "deep/y.md", ".git/config")


@pytest.fixture
def tree(tmp_path: Path) -> str:
    for name in NAMES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    return str(tmp_path)


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.py", ["a.py"]),
        ("**/*.py", ["a.py", "deep/c.py", "deep/er/d.py"]),
        ("deep/*.py", ["deep/c.py"]),
        ("deep/**", ["deep/[x].md", "deep/c.py", "deep/er/d.py", "deep/y.md"]),
        ("**/er/*", ["deep/er/d.py"]),
        ("?.txt", ["b.txt"]),
        ("[ab].*", ["a.py", "b.txt"]),
        ("[!a].*", ["b.txt"]),
        ("deep/[[]x].md", ["deep/[x].md"]),
        ("*", ["a.py", "b.txt"]),
    ],
)
def test_a_pattern_fits_paths(tree: str, pattern: str, found: list[str]) -> None:
    result, _ = glob(Files(tree), Arguments({"path": tree, "pattern": pattern}))
    assert [file["path"].removeprefix(f"{tree}/") for file in result["files"]] == found


def test_hidden_files_and_the_rest_only_on_demand(tree: str) -> None:
    options = {"include_hidden": True, "max_results": 2, "sort_by": "size", "sort_desc": True}
    result, _ = glob(Files(tree), Arguments({"path": tree, "pattern": "**/*", **options}))
    assert (result["total_count"], result["truncated"], len(result["files"])) == (7, True, 2)


def test_a_pattern_without_a_slash_fits_names_anywhere(tree: str) -> None:
    result, _ = find(Files(tree), Arguments({"path": tree, "glob": "*.md"}))
    assert sorted(result["files"]) == [f"{tree}/deep/[x].md", f"{tree}/deep/y.md"]
