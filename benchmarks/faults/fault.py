"""What came of a planted fault, and which faults nothing can show."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from guarantee_email_agent.eval.mutation.instruction_faults import Fault
from guarantee_email_agent.files.yaml import load_documents

EQUIVALENT = Path(__file__).parents[1] / "equivalent_faults.yaml"
TESTS = "tests"
"""Notices what the suite is silent about."""


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


def identity(fault: Fault) -> tuple[str, str, str]:
    return fault.file, fault.before, fault.after


def equivalent_faults() -> dict[tuple[str, str, str], str]:
    """Why nothing can show a fault, by file, line before and line after."""
    entries = load_documents(EQUIVALENT.read_text(encoding="utf-8"))[0] if EQUIVALENT.exists() else []
    assert isinstance(entries, list)
    return {(each["file"], each["before"], each["after"]): each["reason"] for each in entries}
