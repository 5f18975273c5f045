"""The ticketing server as a program, asked by the official SDK's client."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

PROGRAM = ("-m", "guarantee_email_agent.mcp_servers.ticketing")
TICKET = {
    "serial_number": "SN-100",
    "warranty_status": "valid",
    "customer_email": "customer@example.com",
    "priority": "normal",
    "category": "warranty_claim",
    "idempotency_key": "mail-1",
}
INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "tickets.db"


def server(file: Path) -> StdioServerParameters:
    return StdioServerParameters(command=sys.executable, args=[*PROGRAM, "--database", str(file)], env=dict(os.environ))


def exchange(process: subprocess.Popen[bytes], method: str, params: dict[str, Any]) -> dict[str, Any]:
    """One request and its result, without a client."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode() + b"\n")
    process.stdin.flush()
    result: dict[str, Any] = json.loads(process.stdout.readline())["result"]
    return result


def play(file: Path, scene: Callable[[Callable[..., Awaitable[Any]]], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with Client(server(file)) as client:

            async def call(tool: str, **arguments: Any) -> Any:
                answer = await client.call_tool(tool, arguments)
                return answer.content[0].text if answer.is_error else answer.structured_content  # type: ignore[union-attr]

            await scene(call)

    asyncio.run(whole())


def test_a_ticket_is_created_once(file: Path) -> None:
    async def scene(call: Callable[..., Awaitable[Any]]) -> None:
        assert await call("create_ticket", **TICKET) == {"ticket_id": "TICKET-000001", "status": "created"}
        assert await call("create_ticket", **TICKET) == {"ticket_id": "TICKET-000001", "status": "existing"}
        assert await call("find_ticket", idempotency_key="mail-1") == {"ticket_id": "TICKET-000001"}
        assert await call("find_ticket", idempotency_key="mail-2") == {"ticket_id": None}

    play(file, scene)


def test_tickets_are_listed_with_the_time_they_were_made(file: Path) -> None:
    async def scene(call: Callable[..., Awaitable[Any]]) -> None:
        await call("create_ticket", **TICKET)
        listed = await call("list_tickets")
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", listed["tickets"][0].pop("created_at"))
        assert listed == {"tickets": [{"ticket_id": "TICKET-000001", **TICKET}], "total": 1}

    play(file, scene)


def test_a_bad_call_is_refused_in_one_line_and_makes_no_ticket(file: Path) -> None:
    async def scene(call: Callable[..., Awaitable[Any]]) -> None:
        incomplete = {name: value for name, value in TICKET.items() if name != "idempotency_key"}
        for arguments in (
            incomplete,
            {**TICKET, "priority": 1},
            {**TICKET, "note": "x"},
            {**TICKET, "category": "x" * 999},
        ):
            error = await call("create_ticket", **arguments)
            assert error.startswith("ticketing_invalid_argument: create_ticket: ")
            assert "\n" not in error
        assert (await call("list_tickets"))["total"] == 0

    play(file, scene)


def test_several_servers_share_one_database(file: Path) -> None:
    async def whole() -> None:
        async with Client(server(file)) as one, Client(server(file)) as two:
            calls = [
                client.call_tool("create_ticket", {**TICKET, "idempotency_key": f"mail-{number}"})
                for number in range(30)
                for client in (one, two)
            ]
            answers = [answer.structured_content for answer in await asyncio.gather(*calls)]
        assert len({answer["ticket_id"] for answer in answers}) == 30
        assert sorted(answer["status"] for answer in answers) == ["created"] * 30 + ["existing"] * 30

    asyncio.run(whole())


def test_what_was_answered_for_survives_a_kill(file: Path) -> None:
    made = []
    for round_ in range(3):
        process = subprocess.Popen(
            [sys.executable, *PROGRAM, "--database", str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        with process:
            exchange(process, "initialize", INITIALIZE)
            for step in range(5):
                ticket = {**TICKET, "idempotency_key": f"{round_}-{step}"}
                answer = exchange(process, "tools/call", {"name": "create_ticket", "arguments": ticket})
                made.append(answer["structuredContent"]["ticket_id"])
            process.kill()

    async def scene(call: Callable[..., Awaitable[Any]]) -> None:
        listed = await call("list_tickets", limit=100)
        assert [ticket["ticket_id"] for ticket in reversed(listed["tickets"])] == made

    play(file, scene)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the following arguments are required: --database; see --help\n"),
        (
            ["--database", "/nowhere/tickets.db"],
            "/nowhere/tickets.db: the folder /nowhere does not exist. Create it, or",
        ),
        (["--database", "/"], "/: cannot be written (Is a directory). Name a file in a folder that can be written\n"),
    ],
)
def test_a_bad_command_line_is_one_line_and_exit_code_2(arguments: list[str], message: str) -> None:
    done = subprocess.run(
        [sys.executable, *PROGRAM, *arguments], input="", capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(message)
    assert done.stderr.count("\n") == 1


def test_sigterm_ends_it_well(file: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, *PROGRAM, "--database", str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with process:
        exchange(process, "initialize", INITIALIZE)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
