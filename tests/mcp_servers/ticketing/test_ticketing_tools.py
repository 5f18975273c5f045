"""The ticketing server as a program, asked by the official SDK's client."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from mcp_program import CallError, McpProgram, RawServer

MODULE = "guarantee_email_agent.mcp_servers.ticketing"
TICKET = {
    "serial_number": "SN-100",
    "warranty_status": "valid",
    "customer_email": "customer@example.com",
    "priority": "normal",
    "category": "warranty_claim",
    "idempotency_key": "mail-1",
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "tickets.db"


@pytest.fixture
def start(file: Path) -> Iterator[Callable[[], McpProgram]]:
    with ExitStack() as stack:
        yield lambda: stack.enter_context(McpProgram(MODULE, "--database", file, stderr=file.with_name("stderr")))


@pytest.fixture
def program(start: Callable[[], McpProgram]) -> McpProgram:
    return start()


def test_a_ticket_is_created_once(program: McpProgram) -> None:
    assert program.call("create_ticket", **TICKET) == {"ticket_id": "TICKET-000001", "status": "created"}
    assert program.call("create_ticket", **TICKET) == {"ticket_id": "TICKET-000001", "status": "existing"}
    assert program.call("find_ticket", idempotency_key="mail-1") == {"ticket_id": "TICKET-000001"}
    assert program.call("find_ticket", idempotency_key="mail-2") == {"ticket_id": None}


def test_tickets_are_listed_with_the_time_they_were_made(program: McpProgram) -> None:
    program.call("create_ticket", **TICKET)
    listed = program.call("list_tickets")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", listed["tickets"][0].pop("created_at"))
    assert listed == {"tickets": [{"ticket_id": "TICKET-000001", **TICKET, "details": {}, "notes": 0}], "total": 1}


def test_a_ticket_keeps_further_fields(program: McpProgram) -> None:
    ticket = {name: value for name, value in TICKET.items() if name not in ("serial_number", "warranty_status")}
    program.call("create_ticket", **ticket, details={"order_number": "AB-10001"})
    (listed,) = program.call("list_tickets")["tickets"]
    assert (listed["serial_number"], listed["details"]) == ("", {"order_number": "AB-10001"})


def test_a_note_is_added_once_to_its_ticket(program: McpProgram) -> None:
    ticket_id = program.call("create_ticket", **TICKET)["ticket_id"]
    note = {"ticket_id": ticket_id, "note": "The customer wrote again.", "idempotency_key": "note-1"}
    assert program.call("add_note", **note) == {"status": "added"}
    assert program.call("add_note", **note) == {"status": "existing"}
    assert program.call("list_tickets")["tickets"][0]["notes"] == 1


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"ticket_id": "TICKET-000002"}, "ticketing_unknown_ticket"),
        ({"note": ""}, "ticketing_invalid_argument"),
        ({"note": "x" * 4001}, "ticketing_invalid_argument"),
        ({"idempotency_key": ""}, "ticketing_invalid_argument"),
        ({"author": "x"}, "ticketing_invalid_argument"),
    ],
)
def test_a_note_that_cannot_be_added_is_refused(program: McpProgram, wrong: dict[str, str], code: str) -> None:
    program.call("create_ticket", **TICKET)
    note = {"ticket_id": "TICKET-000001", "note": "The customer wrote again.", "idempotency_key": "note-1"}
    with pytest.raises(CallError, match=rf"^{code}: .*\Z"):
        program.call("add_note", **{**note, **wrong})
    assert program.call("list_tickets")["tickets"][0]["notes"] == 0


def test_a_bad_call_is_refused_in_one_line_and_makes_no_ticket(program: McpProgram) -> None:
    incomplete = {name: value for name, value in TICKET.items() if name != "idempotency_key"}
    for arguments in (
        incomplete,
        {**TICKET, "priority": 1},
        {**TICKET, "note": "x"},
        {**TICKET, "category": "x" * 999},
    ):
        with pytest.raises(CallError, match=r"^ticketing_invalid_argument: create_ticket: .*\Z"):
            program.call("create_ticket", **arguments)
    assert program.call("list_tickets")["total"] == 0


def test_several_servers_share_one_database(start: Callable[[], McpProgram]) -> None:
    programs = start(), start()
    calls = [
        program.start_call("create_ticket", **{**TICKET, "idempotency_key": f"mail-{number}"})
        for number in range(30)
        for program in programs
    ]
    answers = [call.result().structured_content for call in calls]
    assert len({answer["ticket_id"] for answer in answers}) == 30
    assert sorted(answer["status"] for answer in answers) == ["created"] * 30 + ["existing"] * 30


def test_what_was_answered_for_survives_a_kill(file: Path, start: Callable[[], McpProgram]) -> None:
    made = []
    for round_ in range(3):
        with RawServer("-m", MODULE, "--database", file) as server:  # killed at its end
            for step in range(5):
                server.call(step, "create_ticket", **{**TICKET, "idempotency_key": f"{round_}-{step}"})
                made.append(server.await_line()["result"]["structuredContent"]["ticket_id"])
    listed = start().call("list_tickets", limit=100)
    assert [ticket["ticket_id"] for ticket in reversed(listed["tickets"])] == made


def test_sigterm_ends_it_well(file: Path) -> None:
    with RawServer("-m", MODULE, "--database", file) as server:
        assert server.end(by=signal.SIGTERM) == (0, {}, "")
