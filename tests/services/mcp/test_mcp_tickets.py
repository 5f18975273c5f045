from __future__ import annotations

import pytest
from mcp_sessions import Script, Servers, failure, tool
from waiting import PATIENCE_S

from guarantee_email_agent.services.mcp.mcp_tickets import McpTickets
from guarantee_email_agent.services.mcp.server_launch import ServerLaunch

pytestmark = pytest.mark.anyio

NOTE = ("TICKET-1", "The customer wrote again.", "note-1")


@pytest.mark.parametrize("offered", [tool("comment", "ticket_id", "note"), tool("add_note", "ticketId", "note")])
async def test_a_server_without_our_way_of_adding_notes_gets_none(
    offered: dict[str, object], script: Script, servers: Servers
) -> None:
    script.write(offered)
    tickets = McpTickets(servers.session(servers.scripted(script), "ticketing"), PATIENCE_S)
    assert await tickets.add_note(*NOTE) is False
    assert script.calls == []


async def test_a_note_for_a_server_that_does_not_start_is_an_error(servers: Servers) -> None:
    tickets = McpTickets(servers.session(ServerLaunch("mcp.test", "no-such"), "ticketing"), PATIENCE_S)
    assert (await failure(tickets.add_note(*NOTE))).details["outage"]
