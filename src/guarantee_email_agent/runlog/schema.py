"""The tables of the run store, and the way of a file from an earlier version to today's.

docs/run-store.md explains them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Final

APPLICATION_ID: Final = 0x47454152  # GEAR
SCHEMA_VERSION: Final = 6
_TABLES: Final = frozenset(
    {
        *("runs", "blobs", "input_sets", "inputs", "cases", "results", "checks"),
        *("step_times", "distinct_mails", "taken_over", "mails", "run_facts"),
    }
)

# A run; `number` counts up, so that the order of runs needs no clock. outcome is NULL until the run has ended.
_RUNS: Final = """CREATE TABLE runs (
        number INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        command TEXT NOT NULL,
        suite TEXT NOT NULL,
        selection TEXT NOT NULL,
        agent TEXT NOT NULL,
        llm TEXT NOT NULL,
        model TEXT NOT NULL,
        parameters TEXT NOT NULL,
        options TEXT NOT NULL,
        repeat INTEGER NOT NULL,
        threshold REAL NOT NULL,
        require_proof INTEGER NOT NULL,
        package_version TEXT NOT NULL,
        git_revision TEXT,
        git_dirty INTEGER,
        planned INTEGER NOT NULL,
        started TEXT NOT NULL,
        ended TEXT,
        duration_s REAL NOT NULL DEFAULT 0,
        outcome TEXT CHECK (outcome IN ('passed', 'failed', 'inconclusive', 'interrupted', 'crashed')),
        exit_code INTEGER,
        total INTEGER NOT NULL DEFAULT 0,
        passed INTEGER NOT NULL DEFAULT 0,
        failed INTEGER NOT NULL DEFAULT 0,
        error INTEGER NOT NULL DEFAULT 0,
        invalid INTEGER NOT NULL DEFAULT 0,
        tokens INTEGER NOT NULL DEFAULT 0,
        cost_usd REAL DEFAULT 0
    )"""
# One line a result, for people with a SQL prompt.
_RESULT_LIST: Final = """CREATE VIEW result_list AS
        SELECT runs.id AS run, runs.number AS run_number, cases.name, cases.category, cases.language,
               results.repetition, results.verdict, results.duration_ms, results.cost_usd, cases.description,
               results.id AS result
        FROM results JOIN runs ON runs.number = results.run JOIN cases ON cases.id = results.case_id"""

_VERSION_4: Final = (
    _RUNS,
    "CREATE INDEX runs_of_suite ON runs (command, suite, selection, agent, llm, number)",
    "CREATE INDEX runs_without_end ON runs (number) WHERE outcome IS NULL",
    # Content by its SHA-256, compressed with zlib, kept once.
    "CREATE TABLE blobs (id INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, size INTEGER NOT NULL, data BLOB NOT NULL)",
    # What verdicts depend on, name by name. The content is the blob of that hash, where it is kept.
    "CREATE TABLE input_sets (id INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE)",
    """CREATE TABLE inputs (
        input_set INTEGER NOT NULL REFERENCES input_sets (id),
        kind TEXT NOT NULL,
        name TEXT NOT NULL,
        hash BLOB NOT NULL,
        PRIMARY KEY (input_set, kind, name)
    ) WITHOUT ROWID""",
    # A scenario or task under one name and one description; a changed description is a further row.
    """CREATE TABLE cases (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL,
        category TEXT NOT NULL,
        language TEXT NOT NULL,
        description TEXT NOT NULL,
        UNIQUE (name, category, language, description)
    )""",
    """CREATE TABLE results (
        id INTEGER PRIMARY KEY,
        run INTEGER NOT NULL REFERENCES runs (number),
        position INTEGER NOT NULL,
        repetition INTEGER NOT NULL,
        case_id INTEGER NOT NULL REFERENCES cases (id),
        verdict TEXT NOT NULL CHECK (verdict IN ('passed', 'failed', 'error', 'invalid')),
        duration_ms REAL NOT NULL,
        calls INTEGER NOT NULL,
        input_tokens INTEGER NOT NULL,
        output_tokens INTEGER NOT NULL,
        cache_read_tokens INTEGER NOT NULL,
        cache_write_tokens INTEGER NOT NULL,
        cost_usd REAL,
        latency_ms INTEGER NOT NULL,
        input_set INTEGER REFERENCES input_sets (id),
        source INTEGER REFERENCES blobs (id),
        request INTEGER REFERENCES blobs (id),
        response INTEGER REFERENCES blobs (id),
        trace INTEGER REFERENCES blobs (id),
        judgement INTEGER REFERENCES blobs (id)
    )""",
    "CREATE UNIQUE INDEX results_of_run ON results (run, position, repetition)",
    "CREATE INDEX results_of_case ON results (case_id, run)",
    """CREATE TABLE checks (
        result INTEGER NOT NULL REFERENCES results (id),
        number INTEGER NOT NULL,
        name TEXT NOT NULL,
        reason TEXT NOT NULL,
        expected TEXT,
        actual TEXT,
        PRIMARY KEY (result, number)
    ) WITHOUT ROWID""",
    _RESULT_LIST,
    # Of the steps of a trace, as a JSON list: within it they would make every run's another one.
    "CREATE TABLE step_times (result INTEGER PRIMARY KEY REFERENCES results (id), milliseconds TEXT NOT NULL)",
    """CREATE TRIGGER step_times_of_results AFTER DELETE ON results BEGIN
        DELETE FROM step_times WHERE result = old.id; END""",
    # Of a suite's run, since copies prove nothing.
    """CREATE TABLE distinct_mails (
        run INTEGER PRIMARY KEY REFERENCES runs (number),
        mails INTEGER NOT NULL,
        mails_passed INTEGER NOT NULL
    )""",
    """CREATE TRIGGER distinct_mails_of_runs AFTER DELETE ON runs BEGIN
        DELETE FROM distinct_mails WHERE run = old.number; END""",
    # Of results that another run gave, its id; and of the source of a scenario a digest that copies of it share, so
    # that a result is taken over and counted without reading its scenario.
    "CREATE TABLE taken_over (result INTEGER PRIMARY KEY REFERENCES results (id), run TEXT NOT NULL)",
    """CREATE TRIGGER taken_over_of_results AFTER DELETE ON results BEGIN
        DELETE FROM taken_over WHERE result = old.id; END""",
    "CREATE TABLE mails (source INTEGER PRIMARY KEY REFERENCES blobs (id), digest BLOB NOT NULL)",
    "CREATE TRIGGER mails_of_blobs AFTER DELETE ON blobs BEGIN DELETE FROM mails WHERE source = old.id; END",
)
# What a report says of a run and no row of it does, as a JSON object.
_VERSION_5: Final = (
    "CREATE TABLE run_facts (run INTEGER PRIMARY KEY, facts TEXT NOT NULL)",
    "CREATE TRIGGER run_facts_of_runs AFTER DELETE ON runs BEGIN DELETE FROM run_facts WHERE run = old.number; END",
)
# What is not known was 0. To drop a column takes SQLite 3.35.
_VERSION_6: Final = (
    "ALTER TABLE runs RENAME COLUMN tokens TO tokens_or_zero",
    "ALTER TABLE runs ADD COLUMN tokens INTEGER DEFAULT 0",
    "UPDATE runs SET tokens = iif(tokens_or_zero > 0 OR cost_usd IS NOT NULL, tokens_or_zero, NULL)",
)
OLDEST_VERSION: Final = 4
_STEPS: Final[Mapping[int, Sequence[str]]] = {OLDEST_VERSION: _VERSION_4, 5: _VERSION_5, 6: _VERSION_6}
"""The statements that lead to each version; a new file takes them all."""

RUN_COUNTS: Final = """WITH of_case AS (
        SELECT max(CASE verdict WHEN 'passed' THEN 0 WHEN 'failed' THEN 1 WHEN 'invalid' THEN 2 ELSE 3 END) AS worst
        FROM results WHERE run = :run GROUP BY position),
    spent AS (
        SELECT CASE WHEN coalesce(min(told > 0 OR (calls = 0 AND cost_usd IS NOT NULL)), 1) THEN coalesce(sum(told), 0)
                    END AS tokens,
               CASE WHEN count(*) = count(cost_usd) THEN coalesce(sum(cost_usd), 0) END AS cost_usd
        FROM (SELECT calls, cost_usd,
                     input_tokens + output_tokens + cache_read_tokens + cache_write_tokens AS told
              FROM results WHERE run = :run))
    SELECT count(*), coalesce(sum(worst = 0), 0), coalesce(sum(worst IN (1, 2)), 0), coalesce(sum(worst = 3), 0),
        coalesce(sum(worst = 2), 0), (SELECT tokens FROM spent), (SELECT cost_usd FROM spent) FROM of_case"""
"""total, passed, failed, error, invalid, tokens and cost_usd of the results of the run `:run`, as its row has them."""


def bring_up_to_date(connection: sqlite3.Connection) -> None:
    """Create or migrate the tables, in the caller's write transaction. Raises sqlite3.Error."""
    for number, statements in _STEPS.items():
        if number > schema_version(connection):
            for statement in statements:
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {number}")
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")


def schema_version(connection: sqlite3.Connection) -> int:
    """0 of a new file. Raises sqlite3.Error."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version


def is_crafted(connection: sqlite3.Connection) -> bool:
    """Whether other things stand in the place of our tables: a view may never come to its end. Raises sqlite3.Error."""
    others = connection.execute(
        "SELECT name FROM sqlite_schema WHERE type != 'table' OR upper(sql) LIKE 'CREATE VIRTUAL%'"
    )
    return not _TABLES.isdisjoint(name for (name,) in others)


def is_foreign(connection: sqlite3.Connection) -> bool:
    """Whether it is another program's database. Raises sqlite3.Error."""
    if connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID:
        return False
    return bool(schema_version(connection) or connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0])
