import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from mcp import Client
from mcp_calls import CallError, call, in_memory
from mcp_sessions import TICKET

from guarantee_email_agent.mcp_servers.ticketing import TicketingTools
from guarantee_email_agent.services.ticket_store import TicketStore

pytestmark = pytest.mark.anyio


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    store = TicketStore(tmp_path / "tickets.db")
    async with in_memory("ticketing", TicketingTools(store).tools()) as client:
        yield client
    store.close()


async def test_a_ticket_is_created_once(client: Client) -> None:
    assert await call(client, "create_ticket", **TICKET) == {"ticket_id": "TICKET-000001", "status": "created"}
    assert await call(client, "create_ticket", **TICKET) == {"ticket_id": "TICKET-000001", "status": "existing"}
    assert await call(client, "find_ticket", idempotency_key="mail-1") == {"ticket_id": "TICKET-000001"}
    assert await call(client, "find_ticket", idempotency_key="mail-2") == {"ticket_id": None}


async def test_tickets_are_listed_with_the_time_they_were_made_and_their_further_fields(client: Client) -> None:
    details = {"order_number": "AB-10001"}
    await call(client, "create_ticket", **TICKET, details=details)
    listed = await call(client, "list_tickets")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", listed["tickets"][0].pop("created_at"))
    assert listed == {"tickets": [{"ticket_id": "TICKET-000001", **TICKET, "details": details, "notes": 0}], "total": 1}


async def test_a_note_is_added_once_to_its_ticket(client: Client) -> None:
    ticket_id = (await call(client, "create_ticket", **TICKET))["ticket_id"]
    note = {"ticket_id": ticket_id, "note": "The customer wrote again.", "idempotency_key": "note-1"}
    assert await call(client, "add_note", **note) == {"status": "added"}
    assert await call(client, "add_note", **note) == {"status": "existing"}
    with pytest.raises(CallError, match=r"^ticketing_unknown_ticket: "):
        await call(client, "add_note", **{**note, "ticket_id": "TICKET-000002", "idempotency_key": "note-2"})
    assert (await call(client, "list_tickets"))["tickets"][0]["notes"] == 1
