"""A store that an earlier version wrote is brought up to date, whole or not at all; nothing of it is lost."""

import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from stored_runs import StoredRuns, ended, new_run, result

from guarantee_email_agent.runlog import database
from guarantee_email_agent.runlog.database import OLDEST_VERSION, SCHEMA_VERSION, StoreError
from guarantee_email_agent.runlog.run_reader import RunStore
from guarantee_email_agent.runlog.run_writer import RunWriter
from guarantee_email_agent.runlog.views.stored_report import stored_report


@contextmanager
def earlier_version() -> Iterator[None]:
    """The program as it was when it knew the oldest schema that is still read."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "SCHEMA_VERSION", OLDEST_VERSION)
        patch.setattr(database, "_STEPS", {OLDEST_VERSION: database._STEPS[OLDEST_VERSION]})
        yield


@pytest.fixture
def runs(tmp_path: Path) -> StoredRuns:
    """A store as the earlier version left it."""
    runs = StoredRuns(tmp_path / "runs.db")
    with earlier_version():
        runs.write(1, [result(1), result(2, "failed", harm=None)])
        runs.write(2, [result(1), result(1, "error", repetition=2, harm=None)], command="grade")
    assert version(runs.file) == OLDEST_VERSION
    with closing(sqlite3.connect(runs.file)) as connection, connection:  # of one run it is not known what it took
        connection.execute("UPDATE runs SET cost_usd = NULL WHERE number = 1")
    connection.close()
    return runs


def version(file: Path) -> int:
    connection = sqlite3.connect(file)
    try:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return connection.execute("PRAGMA user_version").fetchone()[0]
    finally:
        connection.close()


@pytest.mark.parametrize("writes", [True, False])
def test_every_run_and_result_is_there_afterwards_and_what_was_not_kept_is_not_known(
    runs: StoredRuns, writes: bool
) -> None:
    if writes:
        runs.write(3, [result(1)])
    with RunStore(runs.file) as store:
        graded, evaluated = [run for run in store.runs() if run.number < 3]
        assert (graded.tokens, evaluated.tokens) == (0, None)
        assert [case.name for case in store.cases(graded)] == [f"valid_warranty_001 ({n} of 2)" for n in (1, 2)]
        passed, failed = store.cases(evaluated)
        assert (evaluated.facts, passed.shown.harm, failed.shown.harm) == ({}, (), None)
        report = stored_report(store, evaluated)
    assert (dict(report.facts)["Harmful"], report.summary["totals"]["harmful"]) == ("not known", None)
    assert version(runs.file) == SCHEMA_VERSION


def test_a_run_of_the_earlier_version_goes_on_meanwhile(tmp_path: Path) -> None:
    file = tmp_path / "runs.db"
    with earlier_version():
        writer = RunWriter(file, new_run(1), lambda message: pytest.fail(message), at_once=True)
        writer.add(result(1))
    StoredRuns(file).write(2, [result(1)])
    assert version(file) == SCHEMA_VERSION
    writer.add(result(2, "failed"))
    writer.finish(ended("failed", 4))
    with RunStore(file) as store:
        assert [(run.outcome, run.passed, run.total) for run in store.runs()] == [("passed", 1, 1), ("failed", 1, 2)]


def test_the_times_of_steps_go_with_their_results(runs: StoredRuns) -> None:
    runs.write(9, [result(1, step_ms=(1.5, 2.25)), result(2)])
    with closing(sqlite3.connect(runs.file)) as connection, connection:
        assert connection.execute("SELECT milliseconds FROM step_times").fetchall() == [("[1.5,2.25]",)]
        connection.execute("DELETE FROM results")
        assert connection.execute("SELECT * FROM step_times").fetchall() == []
    connection.close()


def test_one_that_was_killed_in_the_midst_of_it_is_as_it_was(runs: StoredRuns) -> None:
    program = f"""
import os, signal
from pathlib import Path
from guarantee_email_agent.runlog import database

bring_up_to_date = database.bring_up_to_date

def killed(connection):
    connection.set_trace_callback(lambda sql: "TRIGGER run_facts" in sql and os.kill(os.getpid(), signal.SIGKILL))
    bring_up_to_date(connection)

database.bring_up_to_date = killed
database.Database(Path({str(runs.file)!r}), create=True)
"""
    died = subprocess.run([sys.executable, "-c", program], check=False)
    assert died.returncode == -signal.SIGKILL
    assert version(runs.file) == OLDEST_VERSION
    with RunStore(runs.file) as store:
        assert len(store.runs()) == 2


def test_several_processes_at_once_do_it_once(runs: StoredRuns) -> None:
    program = f"""
import sys
from pathlib import Path
from guarantee_email_agent.runlog.database import Database

sys.stdin.read(1)
Database(Path({str(runs.file)!r}), create=sys.argv[1] == "writes").close()
"""
    command = [sys.executable, "-c", program]
    waiting = [subprocess.Popen([*command, how], stdin=subprocess.PIPE) for how in ("writes", "reads", "writes")]
    for each in waiting:
        each.stdin.close()  # they begin
    assert [each.wait() for each in waiting] == [0, 0, 0]
    assert version(runs.file) == SCHEMA_VERSION


def test_one_that_is_older_than_that_is_refused_in_one_line(runs: StoredRuns) -> None:
    with closing(sqlite3.connect(runs.file)) as connection, connection:
        connection.execute(f"PRAGMA user_version = {OLDEST_VERSION - 1}")
    connection.close()
    with pytest.raises(StoreError, match=r"\(schema 3; this one knows 4 and newer\)\. Move it away") as caught:
        RunStore(runs.file)
    assert (caught.value.code, caught.value.exit_code) == ("store_older_schema", 2)
