"""Two runs side by side: which cases fail now, which no longer, and what was changed between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from guarantee_email_agent.store.records import Input
from guarantee_email_agent.store.run_reader import GREEN, CaseOutcome, RunStore, StoredRun

_SETTINGS: Final = (
    "command",
    "suite",
    "selection",
    "agent",
    "llm",
    "model",
    "parameters",
    "repeat",
    "threshold",
    "require_proof",
    "package_version",
    "git_revision",
)

_TOLD_BY_SETTINGS: Final = ("model", "package")


class CaseChange(NamedTuple):
    """A case of both runs."""

    before: CaseOutcome
    after: CaseOutcome

    @property
    def name(self) -> str:
        return self.after.name


class ContentChange(NamedTuple):
    """Something that verdicts depend on and that is not the same in both runs.

    kind, name: as `Input` has them, and `scenario` or `task` for the file of a case. before, after: None where it was
    not there or its content is not kept; existed, exists: whether it was there. cases: how many of both runs depend
    on it.
    """

    kind: str
    name: str
    before: bytes | None
    after: bytes | None
    existed: bool
    exists: bool
    cases: int


class ReplyChange(NamedTuple):
    """What a case was answered, before and now; None for no reply."""

    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Each case of two runs stands in one of the first six. A case passes where all of its repetitions do.

    not_selected: cases of the baseline alone, where the run was asked for another selection of the same suite.
    settings: what the runs were begun with and is not the same: name, before, after. unknown_inputs: results of which
    it is not known what they depended on.
    """

    baseline: StoredRun
    run: StoredRun
    newly_failing: tuple[CaseChange, ...]
    newly_passing: tuple[CaseChange, ...]
    still_failing: tuple[CaseChange, ...]
    still_passing: tuple[CaseChange, ...]
    added: tuple[CaseOutcome, ...]
    removed: tuple[CaseOutcome, ...]
    not_selected: tuple[CaseOutcome, ...]
    replies: tuple[ReplyChange, ...]
    contents: tuple[ContentChange, ...]
    settings: tuple[tuple[str, Any, Any], ...]
    unknown_inputs: int

    @property
    def regressions(self) -> list[str]:
        """Cases that passed and fail, and those that are gone: to delete a failing one is no way to green."""
        return [each.name for each in self.newly_failing] + [each.name for each in self.removed]

    @property
    def common(self) -> tuple[CaseChange, ...]:
        return (*self.newly_failing, *self.newly_passing, *self.still_failing, *self.still_passing)


def compare_runs(store: RunStore, baseline: StoredRun, run: StoredRun) -> Comparison:
    """Raises StoreError."""
    before, after = store.case_outcomes(baseline), store.case_outcomes(run)
    common = [CaseChange(before[name], outcome) for name, outcome in after.items() if name in before]
    gone = tuple(outcome for name, outcome in before.items() if name not in after)
    is_part = run.selection != baseline.selection and bool(run.selection)

    def those(passed: bool, passes: bool) -> tuple[CaseChange, ...]:
        wanted = (passed, passes)
        return tuple(each for each in common if (_passed(each.before), _passed(each.after)) == wanted)

    return Comparison(
        baseline,
        run,
        newly_failing=those(True, False),
        newly_passing=those(False, True),
        still_failing=those(False, False),
        still_passing=those(True, True),
        added=tuple(outcome for name, outcome in after.items() if name not in before),
        removed=() if is_part else gone,
        not_selected=gone if is_part else (),
        replies=tuple(_changed_replies(store, common)),
        contents=(*_changed_inputs(store, common), *_changed_sources(store, common, run)),
        settings=tuple(_changed_settings(baseline, run)),
        unknown_inputs=sum(each.before.input_set is None or each.after.input_set is None for each in common),
    )


def _passed(outcome: CaseOutcome) -> bool:
    return outcome.verdict == "passed"


def _changed_replies(store: RunStore, cases: Iterable[CaseChange]) -> Iterator[ReplyChange]:
    for each in cases:
        if each.before.response != each.after.response:
            before, after = (_reply(store, outcome) for outcome in each)
            if before != after:
                yield ReplyChange(each.name, before, after)


def _reply(store: RunStore, outcome: CaseOutcome) -> str | None:
    response = store.transcript(store.result(outcome.result)).response
    reply = response.get("response_body") if isinstance(response, Mapping) else None
    return reply if isinstance(reply, str) else None


def _changed_inputs(store: RunStore, cases: Iterable[CaseChange]) -> Iterator[ContentChange]:
    """What the sets of inputs differ in, name by name; most cases of a run share one set."""
    pairs: dict[tuple[int, int], int] = {}
    for each in cases:
        before, after = each.before.input_set, each.after.input_set
        if before is not None and after is not None and before != after:
            pairs[before, after] = pairs.get((before, after), 0) + 1
    changes: dict[tuple[str, str, bytes | None, bytes | None], ContentChange] = {}
    for (before, after), count in pairs.items():
        old, new = _by_name(store.inputs(before)), _by_name(store.inputs(after))
        for kind, name in sorted(old.keys() | new.keys()):
            was, now = old.get((kind, name)), new.get((kind, name))
            if kind in _TOLD_BY_SETTINGS or (was is not None and now is not None and was.digest == now.digest):
                continue
            key = (kind, name, was and was.digest, now and now.digest)
            known = changes.get(key)
            changes[key] = ContentChange(
                kind,
                name,
                was and was.content,
                now and now.content,
                existed=was is not None,
                exists=now is not None,
                cases=count + (known.cases if known else 0),
            )
    yield from changes.values()


def _by_name(inputs: Iterable[Input]) -> dict[tuple[str, str], Input]:
    return {(each.kind, each.name): each for each in inputs}


def _changed_sources(store: RunStore, cases: Iterable[CaseChange], run: StoredRun) -> Iterator[ContentChange]:
    kind = "scenario" if run.command == "eval" else "task"
    for each in cases:
        if each.before.source != each.after.source:
            before, after = (store.transcript(store.result(outcome.result)).source for outcome in each)
            yield ContentChange(kind, each.name, before, after, existed=True, exists=True, cases=1)


def _changed_settings(baseline: StoredRun, run: StoredRun) -> Iterator[tuple[str, Any, Any]]:
    for name in _SETTINGS:
        before, after = getattr(baseline, name), getattr(run, name)
        if before != after:
            yield name, before, after


def find_pair(store: RunStore, first: str, second: str) -> tuple[StoredRun, StoredRun]:
    """Two runs by name; `green` is the newest of the other one's suite that passed before it.

    Raises StoreError as `RunStore.find_run` does.
    """
    if first == GREEN:
        run = store.find_run(second)
        return store.find_green_before(run), run
    baseline = store.find_run(first)
    return baseline, store.find_green_before(baseline) if second == GREEN else store.find_run(second)
