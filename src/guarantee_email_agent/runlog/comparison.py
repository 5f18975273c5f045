"""Two runs side by side: which cases fail now, which no longer, and what was changed between them."""

# ruff: noqa: S608 - every query is made of our own words; what is asked for is bound

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, Generic, NamedTuple, TypeVar

from guarantee_email_agent.runlog.records import Input
from guarantee_email_agent.runlog.run_reader import CASE_OUTCOME, GREEN, RunStore
from guarantee_email_agent.runlog.stored_records import CaseOutcome, StoredRun

_PAGE: Final = 1_000
_COLUMNS: Final = ", ".join(CaseOutcome._fields)
_OUTCOMES: Final = f"""SELECT {CASE_OUTCOME}, min((position << 31) + repetition)
    FROM results JOIN cases ON cases.id = results.case_id WHERE run = ? GROUP BY cases.name"""
_OLD, _NEW = "temp.cases_before", "temp.cases_after"
_PAIRS: Final = f"{_NEW} AS after JOIN {_OLD} AS before USING (name)"
_PASSED: Final = "(before.verdict = 'passed')"
_PASSES: Final = "(after.verdict = 'passed')"
_BOTH: Final = ", ".join(f"{side}.{name}" for side in ("before", "after") for name in CaseOutcome._fields)
_CHANGED: Final = "temp.changed_cases"
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

    before: CaseOutcome
    after: CaseOutcome

    @property
    def name(self) -> str:
        return self.after.name


class Sums(NamedTuple):
    """Of the cases of both runs: how many, and what they took together; the cost is None where one is not known."""

    cases: int
    duration_ms: tuple[float, float]
    cost_usd: tuple[float | None, float | None]


class PairedCases:
    """Every method raises StoreError. The pairs stand in temporary tables of the store's connection."""

    def __init__(self, store: RunStore, baseline: StoredRun, run: StoredRun) -> None:
        self._store = store
        for table, each in ((_OLD, baseline), (_NEW, run)):
            columns = _COLUMNS.replace("name,", "name TEXT PRIMARY KEY,", 1)
            store.make_temporary(
                (f"DROP TABLE IF EXISTS {table}", ()),
                (f"CREATE TABLE {table} ({columns}, place INTEGER) WITHOUT ROWID", ()),
                (f"INSERT INTO {table} {_OUTCOMES}", (each.number,)),
            )

    def changed(self, passed: bool, passes: bool) -> tuple[CaseChange, ...]:
        """Those that did, or did not, pass before and now, in the order of the run."""
        query = f"SELECT {_BOTH} FROM {_PAIRS} WHERE ({_PASSED}, {_PASSES}) = (?, ?) ORDER BY after.place"
        return tuple(_pair(row) for row in self._store.rows(query, (passed, passes)))

    def still_passing(self) -> int:
        """How many passed before and now."""
        query = f"SELECT count(*) FROM {_PAIRS} WHERE {_PASSED} AND {_PASSES}"
        count: int = self._store.rows(query)[0][0]
        return count

    def only_before(self) -> tuple[CaseOutcome, ...]:
        """Those of the baseline alone, in its order."""
        return self._only(_OLD, _NEW)

    def only_after(self) -> tuple[CaseOutcome, ...]:
        """Those of the run alone, in its order."""
        return self._only(_NEW, _OLD)

    def counts(self) -> tuple[int, int]:
        """How many the baseline has, and the run."""
        before, after = self._store.rows(f"SELECT (SELECT count(*) FROM {_OLD}), (SELECT count(*) FROM {_NEW})")[0]
        return before, after

    def sums(self) -> Sums:
        """Of those of both runs."""
        known = "CASE WHEN count(*) = count({0}.cost_usd) THEN total({0}.cost_usd) END"
        query = f"""SELECT count(*), total(before.duration_ms), total(after.duration_ms), {known.format("before")},
            {known.format("after")} FROM {_PAIRS}"""
        count, before_ms, after_ms, before_usd, after_usd = self._store.rows(query)[0]
        return Sums(count, (before_ms, after_ms), (before_usd, after_usd))

    def unknown_inputs(self) -> int:
        """How many of both have a result of which it is not known what it depended on."""
        query = f"SELECT count(*) FROM {_PAIRS} WHERE before.input_set IS NULL OR after.input_set IS NULL"
        count: int = self._store.rows(query)[0][0]
        return count

    def input_sets(self, *, by_case: bool) -> list[tuple[int, int, str, int]]:
        """Sets of inputs that are not the same: before, after, of which case (if by_case), and how many share them."""
        name = "after.name" if by_case else "''"
        query = f"""SELECT before.input_set, after.input_set, {name} AS shown, count(*) FROM {_PAIRS}
            WHERE before.input_set != after.input_set GROUP BY 1, 2, 3 ORDER BY min(after.place)"""
        return [(before, after, shown, count) for before, after, shown, count in self._store.rows(query)]

    def with_other(self, part: str) -> Iterator[CaseChange]:
        """Those whose `source`, `response` or `judgement` is another one, those that fail now before the others."""
        table = f"{_CHANGED}_{part}"
        query = f"""SELECT {_BOTH} FROM {_PAIRS} WHERE before.{part} IS NOT after.{part}
            ORDER BY {_PASSES}, NOT {_PASSED}, after.place"""
        self._store.make_temporary((f"DROP TABLE IF EXISTS {table}", ()), (f"CREATE TABLE {table} AS {query}", ()))
        first = 0
        while page := self._store.rows(f"SELECT rowid, * FROM {table} WHERE rowid > ? LIMIT {_PAGE}", (first,)):
            yield from (_pair(row[1:]) for row in page)
            first = page[-1][0]

    def _only(self, table: str, other: str) -> tuple[CaseOutcome, ...]:
        query = f"SELECT {_COLUMNS} FROM {table} WHERE name NOT IN (SELECT name FROM {other}) ORDER BY place"
        return tuple(CaseOutcome(*row) for row in self._store.rows(query))


