"""Lets old runs go, so that the store does not grow for ever."""

from __future__ import annotations

from typing import Final

from guarantee_email_agent.runlog.database import Database
from guarantee_email_agent.runlog.owners import RunOwners
from guarantee_email_agent.runlog.records import PARTS

_SLACK: Final = 10
"""Whatever no run needs any more is looked for in the whole file, so one run in so many (percent of those kept) does
it."""

# Of each suite the newest run that passed stays: others are compared with it. So does each opening of a sealed one.
_OLD: Final = """SELECT number FROM runs WHERE number NOT IN (
        SELECT max(number) FROM runs WHERE outcome = 'passed' GROUP BY command, suite, selection, agent, llm)
        AND number NOT IN (SELECT run FROM run_facts WHERE json_extract(facts, '$.opened'))
    ORDER BY number DESC LIMIT -1 OFFSET ?"""


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
