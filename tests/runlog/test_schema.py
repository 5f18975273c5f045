"""A store that an earlier version wrote is brought up to date, whole or not at all; nothing of it is lost."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from small_disks import run_python_on_small_disk
from stored_runs import StoredRuns, new_run, result

from guarantee_email_agent.runlog import database, schema
from guarantee_email_agent.runlog.database import Database, StoreError
from guarantee_email_agent.runlog.run_reader import RunStore
from guarantee_email_agent.runlog.run_writer import RunEnd, RunWriter
from guarantee_email_agent.runlog.schema import SCHEMA_VERSION
from guarantee_email_agent.runlog.views.stored_report import stored_report

VERSION_1 = Path(__file__).with_name("data") / "schema_1.sql"
OUTCOMES = ["passed", "inconclusive", "failed", "interrupted", "failed", "crashed", "interrupted"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A store as version 0.1.0 left it, one of its runs killed."""
    file = tmp_path / "runs.db"
    connection = sqlite3.connect(file)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.executescript(VERSION_1.read_text(encoding="utf-8"))
    connection.close()
    return file


def version(file: Path) -> int:
    connection = sqlite3.connect(file)
    try:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        found: int = connection.execute("PRAGMA user_version").fetchone()[0]
        return found
    finally:
        connection.close()


def tables(file: Path) -> dict[str, str]:
    """How each table, index and view was made, apart from white space and quotes."""
    connection = sqlite3.connect(file)
    rows = connection.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL").fetchall()
    connection.close()
    return {name: " ".join(sql.replace('"', "").split()) for name, sql in rows}


@pytest.mark.parametrize("writes", [True, False])
def test_every_run_result_and_check_is_there_afterwards(file: Path, writes: bool) -> None:
    if writes:
        StoredRuns(file).write(8, [result(1)])
    with RunStore(file) as store:
        runs = [run for run in store.runs() if run.number < 8][::-1]
        kept = [(run, each) for run in runs for each in store.results(run)]
        assert [len(store.checks(each)) for run, each in kept if run.number == 3] == [0, 1]
        assert {each.verdict for _, each in kept} == {"passed", "failed", "error"}
        assert store.transcript(kept[0][1]).source == b"s"
        assert [each.content for each in store.inputs(kept[0][1].input_set or 0)] == [b"Be kind\n"]
    assert len(kept) == 12
    assert [run.exit_code for run in runs] == [0, 4, 4, 130, 4, 1, None]
    assert version(file) == SCHEMA_VERSION


def test_a_rate_that_was_reached_without_the_proof_becomes_inconclusive(file: Path) -> None:
    Database(file, create=True).close()
    with RunStore(file) as store:
        assert [run.outcome for run in store.runs()][::-1] == OUTCOMES


@pytest.mark.parametrize(("threshold", "outcome"), [(99.9, "inconclusive"), (99.91, "failed")])
def test_the_threshold_is_an_exact_percentage(file: Path, threshold: float, outcome: str) -> None:
    with sqlite3.connect(file) as connection:
        row = "SET threshold = ?, total = 1000, planned = 1000, passed = 999, failed = 1"
        connection.execute(f"UPDATE runs {row} WHERE number = 2", (threshold,))
    connection.close()
    with RunStore(file) as store:
        assert store.find_run("20260118T100002-00000002").outcome == outcome


def test_it_is_just_like_a_new_one(file: Path, tmp_path: Path) -> None:
    new = tmp_path / "new.db"
    Database(new, create=True).close()
    Database(file, create=True).close()
    assert tables(file) == tables(new)


def test_a_run_of_the_earlier_version_goes_on_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "runs.db"
    with monkeypatch.context() as patch:
        for module in (schema, database):
            patch.setattr(module, "SCHEMA_VERSION", 1)
        patch.setattr(schema, "_MIGRATIONS", schema._MIGRATIONS[:1])
        writer = RunWriter(file, new_run(1), lambda message: pytest.fail(message), at_once=True)
        writer.add(result(1))
    assert version(file) == 1
    StoredRuns(file).write(2, [result(1)])
    assert version(file) == SCHEMA_VERSION
    writer.add(result(2, "failed"))
    writer.finish(RunEnd("failed", 4, "2026-01-18T10:00:01Z", 1.0))
    with RunStore(file) as store:
        assert [(run.outcome, run.passed, run.total) for run in store.runs()] == [("passed", 1, 1), ("failed", 1, 2)]


def test_what_version_4_did_not_keep_is_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = StoredRuns(tmp_path / "runs.db")
    with monkeypatch.context() as patch:
        for module in (schema, database):
            patch.setattr(module, "SCHEMA_VERSION", 4)
        patch.setattr(schema, "_MIGRATIONS", schema._MIGRATIONS[:4])
        runs.write(1, [result(1), result(2, "failed", harm=None)])
        runs.write(2, [result(1), result(1, "error", repetition=2, harm=None)], command="grade")
    assert version(runs.file) == 4
    with RunStore(runs.file) as store:
        graded, evaluated = store.runs()
        assert [case.name for case in store.cases(graded)] == [f"valid_warranty_001 ({n} of 2)" for n in (1, 2)]
        passed, failed = store.cases(evaluated)
        assert (evaluated.facts, passed.shown.harm, failed.shown.harm) == ({}, (), None)
        report = stored_report(store, evaluated)
    assert (dict(report.facts)["Harmful"], report.summary["totals"]["harmful"]) == ("not known", None)


