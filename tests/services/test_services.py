"""The clients with the servers that come with us: real programs, real files."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mcp_sessions import failure

from guarantee_email_agent.config.look_up_settings import LookUpSettings
from guarantee_email_agent.config.mcp_server import McpServer
from guarantee_email_agent.config.settings import Config, MailboxSettings, Tickets, Warranties
from guarantee_email_agent.instructions.look_up import WARRANTY
from guarantee_email_agent.services.look_up_answer import LookUpAnswer, parse_look_up_answer
from guarantee_email_agent.services.mcp.mcp_session import McpSession
from guarantee_email_agent.services.mcp.server_launch import ServerLaunch
from guarantee_email_agent.services.ports import Reply
from guarantee_email_agent.services.services import Services, TicketingClient, create_services
from guarantee_email_agent.utils.clock import SystemClock
from guarantee_email_agent.utils.errors import MCPConnectionError
from guarantee_email_agent.utils.retry import Backoff, RetryPolicy, call_with_retry

pytestmark = pytest.mark.anyio

NOWHERE = Path("/nowhere")
MAILBOX = MailboxSettings(from_address="support@example.com", maildir=Path("/nowhere"))
MAIL = b"From: customer@example.com\r\nTo: support@example.com\r\nMessage-ID: <1@example.com>\r\n\r\nSN-100?\r\n"
TICKET = {
    "serial_number": "SN-100",
    "warranty_status": "valid",
    "customer_email": "customer@example.com",
    "priority": "normal",
    "category": "warranty_claim",
    "idempotency_key": "mail-1",
}


@pytest.fixture
def config(tmp_path: Path) -> Config:
    (tmp_path / "warranties.csv").write_text("serial_number,expiration_date,coverage\nSN-100,2999-12-31,full\n")
    for folder in ("cur", "new", "tmp"):
        (tmp_path / "inbox" / folder).mkdir(parents=True)
    (tmp_path / "inbox" / "new" / "1").write_bytes(MAIL)
    return Config(
        mailbox=MailboxSettings(from_address="support@example.com", maildir=tmp_path / "inbox"),
        warranties=Warranties(tmp_path / "warranties.csv"),
        tickets=Tickets(tmp_path / "tickets.db"),
    )


@pytest.fixture
async def services(config: Config) -> AsyncIterator[Services]:
    services = create_services(config, SystemClock(), os.environ)
    yield services
    await services.close()


async def test_one_mail_goes_all_the_way(services: Services, tmp_path: Path) -> None:
    await asyncio.gather(
        services.mail.test_connection(), services.warranty.test_connection(), services.ticketing.test_connection()
    )
    (entry,) = await services.mail.list_unprocessed()
    assert entry.size == len(MAIL)
    assert await services.mail.read_raw(entry.id, 10_000) == MAIL

    answer = parse_look_up_answer(await services.warranty.check_warranty("sn100"), WARRANTY)
    assert answer == LookUpAnswer("valid", {"expiration_date": "2999-12-31", "coverage": "full"})

    assert await services.ticketing.list_tickets() == []
    created = await services.ticketing.create_ticket(TICKET)
    assert created == {"ticket_id": "TICKET-000001", "status": "created"}
    assert await services.ticketing.create_ticket(TICKET) == {**created, "status": "existing"}
    assert [ticket["ticket_id"] for ticket in await services.ticketing.list_tickets()] == ["TICKET-000001"]

    reply = Reply(
        "customer@example.com",
        "Re: warranty",
        "It is covered.",
        "<reply-1@example.com>",
        in_reply_to="<1@example.com>",
        references="<1@example.com>",
        headers={"Auto-Submitted": "auto-replied"},
    )
    assert await services.mail.find_sent(reply.message_id) == "not_sent"
    for status in ("sent", "already_sent"):
        assert await services.mail.send(reply) == {"message_id": reply.message_id, "status": status}
    assert await services.mail.find_sent(reply.message_id) == "sent"

    await services.mail.mark(entry.id, "answered")
    assert await services.mail.list_unprocessed() == []
    counts = await services.mail.count_by_outcome()
    assert {name: count for name, count in counts.items() if count} == {"answered": 1}
    assert len(list((tmp_path / "inbox" / ".Sent").glob("[cn]*/*"))) == 1


async def test_a_note_is_added_once(services: Services) -> None:
    created = await services.ticketing.create_ticket(TICKET)
    for _ in range(2):
        assert await services.ticketing.add_note(created["ticket_id"], "The customer wrote again.", "note-1")
    assert [ticket["notes"] for ticket in await services.ticketing.list_tickets()] == [1]


FOREIGN_SERVER = """
from guarantee_email_agent.mcp_servers.dispatcher import ServerTool, ToolArguments, ToolOutput
from guarantee_email_agent.mcp_servers.stdio import serve

class Arguments(ToolArguments):
    ticketId: str
    note: str

class Output(ToolOutput):
    added: bool

async def {tool}(arguments: Arguments) -> Output:
    \"""Never to be called.\"""
    raise SystemExit(1)

serve("foreign", [ServerTool({tool})])
"""


@pytest.mark.parametrize("tool", ["comment", "add_note"])
async def test_a_server_without_our_way_of_adding_notes_gets_none(tool: str) -> None:
    launch = ServerLaunch("mcp.test", sys.executable, ("-c", FOREIGN_SERVER.format(tool=tool)))
    client = TicketingClient(McpSession("ticketing", launch, SystemClock()), SystemClock(), 20.0)
    try:
        assert await client.add_note("TICKET-1", "The customer wrote again.", "note-1") is False
    finally:
        await client.close()


