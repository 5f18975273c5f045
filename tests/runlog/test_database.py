import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from stored_runs import StoredRuns, result

from guarantee_email_agent.runlog import database
from guarantee_email_agent.runlog.database import APPLICATION_ID, SCHEMA_VERSION, Database, RunOwners, StoreError
from guarantee_email_agent.runlog.run_reader import RunStore


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


def write_newer(file: Path) -> None:
    StoredRuns(file).write(1, [])
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")


def write_foreign(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("CREATE TABLE songs (title)")


def write_damaged(file: Path) -> None:
    StoredRuns(file).write(1, [result(position) for position in range(1, 200)])
    content = bytearray(file.read_bytes())
    content[100:4096] = b"\xff" * 3996
    file.write_bytes(content)


def write_link_in_a_loop(file: Path) -> None:
    file.symlink_to(file)


BAD_FILES: list[tuple[Callable[[Path], object], str, str]] = [
    (
        write_newer,
        "store_newer_schema",
        f"a newer version wrote it (schema {SCHEMA_VERSION + 1}; this one knows {SCHEMA_VERSION}). Update this program",
    ),
    (write_foreign, "store_not_ours", "it is another program's database. Name another file in store.file"),
    (write_damaged, "store_corrupt", "it is damaged. Restore it from a backup, or move it away"),
    (lambda file: file.write_text("no database " * 100), "store_corrupt", "it is no database, or damaged"),
    (Path.mkdir, "store_cannot_open", "it is a folder"),
    (os.mkfifo, "store_cannot_open", "it is a pipe"),
    (lambda file: file.symlink_to("nowhere"), "store_cannot_open", "it is a link to what does not exist"),
    (write_link_in_a_loop, "store_cannot_open", "Too many levels of symbolic links"),
]


@pytest.mark.parametrize(("write", "code", "message"), BAD_FILES)
@pytest.mark.parametrize("create", [True, False])
def test_a_file_that_is_no_store_is_one_line_and_stays_as_it_is(
    file: Path, write: Callable[[Path], object], code: str, message: str, create: bool
) -> None:
    write(file)
    before = file.read_bytes() if file.is_file() else None
    with pytest.raises(StoreError) as caught:
        Database(file, create=create)
    assert caught.value.code == code
    assert message in caught.value.message
    assert caught.value.message.startswith(f"{file}: ")
    assert caught.value.message.isprintable()
    assert before is None or file.read_bytes() == before


@pytest.mark.parametrize(
    ("create", "remedy"), [(True, "leave the runs unkept with --no-store"), (False, "restore this one from a backup")]
)
def test_only_who_writes_may_do_without_a_store(file: Path, create: bool, remedy: str) -> None:
    """`show` and `view` have no --no-store."""
    file.write_text("no database " * 100)
    with pytest.raises(StoreError, match=remedy):
        Database(file, create=create)


def test_a_link_to_a_store_is_one(file: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    real = tmp_path / "elsewhere" / "real.db"
    StoredRuns(real).write(1, [])
    file.symlink_to(real)
    StoredRuns(file).write(2, [])
    with RunStore(real) as store:
        assert [run.number for run in store.runs()] == [2, 1]


def test_the_folder_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "state" / "program" / "runs.db"
    StoredRuns(file).write(1, [])
    assert [folder.stat().st_mode & 0o777 for folder in file.parents[:2]] == [0o700] * 2


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"it cannot be (made|opened)|Not a directory"):
        Database(tmp_path / "file" / "runs.db", create=True)


def test_an_empty_file_becomes_a_store(file: Path) -> None:
    file.write_bytes(b"")
    StoredRuns(file).write(1, [])
    with closing(sqlite3.connect(file)) as connection, connection:
        assert connection.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
        assert connection.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_another_program_that_writes_for_too_long_is_told(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    StoredRuns(file).write(1, [])
    monkeypatch.setitem(Database.__init__.__kwdefaults__, "busy_s", 0.01)  # BUSY_S itself is bound there by now
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(StoreError, match="another program has been writing to it for too long"):
        StoredRuns(file).begin(2)
    other.execute("ROLLBACK")
    other.close()


def test_a_file_system_without_shared_memory_keeps_runs_all_the_same(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "enable_wal", lambda *_: False)  # as SQLite answers on some network file systems
    StoredRuns(file).write(1, [result(1)])
    with RunStore(file) as store:
        assert store.find_run("last").total == 1


def test_a_file_whose_maker_was_killed_before_there_was_a_table_is_no_store_yet(tmp_path: Path) -> None:
    file = tmp_path / "runs.db"
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("PRAGMA journal_mode = WAL")
    with pytest.raises(StoreError, match="there is no run store") as caught:
        Database(file, create=False)
    assert caught.value.code == "store_not_found"
    Database(file, create=True).close()
    Database(file, create=False).close()


def test_to_look_makes_no_file_and_releases_nothing_of_ours(file: Path) -> None:
    owners = RunOwners.beside(file)
    assert not owners.is_alive(1)
    assert list(file.parent.iterdir()) == []
    owners.claim(1)
    owners.claim(2)
    assert not owners.is_alive(3)
    look = f"""
from pathlib import Path
from guarantee_email_agent.runlog.database import RunOwners

owners = RunOwners.beside(Path({str(file)!r}))
print([owners.is_alive(number) for number in (1, 2, 3)])
"""
    seen = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True).stdout
    owners.release(1)
    then = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True).stdout
    owners.release(2)
    assert (seen, then) == ("[True, True, False]\n", "[False, True, False]\n")
