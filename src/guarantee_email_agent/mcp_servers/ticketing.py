"""MCP server that keeps tickets in an SQLite database: `guarantee-email-agent mcp-server ticketing`."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Protocol

from pydantic import Field

from guarantee_email_agent.mcp_servers.server import (
    CommandLine,
    ServerTool,
    ToolArguments,
    ToolOutput,
    exit_with_error,
    in_thread,
    serve,
)
from guarantee_email_agent.services.call_errors import ToolError
from guarantee_email_agent.services.ticket_store import SERVER, TicketStore, now

_DESCRIPTION: Final = """\
MCP server that keeps tickets in an SQLite database, made where it is missing. Several of these servers may use one
database at a time. Nothing is stored but what create_ticket and add_note take, and when each was called."""

_Key = Annotated[
    str,
    Field(
        min_length=1,
        max_length=200,
        description="Names the cause of the ticket: the same key always gives the same ticket.",
    ),
]


_Name = Annotated[str, Field(min_length=1, max_length=40)]
_Detail = Annotated[str, Field(max_length=320)]


class TicketFields(ToolArguments):
    serial_number: str = Field("", max_length=100)
    warranty_status: str = Field("", max_length=40)
    customer_email: str = Field(max_length=320)
    priority: str = Field(max_length=40)
    category: str = Field(max_length=100)
    idempotency_key: _Key
    details: dict[_Name, _Detail] = Field(
        default_factory=dict, max_length=20, description="Any further fields, by their names."
    )


class CreatedTicket(ToolOutput):
    ticket_id: str = Field(description="Such as TICKET-000001.")
    status: Literal["created", "existing"]


class FoundTicket(ToolOutput):
    ticket_id: str | None


class NewNote(ToolArguments):
    ticket_id: str = Field(min_length=1, max_length=64, description="Such as TICKET-000001.")
    note: str = Field(min_length=1, max_length=4000)
    idempotency_key: Annotated[
        str,
        Field(min_length=1, max_length=200, description="Names the cause of the note: the same key adds one note."),
    ]


class AddedNote(ToolOutput):
    status: Literal["added", "existing"]


class StoredTicket(TicketFields):
    ticket_id: str
    created_at: str
    notes: int = Field(description="How many notes were added to it.")


class LatestTickets(ToolOutput):
    tickets: list[StoredTicket]
    total: int


class TicketKeeper(Protocol):
    """What keeps tickets, as `TicketStore` does. May be called from several threads at once; raises ToolError."""

    def create(self, ticket: Mapping[str, str], created_at: str) -> tuple[str, bool]: ...
    def find(self, idempotency_key: str) -> str | None: ...
    def add_note(self, ticket_id: str, note: str, idempotency_key: str, created_at: str) -> bool: ...
    def latest(self, limit: int) -> tuple[list[dict[str, Any]], int]: ...


class TicketingTools:
    """The tools over one store."""

    def __init__(self, store: TicketKeeper) -> None:
        self._store = store

    def tools(self) -> list[ServerTool]:
        return [
            ServerTool(self.create_ticket, idempotent=True),
            ServerTool(self.add_note, idempotent=True),
            ServerTool(self.find_ticket, read_only=True),
            ServerTool(self.list_tickets, read_only=True),
        ]

    async def create_ticket(self, arguments: TicketFields) -> CreatedTicket:
        """Create a ticket, or get the one that there is with the same idempotency key, unchanged.

        Harmless to repeat.
        """
        ticket = arguments.model_dump(exclude_unset=True)
        if "details" in ticket:
            ticket["details"] = json.dumps(arguments.details, ensure_ascii=False)
        ticket_id, new = await in_thread(self._store.create, ticket, now())
        return CreatedTicket(ticket_id=ticket_id, status="created" if new else "existing")

    async def add_note(self, arguments: NewNote) -> AddedNote:
        """Add a note to a ticket, unless one with the same idempotency key was added before.

        Harmless to repeat.
        """
        values = arguments.ticket_id, arguments.note, arguments.idempotency_key
        new = await in_thread(self._store.add_note, *values, now())
        return AddedNote(status="added" if new else "existing")

    async def find_ticket(self, idempotency_key: _Key) -> FoundTicket:
        """The id of the ticket with this idempotency key; null where there is none."""
        return FoundTicket(ticket_id=await in_thread(self._store.find, idempotency_key))

    async def list_tickets(self, limit: Annotated[int, Field(ge=1, le=1000)] = 50) -> LatestTickets:
        """The latest tickets, newest first, and how many there are in all."""
        tickets, total = await in_thread(self._store.latest, limit)
        return LatestTickets(
            tickets=[StoredTicket(**ticket | {"details": json.loads(ticket["details"])}) for ticket in tickets],
            total=total,
        )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = CommandLine("ticketing", _DESCRIPTION)
    parser.add_argument("--database", type=Path, required=True, metavar="FILE", help="the SQLite database")
    options = parser.parse_args(arguments)
    try:
        store = TicketStore(options.database)
    except ToolError as error:
        exit_with_error(error.message)
    with closing(store):
        return serve(SERVER, TicketingTools(store).tools())


if __name__ == "__main__":
    sys.exit(main())
