"""A task as data: what a task directory holds, and what came of grading one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from guarantee_email_agent.judging.judge import Verdict

Record = dict[str, Any]
"""The record of a run, as `judging.record.complete_record` makes it: all keys that a judge may rely on."""


MAX_TIMEOUT_S: Final = 86_400


def _not_blank(value: str) -> str | None:
    return None if value.strip() else "must not be blank; say what the agent has to do"


def _seconds(value: float) -> str | None:
    return None if 0 < value <= MAX_TIMEOUT_S else f"must be seconds above 0 and at most {MAX_TIMEOUT_S}"


@dataclass(frozen=True, slots=True)
class TaskFile:
    """The keys of `task.yaml` that mean something to us; any further ones are the task's own."""

    instruction: str = field(metadata={"doc": "What the agent has to do, in words.", "check": _not_blank})
    judge_network: bool = field(
        default=False, metadata={"doc": "Whether test.py may use the network, as it must to look into a sandbox."}
    )
    judge_timeout_s: float | None = field(
        default=None, metadata={"doc": "Seconds that test.py may take.", "check": _seconds}
    )


@dataclass(frozen=True, slots=True)
class Task:
    """A usable task directory.

    name: the directory's. settings: all keys of `task.yaml` but `instruction`. dockerfile, compose_file, assets:
    None where the task has none. judge_timeout_s: seconds, None for the usual deadline.
    """

    name: str
    directory: Path
    instruction: str
    settings: Mapping[str, Any]
    test_file: Path
    dockerfile: Path | None = None
    compose_file: Path | None = None
    assets: Path | None = None
    judge_network: bool = False
    judge_timeout_s: float | None = None


@dataclass(frozen=True, slots=True)
class InvalidTask:
    """A task directory that cannot be used. It keeps its place among the others, and counts as an error."""

    name: str
    directory: Path
    message: str
    code: str


@dataclass(frozen=True, slots=True)
class Graded:
    """The verdict on the work on one task."""

    task_name: str
    verdict: Verdict
