"""What a page of runs or results asks of the store: filtered, a page at a time, each answer in bounded time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from guarantee_email_agent.runlog.records import Check
from guarantee_email_agent.runlog.run_reader import RunStore
from guarantee_email_agent.runlog.stored_records import ALL_RESULTS, GroupCounts, ResultFilter, StoredResult, StoredRun

GOING_ON: Final = "going on"
MAX_SCANNED: Final = 20_000
"""Cases that one page of results is looked for in; a page of a larger run may end before it is full."""

_GROUPS: Final = """SELECT category, language, sum(ok), count(*) FROM (
        SELECT case_id, min(verdict = 'passed') AS ok FROM results WHERE run = ? GROUP BY position)
    JOIN cases ON cases.id = case_id GROUP BY category, language ORDER BY category, language"""

_NAMES_OF_CAUSE: Final = 8
Place = tuple[int, int]
"""Of a result in its run: position and repetition."""


class RunFilter(NamedTuple):
    """Which runs; None for any. outcome: as the store has it, or `going on`; those that were killed are interrupted."""

    command: str | None = None
    suite: str | None = None
    outcome: str | None = None


ALL_RUNS: Final = RunFilter()


class RunPage(NamedTuple):
    """Runs, the newest first, and whether there are more on either side."""

    runs: list[StoredRun]
    has_newer: bool
    has_older: bool


class ResultPage(NamedTuple):
    """Results in the order of their run.

    before, after: where the page before and the one after begin from; None where there is none. matching: how many fit
    the filter; None where the run is too large to count them. is_cut: whether the page ended before it was full.
    """

    results: list[StoredResult]
    before: Place | None
    after: Place | None
    matching: int | None
    is_cut: bool


class Cause(NamedTuple):
    """A check that failed for one reason in so many cases. names: of the first of them."""

    text: str
    cases: int
    names: Sequence[str]


class RunSearch(RunStore):
    """Opened to read. Every method raises StoreError."""

    def page_of_runs(
        self, which: RunFilter = ALL_RUNS, *, below: int | None = None, above: int | None = None, limit: int = 30
    ) -> RunPage:
        """below: only runs under this number, the newest of them; above: those over it, the oldest of them."""
        conditions, values = self._run_conditions(which)
        if above is not None:
            found = self._ordered(conditions, values, ("number > ?", above), "ASC", limit + 1)
            return RunPage(found[:limit][::-1], len(found) > limit, self._is_any(conditions, values, "<=", above))
        edge = 1 << 62 if below is None else below
        found = self._ordered(conditions, values, ("number < ?", edge), "DESC", limit + 1)
        has_newer = below is not None and self._is_any(conditions, values, ">=", edge)
        return RunPage(found[:limit], has_newer, len(found) > limit)

    def suites(self) -> list[tuple[str, str]]:
        """Command and suite of all that is kept."""
        rows = self.rows("SELECT DISTINCT command, suite FROM runs ORDER BY command, suite", ())
        return [(command, suite) for command, suite in rows]

    def newest_results(self, run: StoredRun, limit: int) -> list[StoredResult]:
        """The last ones that were written, the newest first."""
        return self._results("results.run = ?", "ORDER BY results.id DESC LIMIT ?", (run.number, limit))

    def group_counts(self, run: StoredRun) -> list[GroupCounts]:
        """By category and language, in the order of their names."""
        return [GroupCounts(*row) for row in self.rows(_GROUPS, (run.number,))]

    def causes(self, run: StoredRun, limit: int = 20) -> list[Cause]:
        """What cases share that did not pass, the most frequent first; what is of one case alone is none."""
        query = """SELECT checks.name, checks.reason, count(DISTINCT position) AS number FROM checks
            JOIN results ON results.id = checks.result WHERE run = ?
            GROUP BY 1, 2 HAVING number > 1 ORDER BY number DESC, min(position) LIMIT ?"""
        names = """SELECT DISTINCT cases.name FROM checks JOIN results ON results.id = checks.result
            JOIN cases ON cases.id = results.case_id
            WHERE run = ? AND checks.name = ? AND checks.reason = ? ORDER BY position LIMIT ?"""
        return [
            Cause(
                Check(name, reason).summary,
                count,
                [case for (case,) in self.rows(names, (run.number, name, reason, _NAMES_OF_CAUSE))],
            )
            for name, reason, count in self.rows(query, (run.number, limit))
        ]

    def started(self, results: Iterable[StoredResult]) -> dict[int, str]:
        """When the runs of these results began, by their numbers."""
        numbers = ", ".join(str(each.run) for each in results)
        return dict(self.rows(f"SELECT number, started FROM runs WHERE number IN ({numbers})"))  # noqa: S608 - numbers

    def page_of_results(
        self,
        run: StoredRun,
        which: ResultFilter = ALL_RESULTS,
        *,
        after: Place = (0, 0),
        before: Place | None = None,
        limit: int = 50,
    ) -> ResultPage:
        """The results after a place, or those right before one. At most MAX_SCANNED cases are looked at."""
        filters, wanted = _result_conditions(which)
        ((last_position,),) = self.rows("SELECT max(position) FROM results WHERE run = ?", (run.number,))
        last = last_position or 0
        if before is None:
            scanned = min(after[0] + MAX_SCANNED, last)
            span = ["(results.position, results.repetition) > (?, ?)", "results.position <= ?"]
            values, order = (*after, scanned), "ASC"
        else:
            scanned = max(before[0] - MAX_SCANNED, 0)
            span = ["(results.position, results.repetition) < (?, ?)", "results.position >= ?"]
            values, order = (*before, scanned), "DESC"
        condition = " AND ".join(["results.run = ?", *span, *filters])
        ordering = f"ORDER BY results.position {order}, results.repetition {order} LIMIT ?"
        found = self._results(condition, ordering, (run.number, *values, *wanted, limit + 1))
        has_more, page = len(found) > limit, found[:limit]
        is_cut = not has_more and (scanned > 0 if before else scanned < last)
        count = self._count(run, filters, wanted) if last <= MAX_SCANNED else None
        if before is not None:
            page.reverse()
            earlier = _place(page[0]) if has_more else (scanned, 0) if is_cut else None
            return ResultPage(page, earlier, _just_before(before), count, is_cut)
        later = _place(page[-1]) if has_more else (scanned, 1 << 62) if is_cut else None
        first = None if after <= (0, 0) else _place(page[0]) if page else (after[0], after[1] + 1)
        return ResultPage(page, first, later, count, is_cut)

    def _count(self, run: StoredRun, filters: Sequence[str], wanted: Sequence[Any]) -> int:
        condition = " AND ".join(["results.run = ?", *filters])
        query = f"SELECT count(*) FROM results JOIN cases ON cases.id = results.case_id WHERE {condition}"  # noqa: S608
        count: int = self.rows(query, (run.number, *wanted))[0][0]
        return count

    def _run_conditions(self, which: RunFilter) -> tuple[list[str], list[Any]]:
        conditions: list[str] = []
        values: list[Any] = []
        for column, wanted in (("command", which.command), ("suite", which.suite)):
            if wanted is not None:
                conditions.append(f"{column} = ?")
                values.append(wanted)
        if which.outcome in (GOING_ON, "interrupted"):
            unended = self.rows("SELECT number FROM runs WHERE outcome IS NULL", ())
            numbers = [number for (number,) in unended if self._owners.is_alive(number) == (which.outcome == GOING_ON)]
            listed = f"number IN ({', '.join('?' * len(numbers))})"
            conditions.append(listed if which.outcome == GOING_ON else f"(outcome = 'interrupted' OR {listed})")
            values += numbers
        elif which.outcome is not None:
            conditions.append("outcome = ?")
            values.append(which.outcome)
        return conditions, values

    def _ordered(
        self, conditions: Sequence[str], values: Sequence[Any], edge: tuple[str, int], order: str, limit: int
    ) -> list[StoredRun]:
        return self._runs([*conditions, edge[0]], [*values, edge[1]], limit, order=order)

    def _is_any(self, conditions: Sequence[str], values: Sequence[Any], sign: str, number: int) -> bool:
        return bool(self._runs([*conditions, f"number {sign} ?"], [*values, number], 1))


def _place(result: StoredResult) -> Place:
    return result.position, result.repetition


def _just_before(place: Place) -> Place:
    return place[0], place[1] - 1


def _result_conditions(which: ResultFilter) -> tuple[list[str], list[Any]]:
    """A filter as conditions on the tables `results` and `cases`, and the values that they have open."""
    conditions: list[str] = []
    values: list[Any] = []
    if which.verdicts is not None:
        conditions.append(f"results.verdict IN ({', '.join('?' * len(which.verdicts))})")
        values += which.verdicts
    for column, wanted in (("category", which.category), ("language", which.language)):
        if wanted is not None:
            conditions.append(f"cases.{column} = ?")
            values.append(wanted)
    if which.text is not None:
        conditions.append("(instr(lower(cases.name), lower(?)) OR instr(lower(cases.description), lower(?)))")
        values += [which.text, which.text]
    return conditions, values
