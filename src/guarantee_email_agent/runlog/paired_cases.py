"""The cases of two runs, paired by name where SQLite has them: two runs of a million results fit no memory."""

# ruff: noqa: S608 - every query is made of our own words; what is asked for is bound

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from guarantee_email_agent.runlog.run_reader import RunStore
from guarantee_email_agent.runlog.stored_records import CaseOutcome, StoredRun

_PAGE: Final = 1_000
_COLUMNS: Final = ", ".join(CaseOutcome._fields)
# A case is as good as the worst of its repetitions, and has the rest of its first one: beside a single min() SQLite
# takes other columns from the row that has it (https://sqlite.org/lang_select.html#bareagg).
_OUTCOMES: Final = """SELECT cases.name, cases.description,
        CASE WHEN sum(verdict = 'error') THEN 'error' WHEN sum(verdict = 'invalid') THEN 'invalid'
            WHEN sum(verdict = 'failed') THEN 'failed' ELSE 'passed' END,
        sum(verdict = 'passed'), count(*), sum(duration_ms),
        CASE WHEN count(*) = count(cost_usd) THEN sum(cost_usd) END,
        results.id, input_set, source, response, judgement, min((position << 31) + repetition)
    FROM results JOIN cases ON cases.id = results.case_id WHERE run = ? GROUP BY cases.name"""
_OLD, _NEW = "temp.cases_before", "temp.cases_after"
_PAIRS: Final = f"{_NEW} AS after JOIN {_OLD} AS before USING (name)"
_PASSED: Final = "(before.verdict = 'passed')"
_PASSES: Final = "(after.verdict = 'passed')"
_BOTH: Final = ", ".join(f"{side}.{name}" for side in ("before", "after") for name in CaseOutcome._fields)
_CHANGED: Final = "temp.changed_cases"


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
