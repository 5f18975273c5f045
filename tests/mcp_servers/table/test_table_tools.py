"""The table server as a program, asked by the official SDK's client."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from mcp_program import CallError, McpProgram, run_program

MODULE = "guarantee_email_agent.mcp_servers.table"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "orders.csv"
    file.write_text("Order_Number,status,carrier\nAB-10001,shipped,Parcel Post\nAB-10002, ,\n")
    return file


def test_finds_the_filled_columns_of_a_row(file: Path) -> None:
    with McpProgram(MODULE, "--file", file, "--key", "order_number", stderr=file.with_name("stderr")) as program:
        answers = [program.call("find_row", number=number) for number in ("ab 10001", "AB-10002", "AB-10003")]
    assert answers == [
        {"order_number": "AB-10001", "status": "shipped", "carrier": "Parcel Post"},
        {"order_number": "AB-10002", "status": "found"},
        {"status": "not_found"},
    ]


def test_reads_the_table_of_a_database_that_is_called_like_its_file(tmp_path: Path) -> None:
    file = tmp_path / "my orders.db"
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute('CREATE TABLE "my orders" ("Order ""No""" TEXT, Status TEXT)')
        connection.execute("""INSERT INTO "my orders" VALUES ('AB-1', 'shipped')""")
    with McpProgram(MODULE, "--file", file, "--key", 'order "no"', stderr=tmp_path / "stderr") as program:
        assert program.call("find_row", number="ab1") == {'order "no"': "AB-1", "status": "shipped"}


def test_refuses_a_bad_call_in_one_line(file: Path) -> None:
    with McpProgram(MODULE, "--file", file, "--key", "order_number", stderr=file.with_name("stderr")) as program:
        for arguments in ({}, {"number": 7}, {"number": ""}, {"order_number": "AB-1"}):
            with pytest.raises(CallError, match=r"^table_invalid_argument: find_row: .*\Z"):
                program.call("find_row", **arguments)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("number,status\n", "orders.csv:1: has no column order_number. Begin the file with a line such as"),
        ("order_number,status\nAB-1,\nab1,\n", "orders.csv:3: the same order number as in line 2"),
        ("order_number,status\n-,\n", "orders.csv:2: order_number is empty. Fill it in, or remove the line"),
        ("order_number,status,status\n", "orders.csv:1: has the column status twice. Remove one of them"),
    ],
)
def test_a_table_that_cannot_be_used_is_told_in_one_line(content: str, message: str, file: Path) -> None:
    file.write_text(content)
    done = run_program(MODULE, "--file", file, "--key", "order_number")
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
