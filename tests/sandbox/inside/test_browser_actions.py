"""Which methods of the client there are, and what the documents say of them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from running_sandbox import Box, refused

DOCUMENT = (Path(__file__).parents[3] / "docs" / "solve.md").read_text(encoding="utf-8")
SECTIONS = ("browser", "browser_captcha", "browser_cookies", "browser_network", "browser_page", "browser_state")


def methods(section: Any) -> set[str]:
    return {name for name in dir(section) if not name.startswith("_") and callable(getattr(section, name))}


def row(section: str) -> tuple[set[str], set[str]]:
    """What works and what does not, by the table."""
    line = next(
        line for line in DOCUMENT.splitlines() if line.startswith("| `") and f"`{section}`" in line.split("|")[1]
    )
    works, others = line.split("|")[2:4]
    return set(re.findall(r"`(\w+)`", works)), set(re.findall(r"`(\w+)`", others))


@pytest.mark.parametrize("section", [*SECTIONS, "browser_tabs"])
def test_the_table_names_methods_that_the_client_has(box: Box, section: str) -> None:
    works, others = row(section)
    assert works | others <= methods(getattr(box.real, section))


@pytest.mark.parametrize(
    ("section", "method", "arguments"),
    [
        ("browser_page", "check", {"selector": "#a"}),
        ("browser_page", "get_markdown", {}),
        ("browser_page", "find_text", {"keyword": "a"}),
        ("browser_captcha", "detect", {}),
        ("browser_cookies", "get_cookies", {}),
        ("browser_network", "get_requests", {}),
        ("browser_state", "save", {"path": "/tmp/a"}),
        ("browser_tabs", "list", {}),
    ],
)
def test_what_is_not_there_says_where_else_to_go(
    box: Box, section: str, method: str, arguments: dict[str, Any]
) -> None:
    assert method not in row(section)[0]
    with refused(501) as refusal:
        getattr(getattr(box.real, section), method)(**arguments)
    assert "port 9222" in refusal.value.body["message"]
