"""A warranty list in a database, which somebody else writes."""

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from datetime import date
from pathlib import Path

import pytest

from guarantee_email_agent.services.call_errors import ToolError
from guarantee_email_agent.services.table.local_look_ups import WARRANTIES, WarrantyRecord
from guarantee_email_agent.services.table.table import SqliteTable, TableError

TABLE = "CREATE TABLE warranties (serial_number TEXT, expiration_date TEXT, coverage TEXT)"
BYTES = "INSERT INTO warranties VALUES (CAST('SN-400' AS BLOB), '2030-01-31', NULL)"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "warranties.db"


def write(file: Path, *statements: str, rows: Iterable[tuple[str, str | None, str | None]] = ()) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        for statement in statements:
            connection.execute(statement)
        for row in rows:
            connection.execute("INSERT INTO warranties VALUES (?, ?, ?)", row)


def test_finds_a_number_however_it_is_written(file: Path) -> None:
    write(file, TABLE, BYTES, rows=[("SN-100", "2030-01-31", "full"), ("SN-200", "2020-01-31", None)])
    warranties = SqliteTable(file, WARRANTIES)

    assert warranties.find("SN-100") == WarrantyRecord("SN-100", date(2030, 1, 31), "full", None)
    assert warranties.find("sn200") == WarrantyRecord("SN-200", date(2020, 1, 31), None, None)
    assert (
        warranties.find("SN-400") == warranties.find("sn400") == WarrantyRecord("SN-400", date(2030, 1, 31), None, None)
    )
    assert warranties.find("SN-300") is None
    assert warranties.find("' OR 1=1 --") is None


def test_sees_what_is_written_meanwhile(file: Path) -> None:
    write(file, TABLE, BYTES)
    warranties = SqliteTable(file, WARRANTIES)
    write(file, rows=[("SN-100", "2030-01-31", None)])
    assert warranties.find("SN-100")
    write(file, "DELETE FROM warranties")
    with pytest.raises(ToolError, match="has no rows") as caught:
        warranties.find("SN-100")
    assert (caught.value.outage, caught.value.retryable) == (True, True)


def test_leaves_the_database_as_it_is(file: Path) -> None:
    write(file, TABLE, rows=[("SN-100", "2030-01-31", None)])
    before = file.read_bytes()
    SqliteTable(file, WARRANTIES).find("SN-100")
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    ("statement", "rows", "message"),
    [
        ("CREATE TABLE devices (id)", [], "has no table warranties. Create it, or name another file"),
        ("CREATE TABLE warranties (serial_number)", [], "the table warranties has no column expiration_date. Add it"),
        (TABLE, [("SN-1", "2030-01-31", None), ("SN-2", "soon", None)], "row 2: expiration_date 'soon' is no date"),
        (TABLE, [], "has no rows"),
        (TABLE, [("SN-1", None, None)], "row 1: expiration_date is empty"),
        (
            TABLE,
            [("SN-1", "2030-01-31", None), ("sn1", "2031-01-31", None)],
            "row 2: the same serial number as in a row",
        ),
    ],
)
def test_a_bad_table_is_refused(
    statement: str, rows: list[tuple[str, str | None, str | None]], message: str, file: Path
) -> None:
    write(file, statement, rows=rows)
    with pytest.raises(TableError, match=message):
        SqliteTable(file, WARRANTIES)


def test_a_damaged_file_is_refused(file: Path) -> None:
    file.write_bytes(b"SQLite format 3\0" + b"x" * 5000)
    with pytest.raises(TableError, match=r"is no SQLite database|is damaged"):
        SqliteTable(file, WARRANTIES)


@pytest.mark.parametrize(
    ("row", "message"),
    [(("SN-1", "soon", None), "expiration_date 'soon' is no date"), (("sn 1", "2031-01-31", None), "more than once")],
)
def test_a_row_that_turns_bad_is_an_error_of_the_call(
    row: tuple[str, str | None, str | None], message: str, file: Path
) -> None:
    write(file, TABLE, rows=[("S-N1", "2030-01-31", None)])
    warranties = SqliteTable(file, WARRANTIES)
    write(file, "DELETE FROM warranties WHERE expiration_date <> '2030-01-31'", rows=[row])
    with pytest.raises(ToolError, match=message) as caught:
        warranties.find("sn-1") if row[0] == "sn 1" else warranties.find("SN-1")
    assert caught.value.code == "warranty_api_bad_record"
    assert not caught.value.retryable


def test_a_locked_database_is_worth_another_try(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("guarantee_email_agent.services.table.table.BUSY_S", 0.05)
    write(file, TABLE, BYTES)
    warranties = SqliteTable(file, WARRANTIES)
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(ToolError, match="another program keeps it locked") as caught:
            warranties.find("SN-1")
    assert caught.value.code == "warranty_api_unavailable"
    assert caught.value.retryable


def test_a_database_that_disappears_is_an_error_of_the_call(file: Path) -> None:
    write(file, TABLE, BYTES)
    warranties = SqliteTable(file, WARRANTIES)
    file.unlink()
    with pytest.raises(ToolError, match="cannot be opened") as caught:
        warranties.find("SN-1")
    assert caught.value.code == "warranty_api_unavailable"
