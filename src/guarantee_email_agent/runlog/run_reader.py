"""Reads the run store: runs, their results, a page of either, one result with its transcript, the history of a case."""

from __future__ import annotations

import json
import re
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby, islice
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, NamedTuple, Self, TypeVar

from guarantee_email_agent.files.problems import suggestion
from guarantee_email_agent.runlog.database import BUSY_S, DECIDED, RUN_COUNTS, Database, RunOwners, StoreError, storable
from guarantee_email_agent.runlog.records import (
    INCOMPLETE,
    PARTS,
    Case,
    CaseResult,
    Check,
    GroupCounts,
    Input,
    Nearest,
    Place,
    ResultFilter,
    Run,
    SuiteKey,
    Usage,
)
from guarantee_email_agent.utils.text import printable, truncate

_Made = TypeVar("_Made")
LAST: Final = "last"
GREEN: Final = "green"

GOING_ON: Final = "going on"
_GROUPS: Final = f"""SELECT category, language, sum(ok), count(*) FROM (
        SELECT case_id, min(verdict = 'passed') AS ok FROM results WHERE run = ? {DECIDED})
    JOIN cases ON cases.id = case_id GROUP BY category, language ORDER BY category, language"""  # noqa: S608 - our own words

_PASSED: Final = "outcome = 'passed'"
_IN_ORDER: Final = "results.position, results.repetition"
_MAX_CAUSES: Final = 20
_NAMES_OF_CAUSE: Final = 8
_PAGE: Final = 1_000
_PAGE_OF_CASES: Final = 200
_ODD: Final = (ValueError, TypeError, AttributeError, LookupError, OverflowError, RecursionError)
_MAX_BLOB: Final = 256 << 20
"""Bytes of one text; nothing that we write comes near."""
_MAX_SUGGESTED: Final = 20_000
_MAX_LOOKED_AT: Final = 200
_RUN_ID: Final = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,99}")
_USAGE: Final = ", ".join(f"results.{name}" for name in Usage._fields)
_RUN_COLUMNS: Final = ", ".join(Run._fields)
_RUN_TABLES: Final = """runs LEFT JOIN distinct_mails ON distinct_mails.run = runs.number
    LEFT JOIN run_facts ON run_facts.run = runs.number"""
_RESULT_COLUMNS: Final = f"""cases.name, results.position, results.verdict, results.repetition, cases.category,
    cases.language, cases.description, results.duration_ms, step_times.milliseconds, taken_over.run, mails.digest,
    {_USAGE}, results.id, results.run, runs.id, runs.started, results.input_set, of_source.hash, results.source,
    results.response, results.judgement"""
_RESULT_TABLES: Final = """results JOIN runs ON runs.number = results.run JOIN cases ON cases.id = results.case_id
    LEFT JOIN blobs AS of_source ON of_source.id = results.source
    LEFT JOIN step_times ON step_times.result = results.id LEFT JOIN taken_over ON taken_over.result = results.id
    LEFT JOIN mails ON mails.source = results.source"""
_OF_PARTS: Final = {part: f"LEFT JOIN blobs AS {part} ON {part}.id = results.{part}" for part in PARTS}


class RunFilter(NamedTuple):
    """Which runs; None for any. outcome: as the store has it, or `going on`; those that were killed are interrupted."""

    command: str | None = None
    suite: str | None = None
    outcome: str | None = None


class Cause(NamedTuple):
    """A check that failed for one reason in so many cases. names: of the first of them."""

    text: str
    cases: int
    names: Sequence[str]


