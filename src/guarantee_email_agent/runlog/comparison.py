"""Two runs side by side: which cases fail now, which no longer, and what was changed between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, Generic, NamedTuple, TypeVar

from guarantee_email_agent.runlog.database import StoreError
from guarantee_email_agent.runlog.records import Case, Input, Place, Run, changed_inputs, cost_of
from guarantee_email_agent.runlog.run_reader import GREEN, RunStore, refuse_nameless

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

_OF_TASK: Final = ("judge", "task")
_TOLD_BY_SETTINGS: Final = ("model", "package")


_Change = TypeVar("_Change")


class CaseChange(NamedTuple):
    """A case of both runs."""

    before: Case
    after: Case

    @property
    def name(self) -> str:
        return self.after.name

    @property
    def passed(self) -> tuple[bool, bool]:
        """Before, and now."""
        return self.before.passed, self.after.passed

    @property
    def places(self) -> tuple[Place, Place]:
        """Of the first repetition before, and now."""
        return self.before.runs[0].place, self.after.runs[0].place


class Sums(NamedTuple):
    """Of the cases of both runs: how many, and what they took together; the cost is None where one is not known."""

    cases: int
    duration_ms: tuple[float, float]
    cost_usd: tuple[float | None, float | None]

    @classmethod
    def of(cls, pairs: Sequence[CaseChange]) -> Sums:
        before, after = [pair.before for pair in pairs], [pair.after for pair in pairs]
        times = (sum(each.duration_ms for each in before), sum(each.duration_ms for each in after))
        costs = (cost_of(each.cost_usd for each in before), cost_of(each.cost_usd for each in after))
        return cls(len(pairs), times, costs)


class ContentChange(NamedTuple):
    """Something that verdicts depend on and that is not the same in both runs.

    kind, name: as `Input` has them, and `scenario` or `task` for the file of a case. before, after: None where it was
    not there or its content is not kept. verb: `changed`, `added` or `removed`. cases: how many of both runs depend
    on it.
    """

    kind: str
    name: str
    before: bytes | None
    after: bytes | None
    verb: str
    cases: int


class ReplyChange(NamedTuple):
    """What a case was answered, before and now; None for no reply."""

    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class Changes(Generic[_Change]):
    """shown: as many as were asked for, the worst first. more: how many there are beside them; None if not counted."""

    shown: tuple[_Change, ...]
    more: int | None = 0

    @classmethod
    def first(cls, changes: Iterator[_Change], limit: int | None, *, counts: bool) -> Changes[_Change]:
        """counts: whether the others are to be counted, which takes as long as to show them."""
        shown = tuple(islice(changes, limit))
        if counts or limit is None:
            return cls(shown, sum(1 for _ in changes))
        return cls(shown, None if len(shown) == limit else 0)

    @property
    def total(self) -> int:
        """Of those that are known."""
        return len(self.shown) + (self.more or 0)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Each case of two runs stands in one of the first eight. A case passes where all of its repetitions do.

    still_passing: how many passed in both.

    not_reached: cases of the baseline alone, where the run goes on or was stopped before its end, so that nobody knows
    whether they are gone; not_reached_before: those of the run alone, where the baseline was. not_selected: cases of
    the baseline alone, where the run was asked for another selection of the same suite. missing: how many cases the run
    has not reached, whether or not the baseline has them.
    feedback: what a judge said of the work on a task, and now says otherwise.
    settings: what the runs were begun with and is not the same: name, before, after. unknown_inputs: results of which
    it is not known what they depended on. sums: of the cases of both.
    """

    baseline: Run
    run: Run
    newly_failing: tuple[CaseChange, ...]
    newly_passing: tuple[CaseChange, ...]
    still_failing: tuple[CaseChange, ...]
    still_passing: int
    added: tuple[Case, ...]
    removed: tuple[Case, ...]
    not_reached: tuple[Case, ...]
    not_reached_before: tuple[Case, ...]
    not_selected: tuple[Case, ...]
    replies: Changes[ReplyChange]
    feedback: Changes[ReplyChange]
    contents: Changes[ContentChange]
    settings: tuple[tuple[str, Any, Any], ...]
    unknown_inputs: int
    missing: int
    sums: Sums

    @property
    def regressions(self) -> list[str]:
        """Cases that passed and fail, and those that are gone: to delete a failing one is no way to green."""
        return [each.name for each in self.newly_failing] + [each.name for each in self.removed]

    def groups(self) -> Iterator[tuple[str, str, Sequence[CaseChange | Case], Run]]:
        """Title, `failed`, `passed` or `other`, cases, and the run that has their results; none without a case."""
        now, before = self.run, self.baseline
        listed: tuple[tuple[str, str, Sequence[CaseChange | Case], Run], ...] = (
            ("Newly failing", "failed", self.newly_failing, now),
            ("Removed, which counts as a regression", "failed", self.removed, before),
            ("Still failing", "other", self.still_failing, now),
            ("Newly passing", "passed", self.newly_passing, now),
            ("Added", "other", self.added, now),
            (f"Not reached by the run ({now.state})", "other", self.not_reached, before),
            (f"Not reached by the baseline ({before.state})", "other", self.not_reached_before, now),
            ("Not selected this time", "other", self.not_selected, before),
        )
        yield from (group for group in listed if group[2])

    @property
    def shows_no_regression(self) -> bool:
        """Whether there is none, and all ran that could show one."""
        return bool(self.sums.cases) and not self.regressions and not self.missing


