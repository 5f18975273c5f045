"""Patterns for the names and paths of files."""

from __future__ import annotations

from pathlib import Path

import pytest

from guarantee_email_agent.sandbox.inside.api_request import Arguments
from guarantee_email_agent.sandbox.inside.files import Files, find

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
        ("*.py", ["a.py", "deep/c.py", "deep/er/d.py"]),
        ("config", [".git/config"]),
        ("**/*.py", ["a.py", "deep/c.py", "deep/er/d.py"]),
        ("deep/*.py", ["deep/c.py", "deep/er/d.py"]),
        ("deep/**", ["deep/[x].md", "deep/c.py", "deep/er", "deep/er/d.py", "deep/y.md"]),
        ("**/er/*", ["deep/er/d.py"]),
        ("[ab].*", ["a.py", "b.txt"]),
        ("[!acdy].*", ["b.txt"]),
        ("deep/[[]x].md", ["deep/[x].md"]),
    ],
)
def test_a_pattern_fits_paths(tree: str, pattern: str, found: list[str]) -> None:
    result, _ = find(Files(tree), Arguments({"path": tree, "glob": pattern}))
    assert sorted(path.removeprefix(f"{tree}/") for path in result["files"]) == found
