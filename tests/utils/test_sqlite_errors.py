import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from guarantee_email_agent.utils.sqlite_errors import enable_wal, sqlite_error_kind


def error_of(file: Path, statement: str) -> sqlite3.Error:
    with pytest.raises(sqlite3.Error) as caught, closing(sqlite3.connect(file, timeout=0)) as connection:
        connection.execute(statement)
    return caught.value


def test_errors_are_told_apart_by_their_result_code(tmp_path: Path) -> None:
    file, text = tmp_path / "a.db", tmp_path / "text"
    text.write_text("no database, but " * 100)
    with closing(sqlite3.connect(file)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert sqlite_error_kind(error_of(file, "BEGIN IMMEDIATE")) == "locked"
    assert sqlite_error_kind(error_of(tmp_path, "BEGIN IMMEDIATE")) == "cannot_open"
    assert sqlite_error_kind(error_of(text, "BEGIN IMMEDIATE")) == "not_a_database"
    assert sqlite_error_kind(error_of(file, "rubbish")) == sqlite_error_kind(sqlite3.Error()) == "other"


def test_a_lock_that_outlasts_the_wait_is_an_error(tmp_path: Path) -> None:
    with (
        closing(sqlite3.connect(tmp_path / "a.db")) as other,
        closing(sqlite3.connect(tmp_path / "a.db", timeout=0)) as connection,
    ):
        other.execute("CREATE TABLE t (c)")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            enable_wal(connection, 0.05)