def _pair(row: tuple[Any, ...]) -> CaseChange:
    half = len(CaseOutcome._fields)
    return CaseChange(CaseOutcome(*row[:half]), CaseOutcome(*row[half:]))


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

    baseline: StoredRun
    run: StoredRun
    newly_failing: tuple[CaseChange, ...]
    newly_passing: tuple[CaseChange, ...]
    still_failing: tuple[CaseChange, ...]
    still_passing: int
    added: tuple[CaseOutcome, ...]
    removed: tuple[CaseOutcome, ...]
    not_reached: tuple[CaseOutcome, ...]
    not_reached_before: tuple[CaseOutcome, ...]
    not_selected: tuple[CaseOutcome, ...]
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

    @property
    def shows_no_regression(self) -> bool:
        """Whether there is none, and all ran that could show one."""
        return not self.regressions and not self.missing


def compare_runs(
    store: RunStore, baseline: StoredRun, run: StoredRun, *, max_details: int | None = None, counts_all: bool = True
) -> Comparison:
    """max_details: how many changed replies, changed files of cases, and changed feedback are held; None for all.

    counts_all: whether the others are counted. Raises StoreError.
    """
    baseline, run = store.with_counts(baseline), store.with_counts(run)
    pairs = PairedCases(store, baseline, run)
    reached_before, reached = pairs.counts()
    gone, only_after = pairs.only_before(), pairs.only_after()
    is_part = run.selection != baseline.selection and bool(run.selection)
    missing = max(0, run.planned - reached)
    was_stopped = reached_before < baseline.planned
    inputs = list(_changed_inputs(store, pairs, run))
    sources = Changes.first(_changed_sources(store, pairs, run), max_details, counts=counts_all)
    return Comparison(
        baseline,
        run,
        newly_failing=pairs.changed(passed=True, passes=False),
        newly_passing=pairs.changed(passed=False, passes=True),
        still_failing=pairs.changed(passed=False, passes=False),
        still_passing=pairs.still_passing(),
        added=() if was_stopped else only_after,
        removed=() if is_part or missing else gone,
        not_reached=gone if missing and not is_part else (),
        not_reached_before=only_after if was_stopped else (),
        not_selected=gone if is_part else (),
        replies=Changes.first(_changed_replies(store, pairs), max_details, counts=counts_all),
        feedback=Changes.first(_changed_feedback(store, pairs, run), max_details, counts=counts_all),
        contents=Changes((*inputs, *sources.shown), sources.more),
        settings=tuple(_changed_settings(baseline, run)),
        unknown_inputs=pairs.unknown_inputs(),
        missing=missing,
        sums=pairs.sums(),
    )


def _changed_replies(store: RunStore, pairs: PairedCases) -> Iterator[ReplyChange]:
    for each in pairs.with_other("response"):
        before, after = (_reply(store, outcome) for outcome in each)
        if before != after:
            yield ReplyChange(each.name, before, after)


def _reply(store: RunStore, outcome: CaseOutcome) -> str | None:
    response = store.transcript(store.result(outcome.result)).response
    reply = response.get("response_body") or response.get("answer") if isinstance(response, Mapping) else None
    return reply if isinstance(reply, str) else None


def _changed_feedback(store: RunStore, pairs: PairedCases, run: StoredRun) -> Iterator[ReplyChange]:
    for each in pairs.with_other("judgement") if run.command != "eval" else ():
        before, after = (_said(store, outcome) for outcome in each)
        if before != after:
            yield ReplyChange(each.name, before, after)


def _said(store: RunStore, outcome: CaseOutcome) -> str | None:
    """By a judge: its feedback, or why it gave none."""
    judgement = store.transcript(store.result(outcome.result)).judgement
    said = (judgement.get("error") or judgement.get("feedback")) if isinstance(judgement, Mapping) else None
    return said if isinstance(said, str) else None


def _changed_inputs(store: RunStore, pairs: PairedCases, run: StoredRun) -> Iterator[ContentChange]:
    """What the sets of inputs differ in, name by name; most scenarios of a run share one set, and no two tasks do."""
    changes: dict[tuple[str, str, bytes | None, bytes | None], ContentChange] = {}
    for before, after, case, count in pairs.input_sets(by_case=run.command != "eval"):
        old, new = _by_name(store.inputs(before)), _by_name(store.inputs(after))
        for kind, name in sorted(old.keys() | new.keys()):
            was, now = old.get((kind, name)), new.get((kind, name))
            if kind in _TOLD_BY_SETTINGS or (was is not None and now is not None and was.digest == now.digest):
                continue
            shown = f"{case}/{name}" if case and kind in _OF_TASK else name
            change = (kind, shown, was and was.digest, now and now.digest)
            known = changes.get(change)
            changes[change] = ContentChange(
                kind,
                shown,
                was and was.content,
                now and now.content,
                existed=was is not None,
                exists=now is not None,
                cases=count + (known.cases if known else 0),
            )
    yield from changes.values()


def _by_name(inputs: Iterable[Input]) -> dict[tuple[str, str], Input]:
    return {(each.kind, each.name): each for each in inputs}


def _changed_sources(store: RunStore, pairs: PairedCases, run: StoredRun) -> Iterator[ContentChange]:
    kind = "scenario" if run.command == "eval" else "task"
    for each in pairs.with_other("source"):
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
