"""What the run store gives beside cases: a run, a result, what a case came to; and what can be asked for."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, NamedTuple, Self

from guarantee_email_agent.runlog.records import Outcome, Usage, Verdict


class SuiteKey(NamedTuple):
    """What makes two runs comparable: the same suite and selection, worked on in the same way."""

    command: str
    suite: str
    selection: tuple[str, ...] = ()
    agent: str = ""
    llm: str = ""


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run. `NewRun` explains what it began with, `RunEnd` how it ended; outcome: None while it goes on.

    total to invalid: cases, of which one with several repetitions passed where they all did; failed includes invalid.
    tokens, cost_usd: of all results; where it is not known of one, 0 tokens, and None for the cost. mails,
    mails_passed: distinct mails of a suite; None before its end, of tasks, and of runs of earlier versions. facts: as
    `RunEnd` has them.
    """

    number: int
    id: str
    command: str
    suite: str
    selection: tuple[str, ...]
    agent: str
    llm: str
    model: str
    parameters: Mapping[str, Any]
    options: Mapping[str, Any]
    repeat: int
    threshold: float
    require_proof: bool
    package_version: str
    git_revision: str | None
    git_dirty: bool | None
    planned: int
    started: str
    ended: str | None
    duration_s: float
    outcome: Outcome | None
    exit_code: int | None
    total: int
    passed: int
    failed: int
    error: int
    invalid: int
    tokens: int
    cost_usd: float | None
    mails: int | None
    mails_passed: int | None
    facts: Mapping[str, Any]

    @classmethod
    def of_row(cls, row: Sequence[Any]) -> Self:
        """row: the columns of that name."""
        values = dict(zip((field.name for field in fields(cls)), row, strict=True))
        for name in ("parameters", "options", "facts"):
            values[name] = json.loads(values[name] or "{}")
        values["selection"] = tuple(json.loads(values["selection"]))
        values["require_proof"] = bool(values["require_proof"])
        values["git_dirty"] = None if values["git_dirty"] is None else bool(values["git_dirty"])
        return cls(**values)

    @property
    def key(self) -> SuiteKey:
        return SuiteKey(self.command, self.suite, self.selection, self.agent, self.llm)

    @property
    def state(self) -> str:
        """The outcome in a word or two, also while there is none."""
        return self.outcome or "going on"


class StoredResult(NamedTuple):
    """A result without what happened. `CaseResult` explains it. input_set: of `RunStore.inputs`.

    step_ms: None where the times of its steps are not known. taken_over: the id of the run that gave it, where that is
    another one.
    """

    id: int
    run: int
    run_id: str
    name: str
    category: str
    language: str
    description: str
    position: int
    repetition: int
    verdict: Verdict
    duration_ms: float
    usage: Usage
    input_set: int | None
    source_hash: bytes | None
    step_ms: tuple[float | None, ...] | None
    taken_over: str | None

    @classmethod
    def of_row(cls, row: Sequence[Any]) -> Self:
        """row: the columns down to the duration, the last four, and those of the usage."""
        step_ms = None if row[13] is None else tuple(json.loads(row[13]))
        return cls._make((*row[:11], Usage(*row[15:]), *row[11:13], step_ms, row[14]))


class CaseOutcome(NamedTuple):
    """What a case came to in one run, all its repetitions together.

    verdict: the worst of them. passed, runs: how many repetitions passed, of how many. duration_ms, cost_usd: their
    sums; the cost is None where one is not known. result: the id of the first one, of which the rest is; by source,
    response and judgement contents of one store are told apart.
    """

    name: str
    description: str
    verdict: Verdict
    passed: int
    runs: int
    duration_ms: float
    cost_usd: float | None
    result: int
    input_set: int | None
    source: int | None
    response: int | None
    judgement: int | None


class GroupCounts(NamedTuple):
    """How the cases of one category and language came out."""

    category: str
    language: str
    passed: int
    total: int

    @property
    def failed(self) -> int:
        return self.total - self.passed


class ResultFilter(NamedTuple):
    """Which results of a run; None for any. text: in name or description, whatever its case."""

    verdicts: tuple[Verdict, ...] | None = None
    category: str | None = None
    language: str | None = None
    text: str | None = None


ALL_RESULTS: Final = ResultFilter()