def compare_runs(
    store: RunStore, baseline: Run, run: Run, *, max_details: int | None = None, counts_all: bool = True
) -> Comparison:
    """max_details: how many changed replies, changed files of cases, and changed feedback are held; None for all.

    counts_all: whether the others are counted. Raises StoreError.
    """
    refuse_nameless(baseline, run)
    baseline, run = store.with_counts(baseline), store.with_counts(run)
    cases_before, cases = ({each.name: each for each in store.outcomes(each_run)} for each_run in (baseline, run))
    pairs = [CaseChange(cases_before[name], case) for name, case in cases.items() if name in cases_before]
    gone = tuple(case for name, case in cases_before.items() if name not in cases)
    only_after = tuple(case for name, case in cases.items() if name not in cases_before)
    is_part = run.selection != baseline.selection and bool(run.selection)
    missing = max(0, run.planned - _count(run, cases))
    was_stopped = _count(baseline, cases_before) < baseline.planned
    inputs = list(_changed_inputs(store, pairs, run))
    replies = _changed_texts(store, pairs, "response", *REPLY)
    feedback = _changed_texts(store, () if run.command == "eval" else pairs, "judgement", "error", "feedback")
    sources = Changes.first(_changed_sources(store, pairs, run), max_details, counts=counts_all)
    return Comparison(
        baseline,
        run,
        newly_failing=tuple(pair for pair in pairs if pair.passed == (True, False)),
        newly_passing=tuple(pair for pair in pairs if pair.passed == (False, True)),
        still_failing=tuple(pair for pair in pairs if pair.passed == (False, False)),
        still_passing=sum(pair.passed == (True, True) for pair in pairs),
        added=() if was_stopped else only_after,
        removed=() if is_part or missing else gone,
        not_reached=gone if missing and not is_part else (),
        not_reached_before=only_after if was_stopped else (),
        not_selected=gone if is_part else (),
        replies=Changes.first(replies, max_details, counts=counts_all),
        feedback=Changes.first(feedback, max_details, counts=counts_all),
        contents=Changes((*inputs, *sources.shown), sources.more),
        settings=tuple(
            (name, before, after)
            for name in _SETTINGS
            if (before := getattr(baseline, name)) != (after := getattr(run, name))
        ),
        unknown_inputs=sum(
            None in [each.place.input_set for each in (*pair.before.runs, *pair.after.runs)] for pair in pairs
        ),
        missing=missing,
        sums=Sums.of(pairs),
    )


