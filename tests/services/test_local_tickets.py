from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from mcp_sessions import TICKET, failure
from waiting import PATIENCE_S

from guarantee_email_agent.services.local_tickets import LocalTickets
from guarantee_email_agent.services.ticket_store import TicketStore

pytestmark = pytest.mark.anyio


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "tickets.db"


@pytest.fixture
async def tickets(database: Path) -> AsyncIterator[LocalTickets]:
    tickets = LocalTickets(database, PATIENCE_S)
    yield tickets
    await tickets.close()


def stored(database: Path) -> list[dict[str, Any]]:
    with closing(TicketStore(database)) as store:
        return store.latest(10)[0]


async def test_the_same_key_gives_the_same_ticket(tickets: LocalTickets, database: Path) -> None:
    assert await tickets.create_ticket(TICKET) == {"ticket_id": "TICKET-000001", "status": "created"}
    again = {**TICKET, "priority": "high"}
    assert await tickets.create_ticket(again) == {"ticket_id": "TICKET-000001", "status": "existing"}
    (ticket,) = stored(database)
    assert TICKET.items() <= ticket.items()


async def test_fields_beside_the_stores_own_become_its_details(tickets: LocalTickets, database: Path) -> None:
    further = {"order_number": "ÄB-10001", "details": "a look-up of this name"}
    await tickets.create_ticket(TICKET | further)
    await tickets.create_ticket(TICKET | {"idempotency_key": "mail-2"})
    assert [json.loads(ticket["details"]) for ticket in stored(database)] == [{}, further]


async def test_a_note_is_added_once(tickets: LocalTickets, database: Path) -> None:
    number = (await tickets.create_ticket(TICKET))["ticket_id"]
    for _ in range(2):
        assert await tickets.add_note(number, "The customer wrote again.", "note-1")
    assert [ticket["notes"] for ticket in stored(database)] == [1]
    error = await failure(tickets.add_note("TICKET-7", "The customer wrote again.", "note-2"))
    assert (error.code, error.details["tool"]) == ("ticketing_unknown_ticket", "add_note")


async def test_the_connection_test_reads_the_database(tickets: LocalTickets, database: Path) -> None:
    assert await tickets.test_connection()
    database.unlink()
    assert "was moved, deleted or exchanged" in (await failure(tickets.test_connection())).message