class RunStore:
    """Opened to read; a run may be written meanwhile. Every method raises StoreError."""

    def __init__(self, file: Path, *, busy_s: float = BUSY_S) -> None:
        """busy_s: how long to wait for a writer that lets nobody read."""
        self._database = Database(file, create=False, busy_s=busy_s)
        self._owners = RunOwners.beside(file)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        """What was read is told before it ends; whoever wrote the file may have put anything into its JSON."""
        self.close()
        if isinstance(error, _ODD):
            problem = f"what it holds cannot be told ({type(error).__name__}). Restore it from a backup"
            raise self._database.error("corrupt", problem) from error

    def close(self) -> None:
        self._database.close()

    # Runs ------------------------------------------------------------------------------------------------------------

    def runs(
        self, key: SuiteKey | None = None, *, command: str | None = None, before: int | None = None, limit: int = 50
    ) -> list[Run]:
        """The newest first. key, command: only such ones. before: only those below this number, for the next page."""
        conditions, values = _equal({"command": command, **_of_key(key)})
        if before is not None:
            conditions.append("number < ?")
            values.append(before)
        return self._runs(conditions, values, limit)

    def runs_up_to_a_whole_one(self, key: SuiteKey) -> Iterator[Run]:
        """The newest first, of whatever part of the suite; what comes before a run of all of it counts no more."""
        of_suite = key._replace(selection=())
        for run in self.runs(command=key.command, limit=_MAX_LOOKED_AT):
            if run.key._replace(selection=()) == of_suite:
                yield run
                if not run.selection and run.total >= run.planned:
                    return

    def find_run(self, name: str, key: SuiteKey | None = None) -> Run:
        """By its id or the unique beginning of one; `last` for the newest, `green` for the newest that passed its gate.

        key: which runs `last` and `green` choose among. Raises StoreError (`store_no_such_run`, `store_ambiguous_run`).
        """
        shown = printable(truncate(name, 60))
        if name in (LAST, GREEN):
            newest = self._newest(key, *([_PASSED] if name == GREEN else []))
            if newest is None:
                which = "run has passed its gate" if name == GREEN else "run is kept"
                of_suite = "" if key is None else f" of {printable(key.suite)}"
                raise self._database.error("no_such_run", f"no {which}{of_suite} yet")
            return newest
        if not _RUN_ID.fullmatch(name):
            problem = f"'{shown}' is no id of a run. Write one such as 20260118T100000-5f3a9c1e, {LAST} or {GREEN}"
            raise self._database.error("no_such_run", problem)
        # Ids hold no character beyond '~'.
        runs = self._runs(["id >= ? AND id < ?"], [name, f"{name}\x7f"], 3)
        if exact := [run for run in runs if run.id == name]:
            return exact[0]
        if len(runs) > 1:
            several = ", ".join(run.id for run in runs[:2])
            raise self._database.error("ambiguous_run", f"{shown} is the beginning of several runs: {several} …")
        if not runs:
            ids = [LAST, GREEN, *(run.id for run in self.runs())]
            hint = suggestion(name, ids) or ". 'show --list' has those that are kept"
            raise self._database.error("no_such_run", f"there is no run {shown}{hint}")
        return runs[0]

    def run(self, number: int) -> Run:
        """By its number, which there must be."""
        return self._runs(["number = ?"], [number], 1)[0]

    def find_green_before(self, run: Run) -> Run:
        """The newest earlier run of the same selection that passed its gate, else of the whole suite.

        Raises StoreError for none.
        """
        for key in (run.key, run.key._replace(selection=())):
            if newest := self._newest(key, _PASSED, f"number < {run.number:d}"):
                return newest
        problem = f"no run of {printable(run.suite)} has passed its gate before {run.id}"
        remedy = "Name a run by its id, or take the change back and run eval first"
        raise self._database.error("no_such_run", f"{problem}. {remedy}")

    def find_complete(self, key: SuiteKey) -> Run:
        """The newest run of a suite that came to its end with all results. Raises StoreError for none."""
        newest = self._newest(key, "outcome IN ('passed', 'failed', 'inconclusive')", "total >= planned")
        if newest is None:
            problem = f"no whole run of {printable(key.suite)} is kept yet"
            problem += ". Run it once without a baseline, or name a run by its id"
            raise self._database.error("no_such_run", problem)
        return newest

    def with_counts(self, run: Run) -> Run:
        """A run that goes on, with the counts of what ran until now; they stand in its row at its end alone."""
        if run.outcome is not None:
            return run
        total, passed, failed, error, invalid, tokens, cost_usd = self.rows(RUN_COUNTS, {"run": run.number})[0]
        counts = {"total": total, "passed": passed, "failed": failed, "error": error, "invalid": invalid}
        return run._replace(**counts, tokens=tokens, cost_usd=cost_usd)

    def missing_cases(self, run: Run) -> list[str]:
        """The cases that were announced and have no result; none where nothing was announced."""
        announced: list[str] = run.facts.get("announced", [])
        if not announced:
            return []
        rows = self.rows(f"SELECT position FROM results WHERE run = ? {DECIDED}", (run.number,))  # noqa: S608 - our own words
        ran = {position for (position,) in rows}
        return [name for position, name in enumerate(announced, 1) if position not in ran]

    def _newest(self, key: SuiteKey | None, *further: str) -> Run | None:
        """Of those that meet further conditions, too."""
        conditions, values = _equal(_of_key(key))
        return next(iter(self._runs([*conditions, *further], values, 1)), None)

    def _runs(self, conditions: Sequence[str], values: Sequence[Any], limit: int, *, skip: int = 0) -> list[Run]:
        where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
        order = "ORDER BY number DESC LIMIT ? OFFSET ?"
        query = f"SELECT {_RUN_COLUMNS} FROM {_RUN_TABLES} {where} {order}"  # noqa: S608 - our own words
        found = self._made(Run.of_row, self.rows(query, (*values, limit, skip)))
        return [self._ended_if_killed(run) for run in found]

    def _ended_if_killed(self, run: Run) -> Run:
        """A run without an outcome that no process works on was killed."""
        if run.outcome is not None or self._owners.is_alive(run.number):
            return run
        query = f"SELECT {_RUN_COLUMNS} FROM {_RUN_TABLES} WHERE number = ?"  # noqa: S608 - our own words
        now = [Run.of_row(row) for row in self.rows(query, (run.number,))]
        if now and now[0].outcome is not None:  # it came to its end just then
            return now[0]
        return self.with_counts(run)._replace(outcome="interrupted")

    # Results ---------------------------------------------------------------------------------------------------------

    def cases(self, run: Run, parts: Collection[str] = PARTS, *, undecided: bool = False) -> Iterator[Case]:
        """The cases of a run in its order, read page by page. parts: of `PARTS` that are read; others are None, and
        without the judgement a result has no checks.

        undecided: also those of which nobody knows whether they pass, since repetitions are missing. What results
        depended on is not read: `inputs` is None.
        """
        for results in self._by_position(run, parts, undecided=undecided):
            if run.command == "eval":
                yield Case(results)
            else:  # several records of a task are judged one by one; earlier versions kept no count of them
                yield from (Case((each._replace(of=max(each.of, len(results))),)) for each in results)

    def outcomes(self, run: Run, *, failed_only: bool = False, undecided: bool = False) -> Iterator[Case]:
        """The same without what happened; all records of a task are one case.

        failed_only: none that passed in every repetition.
        """
        return map(Case, self._by_position(run, (), failed_only=failed_only, undecided=undecided))

    def _by_position(
        self, run: Run, parts: Collection[str], *, failed_only: bool = False, undecided: bool = False
    ) -> Iterator[tuple[CaseResult, ...]]:
        condition = "results.run = ? AND results.position BETWEEN ? AND ?"
        if failed_only:
            condition += " AND results.position IN (SELECT position FROM results WHERE run = ? AND verdict != 'passed')"
        for page in self._pages(run, _PAGE_OF_CASES if parts else _PAGE):
            values = (run.number, *page, *((run.number,) if failed_only else ()))
            for _, found in groupby(self._results(condition, values, parts=parts), key=attrgetter("position")):
                results = tuple(found)
                if undecided or len(results) >= run.repeat or not Case(results).passed:
                    yield results

    def passed_by_name(self, run: Run) -> dict[str, bool]:
        """Whether each case of a run passed, in every repetition, in the order of the run."""
        query = f"""SELECT name, min(verdict = 'passed') FROM results JOIN cases ON cases.id = results.case_id
            WHERE run = ? AND position BETWEEN ? AND ? {DECIDED} ORDER BY position"""  # noqa: S608 - our own words
        rows = (row for page in self._pages(run, _PAGE) for row in self.rows(query, (run.number, *page)))
        return {name: bool(passed) for name, passed in rows}

    def _pages(self, run: Run, size: int) -> Iterator[tuple[int, int]]:
        """The first and last position of each page of so many cases."""
        query = """SELECT min(position), max(position) FROM (SELECT DISTINCT position FROM results
            WHERE run = ? AND position > ? ORDER BY position LIMIT ?)"""
        last = 0
        while True:
            ((first, end),) = self.rows(query, (run.number, last, size))
            if first is None:
                return
            yield first, (last := end)

    def sources(self, run: Run) -> dict[str, bytes | None]:
        """By each case's name the SHA-256 of its source; None where none was kept, as of an invalid file."""
        return dict(
            self.rows(
                """SELECT cases.name, hash FROM results JOIN cases ON cases.id = case_id
                LEFT JOIN blobs ON blobs.id = source WHERE run = ?""",
                (run.number,),
            )
        )

    def find_case(self, run: Run, name: str) -> list[CaseResult]:
        """Every repetition of one case of a run, with everything that happened, or one record as `Case` names it.

        Raises StoreError (`store_no_such_case`) for none of that name.
        """
        if found := self.results_of_case(run, name, PARTS):
            if run.command == "eval":
                return found
            counts = Counter(each.position for each in found)  # as `cases` has it
            return [each._replace(of=max(each.of, counts[each.position])) for each in found]
        if (
            (of_task := _OF_SEVERAL.fullmatch(name))
            and self.results_of_case(run, of_task[1])
            and (record := [each for each in self.find_case(run, of_task[1]) if Case((each,)).name == name])
        ):
            return record
        near = suggestion(name, islice(self.passed_by_name(run), _MAX_SUGGESTED))
        problem = f"there is no '{printable(truncate(name, 60))}' in the run {run.id}{near}"
        raise self._database.error("no_such_case", problem)

    def results_of_case(self, run: Run, name: str, parts: Collection[str] = ()) -> list[CaseResult]:
        """Every repetition of one case of a run."""
        condition = "results.run = ? AND results.case_id IN (SELECT id FROM cases WHERE name = ?)"
        return self._results(condition, (run.number, name), parts=parts)

    def result(self, number: int) -> CaseResult:
        """By the id of its place, which there must be, with what happened."""
        return self._results("results.id = ?", (number,), parts=PARTS)[0]

    def history(self, name: str, *, limit: int = 50) -> list[CaseResult]:
        """The results of one case in all runs, the newest first, without what happened."""
        condition = "results.case_id IN (SELECT id FROM cases WHERE name = ?)"
        return self._results(condition, (name, limit), "results.run DESC, results.repetition DESC LIMIT ?")

    def _results(
        self, condition: str, values: Sequence[Any], order: str = _IN_ORDER, *, parts: Collection[str] = ()
    ) -> list[CaseResult]:
        columns = "".join(f", {part}.data" if part in parts else ", NULL" for part in PARTS)
        tables = " ".join([_RESULT_TABLES, *(_OF_PARTS[part] for part in parts)])
        query = f"SELECT {_RESULT_COLUMNS}{columns} FROM {tables} WHERE {condition} ORDER BY {order}"  # noqa: S608
        return self._made(partial(self._case_result, is_judged="judgement" in parts), self.rows(query, values))

    def _case_result(self, row: Sequence[Any], *, is_judged: bool) -> CaseResult:
        """is_judged: whether the judgement was read."""
        verdict, times, origin, mail = row[2], *row[8:11]
        place, (source, *others) = Place(*row[18 : -len(PARTS)]), row[-len(PARTS) :]
        request, response, trace, judged = (
            None if each is None else json.loads(self._decompress(each)) for each in others
        )
        judged = judged if isinstance(judged, dict) else {}
        listed = judged.pop("checks", None)
        if listed is None and is_judged and verdict != "passed":
            listed = [check._asdict() for check in self.checks(place.id)]
        harm = () if verdict == "passed" else judged.pop("harmful", None)
        return CaseResult(
            **dict(zip(CaseResult._fields, row[:7], strict=False)),
            file=str(judged.pop("file", "")),
            duration_ms=float(row[7]),
            usage=Usage(*(each and each + 0 for each in row[11:18])),  # text is no number
            checks=tuple(map(Check.of_dict, listed or ())),
            harm=None if harm is None else tuple(harm),
            nearest=tuple(Nearest(**each) for each in judged.pop("nearest", ())),
            needs_review=judged.pop("needs_review", False),
            must=judged.pop("must", False),
            source=None if source is None else self._decompress(source),
            request=request,
            response=response,
            trace=trace,
            judgement=judged or None,
            step_ms=() if times is None else tuple(json.loads(times)),
            mail=mail,
            taken_over=origin or "",
            of=int(judged.pop("of", 1)),
            place=place,
        )

    def checks(self, result: int) -> list[Check]:
        """The checks that a result failed, by the id of its place, in their order."""
        query = "SELECT name, reason, expected, actual FROM checks WHERE result = ? ORDER BY number"
        return [Check(*row) for row in self.rows(query, (result,))]

    def inputs(self, input_set: int) -> list[Input]:
        """What results depended on, by kind and name; with their content where it is kept."""
        query = """SELECT kind, name, inputs.hash, data FROM inputs LEFT JOIN blobs ON blobs.hash = inputs.hash
            WHERE input_set = ? ORDER BY kind, name"""
        return [
            Input(kind, name, digest, None if data is None else self._decompress(data))
            for kind, name, digest, data in self.rows(query, (input_set,))
        ]

    def input_set_of(self, run: Run) -> int | None:
        """The set that all results of a run share; None where there is none, or nobody knows it of one."""
        found = self.rows("SELECT DISTINCT input_set FROM results WHERE run = ?", (run.number,))
        return found[0][0] if len(found) == 1 else None

    def incomplete_inputs(self, run: Run) -> list[str]:
        """What is not known of what the verdicts of a run depended on."""
        sets = "SELECT input_set FROM results WHERE run = ?"
        query = f"SELECT DISTINCT name FROM inputs WHERE kind = ? AND input_set IN ({sets}) ORDER BY name"  # noqa: S608
        return [name for (name,) in self.rows(query, (INCOMPLETE, run.number))]

    def taken_over(self, run: Run) -> list[tuple[str, int]]:
        """The runs that gave results of this one, with the number of its cases that each gave."""
        query = """SELECT taken_over.run, count(DISTINCT position) FROM taken_over JOIN results ON results.id = result
            WHERE results.run = ? GROUP BY 1 ORDER BY 2 DESC, 1"""
        return [(name, count) for name, count in self.rows(query, (run.number,))]

    def input_set_digest(self, input_set: int) -> bytes:
        """By which two sets are told apart."""
        digest: bytes = self.rows("SELECT hash FROM input_sets WHERE id = ?", (input_set,))[0][0]
        return digest

    def _made(self, make: Callable[[Sequence[Any]], _Made], rows: Iterable[Sequence[Any]]) -> list[_Made]:
        """What is made of each row; whoever wrote the file may have put anything there."""
        try:
            return [make(row) for row in rows]
        except _ODD:
            raise self._database.error("corrupt", "it is damaged. Restore it from a backup") from None

    def _decompress(self, data: bytes) -> bytes:
        unpacking = zlib.decompressobj()
        try:
            content = unpacking.decompress(data, _MAX_BLOB)
        except zlib.error:
            raise self._database.error("corrupt", "it is damaged. Restore it from a backup") from None
        if not unpacking.eof:
            problem = f"it holds a text of more than {_MAX_BLOB >> 20} MiB, or half of one. Restore it from a backup"
            raise self._database.error("corrupt", problem)
        return content

    # A page of runs or results ----------------------------------------------------------------------------------------

    def page_of_runs(self, which: RunFilter, page: int, limit: int) -> tuple[list[Run], bool]:
        """The newest first, and whether there are more. page: from 1."""
        found = self._runs(*self._run_conditions(which), limit + 1, skip=(page - 1) * limit)
        return found[:limit], len(found) > limit

    def suites(self) -> list[tuple[str, str]]:
        """Command and suite of all that is kept."""
        rows = self.rows("SELECT DISTINCT command, suite FROM runs ORDER BY command, suite", ())
        return [(command, suite) for command, suite in rows]

    def group_counts(self, run: Run) -> list[GroupCounts]:
        """By category and language, in the order of their names."""
        return [GroupCounts(*row) for row in self.rows(_GROUPS, (run.number,))]

    def causes(self, run: Run) -> list[Cause]:
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
            for name, reason, count in self.rows(query, (run.number, _MAX_CAUSES))
        ]

    def page_of_results(
        self, run: Run, which: ResultFilter, page: int = 1, *, limit: int
    ) -> tuple[list[CaseResult], int]:
        """In the order of the run, and how many fit on all pages. page: from 1."""
        filters, wanted = _result_conditions(which)
        condition = " AND ".join(["results.run = ?", *filters])
        found = self._results(
            condition, (run.number, *wanted, limit, (page - 1) * limit), f"{_IN_ORDER} LIMIT ? OFFSET ?"
        )
        query = f"SELECT count(*) FROM results JOIN cases ON cases.id = results.case_id WHERE {condition}"  # noqa: S608
        return found, self.rows(query, (run.number, *wanted))[0][0]

    def _run_conditions(self, which: RunFilter) -> tuple[list[str], list[Any]]:
        conditions, values = _equal({"command": which.command, "suite": which.suite})
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

    # Whatever else is asked -------------------------------------------------------------------------------------------

    def rows(self, query: str, values: Sequence[Any] | Mapping[str, int] = ()) -> list[tuple[Any, ...]]:
        """What a query gives."""
        with self._database.transaction("DEFERRED") as connection:
            bound = values if isinstance(values, Mapping) else storable(values)
            return connection.execute(query, bound).fetchall()


