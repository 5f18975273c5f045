"""A run store with runs in it, as commands would write them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from guarantee_email_agent.runlog.records import CaseResult, Run
from guarantee_email_agent.runlog.run_reader import RunStore
from guarantee_email_agent.runlog.run_writer import RunWriter


def new_run(number: int = 1, **changes: Any) -> Run:
    values: dict[str, Any] = {
        "id": f"20260118T10{number:04}-{number:08x}",
        "command": "eval",
        "suite": "evals/scenarios",
        "started": "2026-01-18T10:00:00Z",
        "planned": 2,
        "package_version": "0.1.0",
        "llm": "offline",
    }
    return Run(**values | changes)


def stored_run(**changes: Any) -> Run:
    """The same as it is read after its end."""
    return ended("passed", 0, number=1, git_revision=None, git_dirty=None)._replace(**changes)


def ended(outcome: Any = "passed", exit_code: int = 0, **changes: Any) -> Run:
    """A run as it is at its end."""
    how = {"outcome": outcome, "exit_code": exit_code, "ended": "2026-01-18T10:00:01Z", "duration_s": 1.0}
    return new_run(**{"git_revision": "0123abc", "git_dirty": False, **how, **changes})


def result(position: int, verdict: Any = "passed", **changes: Any) -> CaseResult:
    values: dict[str, Any] = {
        "name": f"valid_warranty_{position:03}",
        "category": "valid-warranty",
        "description": f"Customer {position}",
        "response": {"response_body": f"Reply {position}"},
    }
    return CaseResult(position=position, verdict=verdict, **values | changes)


def results_of(store: RunStore, run: Run) -> list[CaseResult]:
    """Every repetition of every case, without what happened."""
    return [each for case in store.outcomes(run) for each in case.runs]


class StoredRuns:
    """Writes runs into one file."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.warnings: list[str] = []

    def begin(
        self, number: int = 1, *, at_once: bool = False, announced: Sequence[str] = (), **changes: Any
    ) -> RunWriter:
        run = new_run(number, **changes)
        return RunWriter(self.file, run, self.warnings.append, at_once=at_once, announced=announced)

    def write(
        self,
        number: int,
        results: Sequence[CaseResult],
        outcome: Any = "passed",
        exit_code: int = 0,
        facts: Mapping[str, Any] = MappingProxyType({}),
        **changes: Any,
    ) -> None:
        """A whole run, unless more cases are `planned`."""
        writer = self.begin(number, **{"planned": len({each.name for each in results}), **changes})
        writer.add(*results)
        writer.finish(ended(outcome, exit_code, facts=facts))


@pytest.fixture
def runs(tmp_path: Path) -> StoredRuns:
    return StoredRuns(tmp_path / "runs.db")