def test_the_times_of_steps_go_with_their_results(file: Path) -> None:
    runs = StoredRuns(file)
    runs.write(9, [result(1, step_ms=(1.5, 2.25)), result(2)])
    with sqlite3.connect(file) as connection:
        assert connection.execute("SELECT milliseconds FROM step_times").fetchall() == [("[1.5,2.25]",)]
        connection.execute("DELETE FROM results")
        assert connection.execute("SELECT * FROM step_times").fetchall() == []
    connection.close()


def test_one_that_was_killed_in_the_midst_of_it_is_as_it_was(file: Path) -> None:
    program = f"""
import os, signal
from pathlib import Path
from guarantee_email_agent.runlog import database

bring_up_to_date = database.bring_up_to_date

def killed(connection):
    connection.set_trace_callback(lambda sql: sql.startswith("ALTER") and os.kill(os.getpid(), signal.SIGKILL))
    bring_up_to_date(connection)

database.bring_up_to_date = killed
database.Database(Path({str(file)!r}), create=True)
"""
    before = tables(file)
    died = subprocess.run([sys.executable, "-c", program], check=False)
    assert died.returncode == -signal.SIGKILL
    assert (version(file), tables(file)) == (1, before)
    with RunStore(file) as store:
        assert [run.outcome for run in store.runs()][::-1] == OUTCOMES


def test_several_processes_at_once_do_it_once(file: Path) -> None:
    program = f"""
import sys
from pathlib import Path
from guarantee_email_agent.runlog.database import Database

sys.stdin.read(1)
Database(Path({str(file)!r}), create=sys.argv[1] == "writes").close()
"""
    command = [sys.executable, "-c", program]
    waiting = [subprocess.Popen([*command, how], stdin=subprocess.PIPE) for how in ("writes", "reads", "writes")]
    for each in waiting:
        assert each.stdin is not None
        each.stdin.close()  # they begin
    assert [each.wait() for each in waiting] == [0, 0, 0]
    assert version(file) == SCHEMA_VERSION
    with RunStore(file) as store:
        assert [run.outcome for run in store.runs()][::-1] == OUTCOMES


def test_an_earlier_version_refuses_it_in_one_line(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Database(file, create=True).close()
    before = file.read_bytes()
    monkeypatch.setattr(database, "SCHEMA_VERSION", 1)
    for create in (True, False):
        with pytest.raises(
            StoreError, match=rf"a newer version wrote it \(schema {SCHEMA_VERSION}; this one knows 1\)"
        ) as caught:
            Database(file, create=create)
        assert (caught.value.code, caught.value.exit_code) == ("store_newer_schema", 2)
    assert file.read_bytes() == before


READ = """
import os, shutil, subprocess, sys
from pathlib import Path
from guarantee_email_agent.runlog.database import StoreError
from guarantee_email_agent.runlog.run_reader import RunStore

shutil.copy({file!r}, "runs.db")
subprocess.run(["mount", "-o", "remount,ro", os.getcwd()], check=True)
try:
    with RunStore(Path("runs.db")) as store:
        print(len(store.runs()))
except StoreError as error:
    print(error.code, error.message)
"""


def test_on_a_read_only_disk_one_line_says_what_to_do(file: Path, tmp_path: Path) -> None:
    shown = run_python_on_small_disk(tmp_path / "disk", "1m", READ.format(file=str(file)))
    assert shown == (
        "store_older_schema runs.db: an earlier version wrote it, and it cannot be brought up to date, since it is "
        "read-only. Copy it, and name the copy in store.file\n"
    )
    Database(file, create=True).close()
    assert run_python_on_small_disk(tmp_path / "disk", "1m", READ.format(file=str(file))) == "7\n"


def test_a_full_disk_lets_it_be_read(file: Path, tmp_path: Path) -> None:
    Database(file, create=True).close()
    program = READ.format(file=str(file)).replace(
        'subprocess.run(["mount", "-o", "remount,ro", os.getcwd()], check=True)',
        'subprocess.run(["dd", "if=/dev/zero", "of=rest"], stderr=subprocess.DEVNULL, check=False)',
    )
    assert run_python_on_small_disk(tmp_path / "disk", "1m", f"{program}{program}") == "7\n7\n"


def test_on_a_full_disk_it_stays_as_it_was(file: Path, tmp_path: Path) -> None:
    program = f"""
import os, shutil
from pathlib import Path
from guarantee_email_agent.runlog.database import StoreError
from guarantee_email_agent.runlog.run_reader import RunStore

shutil.copy({str(file)!r}, "runs.db")
rest = os.statvfs(".").f_bavail * os.statvfs(".").f_bsize
Path("rest").write_bytes(b"x" * (rest - 40_000))  # room for what SQLite has beside a file, and for no table
try:
    RunStore(Path("runs.db"))
except StoreError as error:
    print(error.code)
Path("rest").unlink()
with RunStore(Path("runs.db")) as store:
    print(len(store.runs()))
"""
    assert run_python_on_small_disk(tmp_path / "disk", "400k", program) == "store_disk_full\n7\n"
