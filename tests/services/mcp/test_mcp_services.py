from __future__ import annotations

import pytest
from mcp_sessions import TICKET, Script, Servers, failure, structured, tool
from waiting import PATIENCE_S

from guarantee_email_agent.services.mcp.mcp_services import McpTickets
from guarantee_email_agent.services.mcp.server_launch import ServerLaunch
from guarantee_email_agent.utils.errors import MCPConnectionError

pytestmark = pytest.mark.anyio

NOTE = ("TICKET-1", "The customer wrote again.", "note-1")


def mcp_tickets(servers: Servers, script: Script) -> McpTickets:
    return McpTickets(servers.session(servers.scripted(script), "ticketing"), PATIENCE_S, servers.clock)


async def test_fields_that_a_server_has_no_argument_for_are_its_details(script: Script, servers: Servers) -> None:
    create = tool("create_ticket", *TICKET, "details")
    script.write(create, create_ticket=structured({"ticket_id": "T-1"}))
    tickets = mcp_tickets(servers, script)
    assert await tickets.test_connection()
    await tickets.create_ticket(TICKET)
    await tickets.create_ticket({**TICKET, "order_number": "AB-1"})
    assert script.calls == [
        ["create_ticket", TICKET],
        ["create_ticket", {**TICKET, "details": {"order_number": "AB-1"}}],
    ]


async def test_a_server_that_could_open_a_ticket_twice_is_refused(script: Script, servers: Servers) -> None:
    script.write(tool("create_ticket", *(TICKET.keys() - {"idempotency_key"})))
    with pytest.raises(MCPConnectionError, match=r"does not offer create_ticket\(idempotency_key\)"):
        await mcp_tickets(servers, script).test_connection()


@pytest.mark.parametrize("offered", [tool("comment", "ticket_id", "note"), tool("add_note", "ticketId", "note")])
async def test_a_server_without_our_way_of_adding_notes_gets_none(
    offered: dict[str, object], script: Script, servers: Servers
) -> None:
    script.write(offered)
    assert await mcp_tickets(servers, script).add_note(*NOTE) is False
    assert script.calls == []


async def test_a_note_for_a_server_that_does_not_start_is_an_error(servers: Servers) -> None:
    tickets = McpTickets(servers.session(ServerLaunch("mcp.test", "no-such"), "ticketing"), PATIENCE_S, servers.clock)
    assert (await failure(tickets.add_note(*NOTE))).outage
