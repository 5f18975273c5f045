"""What a page of runs or results asks of the store: filtered, a page at a time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from guarantee_email_agent.runlog.records import ALL_RESULTS, Check, GroupCounts, ResultFilter, StoredResult, StoredRun
from guarantee_email_agent.runlog.run_reader import RunStore

GOING_ON: Final = "going on"
_GROUPS: Final = """SELECT category, language, sum(ok), count(*) FROM (
        SELECT case_id, min(verdict = 'passed') AS ok FROM results WHERE run = ? GROUP BY position)
    JOIN cases ON cases.id = case_id GROUP BY category, language ORDER BY category, language"""

_NAMES_OF_CAUSE: Final = 8


class RunFilter(NamedTuple):
    """Which runs; None for any. outcome: as the store has it, or `going on`; those that were killed are interrupted."""

    command: str | None = None
    suite: str | None = None
    outcome: str | None = None


ALL_RUNS: Final = RunFilter()


class Cause(NamedTuple):
    """A check that failed for one reason in so many cases. names: of the first of them."""

    text: str
    cases: int
    names: Sequence[str]


class RunSearch(RunStore):
    """Opened to read. Every method raises StoreError."""

    def page_of_runs(self, which: RunFilter = ALL_RUNS, page: int = 1, limit: int = 30) -> tuple[list[StoredRun], bool]:
        """The newest first, and whether there are more. page: from 1."""
        found = self._runs(*self._run_conditions(which), limit + 1, skip=(page - 1) * limit)
        return found[:limit], len(found) > limit

    def suites(self) -> list[tuple[str, str]]:
        """Command and suite of all that is kept."""
        rows = self.rows("SELECT DISTINCT command, suite FROM runs ORDER BY command, suite", ())
        return [(command, suite) for command, suite in rows]

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
        self, run: StoredRun, which: ResultFilter = ALL_RESULTS, page: int = 1, limit: int = 50
    ) -> tuple[list[StoredResult], int]:
        """In the order of the run, and how many fit on all pages. page: from 1."""
        filters, wanted = _result_conditions(which)
        condition = " AND ".join(["results.run = ?", *filters])
        order = "ORDER BY results.position, results.repetition LIMIT ? OFFSET ?"
        found = self._results(condition, order, (run.number, *wanted, limit, (page - 1) * limit))
        query = f"SELECT count(*) FROM results JOIN cases ON cases.id = results.case_id WHERE {condition}"  # noqa: S608
        return found, self.rows(query, (run.number, *wanted))[0][0]

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
