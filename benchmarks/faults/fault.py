"""A fault that can be planted: one place of a file with other text in it, and what came of it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from guarantee_email_agent.files.yaml import load_documents

EQUIVALENT = Path(__file__).parents[1] / "equivalent_faults.yaml"
TESTS = "tests"
"""Notices what the suite is silent about."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One place of a file with other text in it. `start` and `end` are offsets in characters."""

    file: str
    operator: str
    start: int
    end: int
    replacement: str
    line: int
    before: str
    after: str
    occurrence: int = 0

    @property
    def key(self) -> str:
        """The same as long as the line is, wherever it moves."""
        parts = (self.file, self.operator, self.before, self.after, str(self.occurrence))
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Outcome:
    key: str
    file: str
    operator: str
    line: int
    before: str
    after: str
    noticed_by: str | None
    """A scenario, TESTS, or how the suite stopped; None where nothing noticed."""

    @property
    def by_suite(self) -> bool:
        return self.noticed_by not in (None, TESTS)


def fault_in(name: str, text: str, operator: str, start: int, end: int, replacement: str) -> Fault:
    """The fault that puts `replacement` in place of `text[start:end]`; name: the file's, from the project's root."""
    first, last = text.rfind("\n", 0, start) + 1, text.find("\n", end)
    last = len(text) if last < 0 else last
    before, after = text[first:last], text[first:start] + replacement + text[end:last]
    line = text.count("\n", 0, start) + 1
    return Fault(name, operator, start, end, replacement, line, before.strip(), after.strip())


def identity(fault: Fault) -> tuple[str, str, str]:
    return fault.file, fault.before, fault.after


def equivalent_faults() -> dict[tuple[str, str, str], str]:
    """Why nothing can show a fault, by file, line before and line after."""
    entries = load_documents(EQUIVALENT.read_text(encoding="utf-8"))[0] if EQUIVALENT.exists() else []
    assert isinstance(entries, list)
    return {(each["file"], each["before"], each["after"]): each["reason"] for each in entries}
