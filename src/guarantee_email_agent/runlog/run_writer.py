"""Keeps one run in the store while it goes on, so that a kill leaves what ran until then."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any, Final

from guarantee_email_agent.runlog.database import RUN_COUNTS, Database, RunOwners, StoreError, storable, temporary_store
from guarantee_email_agent.runlog.records import PARTS, RUN_HEAD, CaseResult, InputSet, Run, Usage

BATCH: Final = 256
_BATCH_S: Final = 1.0
_MAX_WAITING: Final = 10_000
"""Results that are held while the store cannot be written; further ones are lost to it."""
_RETRY_S: Final = 5.0
_MAX_CACHED: Final = 10_000

_COLUMNS, _VALUES = ", ".join(RUN_HEAD), ", ".join("?" * len(RUN_HEAD))
_INSERT_RUN: Final = f"INSERT INTO runs ({_COLUMNS}) VALUES ({_VALUES})"  # noqa: S608 - no values
_MAPPINGS: Final = ("parameters", "options")
# What an interrupted flush wrote is there already.
_INSERT_RESULT: Final = f"INSERT OR IGNORE INTO results VALUES (NULL{', ?' * 19})"  # noqa: S608 - no values
_COPIED: Final = "repetition, case_id, verdict, duration_ms, calls, input_tokens, output_tokens, cache_read_tokens, "
_COPIED_TOO: Final = "cache_write_tokens, cost_usd, latency_ms, input_set, source, request, response, trace, judgement"
# By position and repetition, since the ids of what is inserted are not known before.
_NEW_ID: Final = """(SELECT new.id FROM results AS new WHERE new.run = :run AND new.position = reused.position
    AND new.repetition = old.repetition)"""
_TAKE_OVER: Final = (
    f"""INSERT INTO results (run, position, {_COPIED}{_COPIED_TOO})
        SELECT :run, reused.position, {_COPIED}{_COPIED_TOO} FROM reused
        JOIN results AS old ON old.id = reused.result""",  # noqa: S608 - our own words
    f"""INSERT INTO taken_over SELECT {_NEW_ID}, coalesce(taken_over.run, runs.id) FROM reused
        JOIN results AS old ON old.id = reused.result JOIN runs ON runs.number = old.run
        LEFT JOIN taken_over ON taken_over.result = old.id""",  # noqa: S608 - our own words
    f"""INSERT INTO checks SELECT {_NEW_ID}, number, name, reason, expected, actual FROM reused
        JOIN results AS old ON old.id = reused.result JOIN checks ON checks.result = old.id""",  # noqa: S608
    f"""INSERT INTO step_times SELECT {_NEW_ID}, milliseconds FROM reused
        JOIN results AS old ON old.id = reused.result JOIN step_times ON step_times.result = old.id""",  # noqa: S608
)
_COUNT_RESULTS: Final = f"""UPDATE runs SET (total, passed, failed, error, invalid, tokens, cost_usd) = ({RUN_COUNTS})
    WHERE number = :run"""  # noqa: S608 - our own words
_SLACK: Final = 10
"""Whatever no run needs any more is looked for in the whole file, so one run in so many (percent of those kept) does
it."""

# Of each suite the newest run that passed stays: others are compared with it. So does each opening of a sealed one.
_OLD: Final = """SELECT number FROM runs WHERE number NOT IN (
        SELECT max(number) FROM runs WHERE outcome = 'passed' GROUP BY command, suite, selection, agent, llm)
        AND number NOT IN (SELECT run FROM run_facts WHERE json_extract(facts, '$.opened'))
    ORDER BY number DESC LIMIT -1 OFFSET ?"""


class RunWriter:
    """One run. Threads may call it. A store that fails while the run goes on is told to `warn`, and ends no run."""

    def __init__(
        self,
        file: Path,
        run: Run,
        warn: Callable[[str], None],
        *,
        at_once: bool = False,
        resume: tuple[int, Iterable[tuple[int, int]]] | None = None,
        take_over: Iterable[tuple[int, int]] | None = None,
        keep_runs: int | None = None,
        announced: Sequence[str] = (),
    ) -> None:
        """at_once: every result is on disk before `add` returns, for results that are paid for; else in batches.

        resume: the number of an earlier run that goes on, and the positions and ids of those results that stay; its
        others go. take_over: positions, and ids of results of other runs that count for this one, too. keep_runs: the
        newest so many runs are kept, and those that are older go. announced: the names of all cases by position, so
        that a reader knows those that did not run. Raises StoreError.
        """
        self._run, self._warn = run, warn
        self._announced = {"announced": list(announced)} if announced else {}
        self._end: Run | None = None
        self._keep_runs = keep_runs
        self._batch = 1 if at_once else BATCH
        self._lock = threading.Lock()
        self._waiting: list[CaseResult] = []
        self._lost = 0
        self._is_over = False
        self._failed_at: float | None = None
        self._blobs: dict[bytes, int] = {}
        self._cases: dict[tuple[str, str, str, str], int] = {}
        self._input_sets: dict[bytes, int] = {}
        self.number = 0
        self._database = Database(file, create=True)
        self._owners = RunOwners.beside(file)
        try:
            if at_once:
                self._database.connection.execute("PRAGMA synchronous = FULL")
            with self._database.transaction() as connection:
                mark_killed_runs(connection, self._owners)
                if resume is not None:
                    self._refuse_what_is_resumed(connection, resume[0])
                self.number = _begin(connection, run) if resume is None else _go_on(connection, *resume, run)
                if take_over is not None and not _take_over(connection, self.number, take_over):
                    problem = "another process has deleted runs just now whose results are taken over. Run it again"
                    raise self._database.error("deleted_elsewhere", problem)
                _keep_facts(connection, self.number, self._announced)
                self._owners.claim(self.number)  # before anybody can see the run
        except BaseException:
            if self.number:  # it is the next one's
                self._owners.release(self.number)
            self._database.close()
            raise
        self._written_at = time.monotonic()

    def _refuse_what_is_resumed(self, connection: sqlite3.Connection, number: int) -> None:
        """Two processes may have read the same interrupted run; it goes on in one of them."""
        row = connection.execute("SELECT outcome FROM runs WHERE number = ?", (number,)).fetchone()
        if row not in (("interrupted",), ("crashed",)):
            problem = "another process has resumed or deleted the run just now. See 'show --list'"
            raise self._database.error("resumed_elsewhere", problem)

    def add(self, *results: CaseResult) -> None:
        """Keep results, now or with the next batch."""
        with self._lock:
            if self._is_over:  # a thread that nobody waited for
                return
            room = _MAX_WAITING - len(self._waiting)
            self._waiting += results[:room]
            self._lost += len(results[room:])
            now = time.monotonic()
            is_due = len(self._waiting) >= self._batch or now - self._written_at >= _BATCH_S
            if is_due and (self._failed_at is None or now - self._failed_at >= _RETRY_S):
                self._flush()

    def finish(self, end: Run) -> None:
        """Write what waits, and how the run ended. end: the run with its outcome."""
        with self._lock:
            self._is_over, self._end = True, end
            self._flush(end)
            if self._waiting or self._lost:
                count = len(self._waiting) + self._lost
                self._warn(f"{self._database.file}: {count} results of this run are not in the run store")
            elif self._keep_runs is not None:
                try:
                    delete_old_runs(self._database, self._keep_runs, self._owners)
                except StoreError as error:
                    self._warn(f"Old runs cannot be deleted: {error.message}")
            self._owners.release(self.number)
            self._database.close()

    def readable(self, resources: ExitStack) -> tuple[Path, int]:
        """Where the finished run can be read, and its number there.

        That is a temporary store where this one could not take all of it: no report is lost for a full disk. Raises
        ConfigurationError where there can be none, and StoreError.
        """
        if self._failed_at is None:
            return self._database.file, self.number
        from guarantee_email_agent.runlog.run_reader import RunStore  # few runs need it

        kept = temporary_store(resources)
        writer = RunWriter(kept.file, self._run, self._warn)
        with suppress(StoreError), RunStore(self._database.file) as store:
            for case in store.cases(store.run(self.number), undecided=True):
                writer.add(*case.runs)
        writer.add(*self._waiting)
        if self._end is not None:
            writer.finish(self._end)
        return kept.file, writer.number

    def _flush(self, end: Run | None = None) -> None:
        try:
            self._database.check_in_place()
            with self._database.transaction() as connection:
                for result in self._waiting:
                    self._write(connection, result)
                if end is not None:
                    _end(connection, self.number, end, self._announced)
        except BaseException as error:
            # Ids that were taken in the transaction are none.
            for cache in (self._blobs, self._cases, self._input_sets):
                cache.clear()
            if not isinstance(error, StoreError):
                raise
            if self._failed_at is None or end is not None:
                self._warn(f"The run store fails, and the run goes on without it: {error.message}")
            self._failed_at = time.monotonic()
            return
        self._waiting.clear()
        self._failed_at = None
        self._written_at = time.monotonic()

    def _write(self, connection: sqlite3.Connection, result: CaseResult) -> None:
        case_id = self._case_id(connection, result)
        blobs = (
            result.source,
            *map(_as_json, (result.request, result.response, result.trace, result.as_judged() or None)),
        )
        usage = result.usage
        ids = [None if content is None else self._blob_id(connection, content) for content in blobs]
        if result.mail is not None and ids[0] is not None:
            connection.execute("INSERT OR IGNORE INTO mails VALUES (?, ?)", (ids[0], result.mail))
        cursor = connection.execute(
            _INSERT_RESULT,
            (
                self.number,
                result.position,
                result.repetition,
                case_id,
                result.verdict,
                round(result.duration_ms, 3),
                *usage[:5],
                usage.cost_usd,
                usage.latency_ms,
                None if result.inputs is None else self._input_set_id(connection, result.inputs),
                *ids,
            ),
        )
        if (failed := result.failed_checks) and cursor.rowcount:
            rows = [(cursor.lastrowid, number, *storable(check[:4])) for number, check in enumerate(failed, 1)]
            connection.executemany("INSERT INTO checks VALUES (?, ?, ?, ?, ?, ?)", rows)
        if result.taken_over and cursor.rowcount:
            connection.execute("INSERT INTO taken_over VALUES (?, ?)", (cursor.lastrowid, result.taken_over))
        if result.step_ms and cursor.rowcount:
            times = (cursor.lastrowid, f"[{','.join(map(_milliseconds, result.step_ms))}]")
            connection.execute("INSERT INTO step_times VALUES (?, ?)", times)

    def _case_id(self, connection: sqlite3.Connection, result: CaseResult) -> int:
        case = storable((result.name, result.category, result.language, result.description))
        if (known := self._cases.get(case)) is not None:
            return known
        which = "name = ? AND category = ? AND language = ? AND description = ?"
        row = connection.execute(f"SELECT id FROM cases WHERE {which}", case).fetchone()  # noqa: S608 - our own words
        if row is None:
            row = (connection.execute("INSERT INTO cases VALUES (NULL, ?, ?, ?, ?)", case).lastrowid,)
        return _remember(self._cases, case, row[0])

    def _blob_id(self, connection: sqlite3.Connection, content: bytes) -> int:
        digest = hashlib.sha256(content).digest()
        if (known := self._blobs.get(digest)) is not None:
            return known
        row = connection.execute("SELECT id FROM blobs WHERE hash = ?", (digest,)).fetchone()
        if row is None:
            # A window larger than the text costs more than the compression.
            window = min(max(len(content).bit_length(), 10), zlib.MAX_WBITS)
            blob = (digest, len(content), zlib.compress(content, wbits=window))
            row = (connection.execute("INSERT INTO blobs VALUES (NULL, ?, ?, ?)", blob).lastrowid,)
        return _remember(self._blobs, digest, row[0])

    def _input_set_id(self, connection: sqlite3.Connection, inputs: InputSet) -> int:
        if (known := self._input_sets.get(inputs.digest)) is not None:
            return known
        row = connection.execute("SELECT id FROM input_sets WHERE hash = ?", (inputs.digest,)).fetchone()
        if row is None:
            row = (connection.execute("INSERT INTO input_sets VALUES (NULL, ?)", (inputs.digest,)).lastrowid,)
            rows = [storable((row[0], each.kind, each.name, each.digest)) for each in inputs.inputs]
            connection.executemany("INSERT INTO inputs VALUES (?, ?, ?, ?)", rows)
            for each in inputs.inputs:
                if each.content is not None:
                    self._blob_id(connection, each.content)
        return _remember(self._input_sets, inputs.digest, row[0])


def mark_killed_runs(connection: sqlite3.Connection, owners: RunOwners) -> None:
    """Runs without an end whose process is gone were interrupted."""
    for (number,) in connection.execute("SELECT number FROM runs WHERE outcome IS NULL").fetchall():
        if not owners.is_alive(number):
            connection.execute(_COUNT_RESULTS, {"run": number})
            connection.execute("UPDATE runs SET outcome = 'interrupted' WHERE number = ?", (number,))


def _begin(connection: sqlite3.Connection, run: Run) -> int:
    number = connection.execute(_INSERT_RUN, _head(run)).lastrowid
    assert number is not None
    return number


def _head(run: Run) -> tuple[Any, ...]:
    lists = {name: json.dumps(dict(getattr(run, name)), sort_keys=True, default=str) for name in _MAPPINGS}
    values = run._asdict() | lists | {"selection": json.dumps(run.selection)}
    return storable(values[name] for name in RUN_HEAD)


def _go_on(connection: sqlite3.Connection, number: int, kept: Iterable[tuple[int, int]], run: Run) -> int:
    connection.execute("UPDATE results SET position = -id WHERE run = ?", (number,))
    connection.executemany("UPDATE results SET position = ? WHERE id = ?", kept)
    gone = "run = ? AND position < 0"
    connection.execute(f"DELETE FROM checks WHERE result IN (SELECT id FROM results WHERE {gone})", (number,))  # noqa: S608
    connection.execute(f"DELETE FROM results WHERE {gone}", (number,))  # noqa: S608 - our own words
    for table in ("distinct_mails", "run_facts"):
        connection.execute(f"DELETE FROM {table} WHERE run = ?", (number,))  # noqa: S608 - our own words
    (run_id, started) = connection.execute("SELECT id, started FROM runs WHERE number = ?", (number,)).fetchone()
    changed = f"outcome = NULL, exit_code = NULL, ended = NULL, ({_COLUMNS}) = ({_VALUES})"
    values = (*_head(run._replace(id=run_id, started=started)), number)
    connection.execute(f"UPDATE runs SET {changed} WHERE number = ?", values)  # noqa: S608 - our own words
    return number


def _take_over(connection: sqlite3.Connection, number: int, results: Iterable[tuple[int, int]]) -> bool:
    """Whether all of them are there."""
    connection.execute("CREATE TEMP TABLE reused (position INTEGER, result INTEGER PRIMARY KEY)")
    connection.executemany("INSERT INTO reused VALUES (?, ?)", results)
    (wanted,) = connection.execute("SELECT count(*) FROM reused").fetchone()
    for statement in _TAKE_OVER:
        connection.execute(statement, {"run": number})
    connection.execute("DROP TABLE reused")
    (found,) = connection.execute("SELECT count(*) FROM results WHERE run = ?", (number,)).fetchone()
    return bool(found == wanted)


def keep_facts(file: Path, number: int, facts: Mapping[str, Any]) -> None:
    """All that is known of a run that has ended. Raises StoreError."""
    with closing(Database(file, create=True)) as database, database.transaction() as connection:
        _keep_facts(connection, number, facts)


def _keep_facts(connection: sqlite3.Connection, number: int, facts: Mapping[str, Any]) -> None:
    if facts:
        text = json.dumps(dict(facts), default=str)
        connection.execute("INSERT OR REPLACE INTO run_facts VALUES (?, ?)", (number, text))


def _end(connection: sqlite3.Connection, number: int, end: Run, announced: Mapping[str, Any]) -> None:
    connection.execute(_COUNT_RESULTS, {"run": number})
    if (told := end.facts.get("usage")) is not None:  # what came to no result is paid for, too
        usage = Usage(**told)
        tokens = None if (counts := usage.tokens()) is None else sum(counts.values())
        taken = (tokens, usage.cost_usd, number)
        connection.execute("UPDATE runs SET tokens = ?, cost_usd = ? WHERE number = ?", taken)
    (is_whole,) = connection.execute("SELECT total >= planned FROM runs WHERE number = ?", (number,)).fetchone()
    if announced and is_whole:
        connection.execute("DELETE FROM run_facts WHERE run = ?", (number,))
    _keep_facts(connection, number, {**end.facts, **({} if is_whole else announced)})
    if end.mails is not None:
        connection.execute("INSERT INTO distinct_mails VALUES (?, ?, ?)", (number, end.mails, end.mails_passed))
    connection.execute(
        "UPDATE runs SET outcome = ?, exit_code = ?, ended = ?, duration_s = duration_s + ?, git_revision = ?, "
        "git_dirty = ? WHERE number = ?",
        (end.outcome, end.exit_code, end.ended, end.duration_s, end.git_revision, end.git_dirty, number),
    )


def _as_json(value: Any) -> bytes | None:
    return None if value is None else _ENCODER.encode(value).encode()


_ENCODER: Final = json.JSONEncoder(separators=(",", ":"), default=str)


def _milliseconds(each: float | None) -> str:
    """As JSON has it."""
    if each is None:
        return "null"
    return f"{each:.3g}" if each < 1000 else str(round(each))


def _remember(cache: dict[Any, int], key: Any, value: int) -> int:
    if len(cache) >= _MAX_CACHED:  # so that memory does not grow with the run
        cache.clear()
    cache[key] = value
    return value


def delete_old_runs(database: Database, keep: int, owners: RunOwners) -> int:
    """Delete all but the newest `keep` runs and the last green ones, and what only they needed; how many.

    Raises StoreError.
    """
    with database.transaction() as connection:
        (count,) = connection.execute("SELECT count(*) FROM runs").fetchone()
        if count <= keep + keep * _SLACK // 100:
            return 0
        old = connection.execute(_OLD, (keep,)).fetchall()
        gone = [row for row in old if not owners.is_alive(row[0])]
        connection.executemany("DELETE FROM checks WHERE result IN (SELECT id FROM results WHERE run = ?)", gone)
        connection.executemany("DELETE FROM results WHERE run = ?", gone)
        connection.executemany("DELETE FROM runs WHERE number = ?", gone)
        connection.execute("DELETE FROM cases WHERE id NOT IN (SELECT case_id FROM results)")
        sets = "SELECT input_set FROM results WHERE input_set IS NOT NULL"
        connection.execute(f"DELETE FROM input_sets WHERE id NOT IN ({sets})")  # noqa: S608 - our own words
        connection.execute("DELETE FROM inputs WHERE input_set NOT IN (SELECT id FROM input_sets)")
        used = " UNION ".join(f"SELECT {part} FROM results WHERE {part} IS NOT NULL" for part in PARTS)  # noqa: S608
        kept = "SELECT hash FROM inputs"
        connection.execute(f"DELETE FROM blobs WHERE id NOT IN ({used}) AND hash NOT IN ({kept})")  # noqa: S608
    if gone:
        database.connection.execute("PRAGMA incremental_vacuum").fetchall()
    return len(gone)