def _count(run: Run, cases: Mapping[str, Case]) -> int:
    """How many of the results that were planned a run has: of `grade`, a task may have several."""
    return len(cases) if run.command == "eval" else sum(len(case.runs) for case in cases.values())


def _with_other(part: str, pairs: Iterable[CaseChange]) -> Iterator[CaseChange]:
    """Those whose `source`, `response` or `judgement` is another one, those that fail now before the others."""
    others = (pair for pair in pairs if len({getattr(place, part) for place in pair.places}) > 1)
    yield from sorted(others, key=lambda pair: (pair.passed[1], not pair.passed[0]))


def _changed_texts(store: RunStore, pairs: Iterable[CaseChange], part: str, *keys: str) -> Iterator[ReplyChange]:
    """What cases were answered, or judges said of them under one of `keys`."""
    for each in _with_other(part, pairs):
        before, after = (text_of(getattr(store.result(place.id), part), keys) for place in each.places)
        if before != after:
            yield ReplyChange(each.name, before, after)


REPLY: Final = ("response_body", "answer")


def text_of(said: Any, keys: Sequence[str] = REPLY) -> str | None:
    """The first of `keys` that there is, with what was answered in later turns."""
    if not isinstance(said, Mapping):
        return None
    found = [next((said[key] for key in keys if said.get(key)), None)]
    found += [turn.get("answer") for turn in said.get("turns", ())[1:]]
    return "\n\n".join(text for text in found if isinstance(text, str)) or None


def _changed_inputs(store: RunStore, pairs: Sequence[CaseChange], run: Run) -> Iterator[ContentChange]:
    """What the sets of inputs differ in, name by name; most scenarios of a run share one set, and no two tasks do."""
    changes: dict[tuple[str, str, bytes | None, bytes | None], ContentChange] = {}
    sets = Counter(
        (pair.places[0].input_set, pair.places[1].input_set, "" if run.command == "eval" else pair.name)
        for pair in pairs
    )
    for (before, after, case), count in sets.items():
        if before is None or after is None or before == after:
            continue
        old, new = _by_name(store.inputs(before)), _by_name(store.inputs(after))
        for verb, kind, name in changed_inputs(old.values(), new.values()):
            if kind in _TOLD_BY_SETTINGS:
                continue
            was, now = old.get((kind, name)), new.get((kind, name))
            shown = f"{case}/{name}" if case and kind in _OF_TASK else name
            change = (kind, shown, was and was.digest, now and now.digest)
            known = changes.get(change)
            changes[change] = ContentChange(
                kind,
                shown,
                was and was.content,
                now and now.content,
                verb,
                cases=count + (known.cases if known else 0),
            )
    yield from changes.values()


def _by_name(inputs: Iterable[Input]) -> dict[tuple[str, str], Input]:
    return {(each.kind, each.name): each for each in inputs}


def _changed_sources(store: RunStore, pairs: Sequence[CaseChange], run: Run) -> Iterator[ContentChange]:
    kind = "scenario" if run.command == "eval" else "task"
    for each in _with_other("source", pairs):
        before, after = (store.result(place.id).source for place in each.places)
        yield ContentChange(kind, each.name, before, after, "changed", cases=1)


def find_pair(store: RunStore, first: str, second: str) -> tuple[Run, Run]:
    """Two runs by name; `green` is the newest of the other one's suite that passed before it.

    Raises StoreError as `RunStore.find_run` does, and for one and the same run.
    """
    if first == GREEN:
        run = store.find_run(second)
        return store.find_green_before(run), run
    baseline = store.find_run(first)
    run = store.find_green_before(baseline) if second == GREEN else store.find_run(second)
    if run.number == baseline.number:
        problem = f"{run.id} cannot be compared with itself. Name an earlier run first, by its id or as {GREEN}"
        raise StoreError(problem, "store_same_run")
    return baseline, run