_OF_SEVERAL: Final = re.compile(r"(.+) \(\d+ of \d+\)", re.DOTALL)


def refuse_nameless(*runs: Run) -> None:
    """Raises StoreError for one of a sealed suite that was not opened: its cases have other names in each run."""
    for run in runs:
        if run.facts.get("manifest", {}).get("kind") == "sealed" and "opened" not in run.facts:
            problem = (
                f"{run.id} is of a sealed suite: nobody knows which result is of which mail. 'show' has its totals"
            )
            raise StoreError(problem, "store_sealed_run")


def _of_key(key: SuiteKey | None) -> dict[str, Any]:
    return {} if key is None else key._asdict() | {"selection": json.dumps(key.selection)}


def _equal(columns: Mapping[str, Any]) -> tuple[list[str], list[Any]]:
    """Conditions, and the values that they have open. columns: what each is to be; None for anything."""
    wanted = {column: value for column, value in columns.items() if value is not None}
    return [f"{column} = ?" for column in wanted], list(wanted.values())


def _result_conditions(which: ResultFilter) -> tuple[list[str], list[Any]]:
    """A filter as conditions on the tables `results` and `cases`."""
    conditions, values = _equal({"cases.category": which.category, "cases.language": which.language})
    if which.verdicts is not None:
        conditions.append(f"results.verdict IN ({', '.join('?' * len(which.verdicts))})")
        values += which.verdicts
    if which.text is not None:
        conditions.append("(instr(lower(cases.name), lower(?)) OR instr(lower(cases.description), lower(?)))")
        values += [which.text, which.text]
    return conditions, values