async def test_a_note_for_a_server_that_does_not_start_is_an_error(tmp_path: Path) -> None:
    launch = ServerLaunch("mcp.test", str(tmp_path / "nothing"), ())
    client = TicketingClient(McpSession("ticketing", launch, SystemClock()), SystemClock(), 20.0)
    error = await failure(client.add_note("TICKET-1", "The customer wrote again.", "note-1"))
    assert error.details["outage"]
    await client.close()


async def test_waiting_ends_when_mail_comes(services: Services, tmp_path: Path) -> None:
    await services.mail.test_connection()
    waiting = asyncio.create_task(services.mail.wait_for_mail(20.0))
    await asyncio.sleep(0.3)
    (tmp_path / "inbox" / "new" / "2").write_bytes(MAIL)
    assert await waiting is True


async def test_a_mail_that_is_gone_or_too_large_is_an_error_of_that_mail(services: Services) -> None:
    (entry,) = await services.mail.list_unprocessed()
    for mail_id, limit, code in (("gone", 10_000, "mail_not_found"), (entry.id, 10, "mail_too_large")):
        error = await failure(services.mail.read_raw(mail_id, limit))
        assert (error.code, error.retryable, error.details["outage"]) == (code, False, False)


async def test_a_refused_reply_is_certain_and_not_tried_again(services: Services) -> None:
    reply = Reply("one@example.com, two@example.com", "Re: x", "text", "<reply-1@example.com>")
    error = await failure(services.mail.send(reply))
    assert (error.code, error.retryable, error.details["uncertain"]) == ("mail_invalid_argument", False, False)


async def test_calls_survive_servers_that_are_killed_again_and_again(services: Services) -> None:
    clock = SystemClock()
    policy = RetryPolicy(attempts=10, backoff=Backoff(0.1))
    made = []
    for number in range(3):
        ticket = {**TICKET, "idempotency_key": f"mail-{number}"}
        call = asyncio.create_task(
            call_with_retry(lambda ticket=ticket: services.ticketing.create_ticket(ticket), policy, clock)
        )
        await asyncio.sleep(0.01 * number)
        for pid in child_processes("mcp_servers.ticketing"):
            os.kill(pid, signal.SIGKILL)
        made.append((await call)["ticket_id"])
    assert len(set(made)) == 3


def child_processes(module: str) -> list[int]:
    """Of this test's own process."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parent = int(entry.joinpath("stat").read_text().rpartition(")")[2].split()[1])
            if parent == os.getpid() and module in entry.joinpath("cmdline").read_text():
                found.append(int(entry.name))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


@pytest.mark.parametrize(
    ("service", "broken", "message"),
    [
        ("warranty", {"warranties": Warranties(NOWHERE / "w.csv")}, "/nowhere/w.csv: cannot be read (No such file"),
        ("ticketing", {"tickets": Tickets(NOWHERE / "t.db")}, "/nowhere/t.db: the folder /nowhere does not exist"),
        ("mail", {"mailbox": MailboxSettings("support@example.com", NOWHERE / "inbox")}, "/nowhere/inbox"),
    ],
)
async def test_a_server_without_its_file_names_it(
    service: str, broken: dict[str, Any], message: str, config: Config
) -> None:
    services = create_services(replace(config, **broken), SystemClock(), os.environ)
    with pytest.raises(MCPConnectionError, match=re.escape(message)):
        await getattr(services, service).test_connection()
    await services.close()


ORDERS = LookUpSettings(("order",), "order_number", ("order",), "[A-Z]{2}-[0-9]{5}", table=Path("orders.csv"))
TABLE_ARGUMENTS = ("-m", "guarantee_email_agent.mcp_servers.table", "--key", "order_number", "--file")


async def test_a_table_is_looked_up_in(tmp_path: Path) -> None:
    table = tmp_path / "orders.csv"
    table.write_text("order_number,status\nAB-10001,shipped\n")
    services = create_services(
        Config(mailbox=MAILBOX, look_ups={"orders": replace(ORDERS, table=table)}), SystemClock(), os.environ
    )
    try:
        orders = services.look_ups["orders"]
        assert await orders.test_connection()
        assert await orders.look_up("ab10001") == {"order_number": "AB-10001", "status": "shipped"}
    finally:
        await services.close()


@pytest.mark.parametrize(
    ("tool", "argument", "lacking"),
    [
        ("find_order", None, "find_order; it offers find_row"),
        ("find_row", None, r"find_row\(order_number\); it offers"),
    ],
)
async def test_a_server_without_the_tool_of_the_look_up_is_refused(
    tool: str, argument: str | None, lacking: str, tmp_path: Path
) -> None:
    table = tmp_path / "orders.csv"
    table.write_text("order_number,status\nAB-10001,shipped\n")
    server = McpServer(command=sys.executable, args=(*TABLE_ARGUMENTS, str(table)))
    settings = replace(ORDERS, table=None, server=server, tool=tool, argument=argument)
    services = create_services(Config(mailbox=MAILBOX, look_ups={"orders": settings}), SystemClock(), os.environ)
    try:
        with pytest.raises(MCPConnectionError, match=rf"{lacking}.* Set look_ups\.orders\.server to a server"):
            await services.look_ups["orders"].test_connection()
    finally:
        await services.close()
