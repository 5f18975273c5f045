"""The warranty server as a program, asked by the official SDK's client."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from mcp_program import INITIALIZE, CallError, McpProgram, run_program

MODULE = "guarantee_email_agent.mcp_servers.warranty"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "warranties.csv"
    file.write_text("serial_number,expiration_date,coverage\nSN-100,2030-01-31,full\nSN-200,2020-01-31,\n")
    return file


def test_tells_status_date_and_coverage(file: Path) -> None:
    options = ("--file", file, "--today", "2027-03-31")
    with McpProgram(MODULE, *options, stderr=file.with_name("stderr")) as program:
        answers = [program.call("check_warranty", serial_number=number) for number in ("sn 100", "SN-200", "SN-300")]
    assert answers == [
        {"serial_number": "SN-100", "status": "valid", "expiration_date": "2030-01-31", "coverage": "full"},
        {"serial_number": "SN-200", "status": "expired", "expiration_date": "2020-01-31"},
        {"serial_number": "SN-300", "status": "not_found"},
    ]


def test_refuses_a_bad_call_in_one_line(file: Path) -> None:
    calls: list[dict[str, Any]] = [{}, {"serial_number": 7}, {"serial_number": ""}, {"serial": "SN-100"}]
    with McpProgram(MODULE, "--file", file, stderr=file.with_name("stderr")) as program:
        for arguments in calls:
            with pytest.raises(CallError, match=r"^warranty_api_invalid_argument: check_warranty: .*\Z"):
                program.call("check_warranty", **arguments)


def test_ends_well_at_the_end_of_its_input(file: Path) -> None:
    done = run_program(MODULE, "--file", file)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_bare_client_needs_no_more_than_lines_of_json(file: Path) -> None:
    call = {"name": "check_warranty", "arguments": {"serial_number": "SN-100"}}
    messages: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": INITIALIZE},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": call},
    ]
    stdin = "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages)
    done = run_program(MODULE, "--file", file, stdin=stdin)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert answers[1]["result"]["structuredContent"]["status"] in ("valid", "expired")
    assert done.returncode == 0
