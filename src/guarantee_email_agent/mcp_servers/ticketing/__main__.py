"""MCP server that keeps tickets in an SQLite database: `python -m guarantee_email_agent.mcp_servers.ticketing`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from guarantee_email_agent.mcp_servers.command_line import CommandLine, fail
from guarantee_email_agent.mcp_servers.dispatcher import Tool, in_thread, serve
from guarantee_email_agent.mcp_servers.ticketing.ticket_store import TicketStore, TicketStoreError

NAME: Final = "ticketing"

DESCRIPTION = """\
MCP server that keeps tickets in an SQLite database, made where it is missing. Several of these servers may use one
database at a time. Nothing is stored but the fields that create_ticket takes, and when the ticket was made."""

_KEY: Final = {
    "type": "string",
    "minLength": 1,
    "maxLength": 200,
    "description": "Names the cause of the ticket: the same key always gives the same ticket.",
}
_FIELDS: Final[Mapping[str, Mapping[str, Any]]] = {
    "serial_number": {"type": "string", "maxLength": 100},
    "warranty_status": {"type": "string", "maxLength": 40},
    "customer_email": {"type": "string", "maxLength": 320},
    "priority": {"type": "string", "maxLength": 40},
    "category": {"type": "string", "maxLength": 100},
    "idempotency_key": _KEY,
}
_TICKET_ID: Final = {"type": "string", "description": "Such as TICKET-000001."}


def main(arguments: list[str] | None = None) -> int:
    parser = CommandLine("ticketing", DESCRIPTION)
    parser.add_argument("--database", type=Path, required=True, metavar="FILE", help="the SQLite database")
    options = parser.parse_args(arguments)
    try:
        store = TicketStore(options.database, NAME)
    except TicketStoreError as error:
        fail(str(error))
    try:
        return serve(NAME, tools(store, lambda: datetime.now(UTC)))
    finally:
        store.close()


def tools(store: TicketStore, now: Callable[[], datetime]) -> list[Tool]:
    """now: in UTC, for created_at."""
    return [_create_ticket(store, now), _find_ticket(store), _list_tickets(store)]


def _create_ticket(store: TicketStore, now: Callable[[], datetime]) -> Tool:
    async def call(arguments: Mapping[str, Any]) -> dict[str, Any]:
        created_at = now().isoformat(timespec="seconds").replace("+00:00", "Z")
        ticket_id, new = await in_thread(store.create, arguments, created_at)
        return {"ticket_id": ticket_id, "status": "created" if new else "existing"}

    return Tool(
        name="create_ticket",
        description="Create a ticket, or get the one that there is with the same idempotency key, unchanged. Harmless "
        "to repeat.",
        input_schema={"type": "object", "properties": _FIELDS, "required": list(_FIELDS)},
        output_schema={
            "type": "object",
            "properties": {"ticket_id": _TICKET_ID, "status": {"type": "string", "enum": ["created", "existing"]}},
            "required": ["ticket_id", "status"],
        },
        call=call,
    )


def _find_ticket(store: TicketStore) -> Tool:
    async def call(arguments: Mapping[str, Any]) -> dict[str, Any]:
        return {"ticket_id": await in_thread(store.find, arguments["idempotency_key"])}

    return Tool(
        name="find_ticket",
        description="The id of the ticket with this idempotency key; null where there is none.",
        input_schema={"type": "object", "properties": {"idempotency_key": _KEY}, "required": ["idempotency_key"]},
        output_schema={
            "type": "object",
            "properties": {"ticket_id": {"type": ["string", "null"]}},
            "required": ["ticket_id"],
        },
        call=call,
        read_only=True,
    )


def _list_tickets(store: TicketStore) -> Tool:
    async def call(arguments: Mapping[str, Any]) -> dict[str, Any]:
        tickets, total = await in_thread(store.latest, arguments["limit"])
        return {"tickets": tickets, "total": total}

    ticket = {name: {"type": "string"} for name in ("ticket_id", "created_at", *_FIELDS)}
    return Tool(
        name="list_tickets",
        description="The latest tickets, newest first, and how many there are in all.",
        input_schema={
            "type": "object",
            "properties": {"limit": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 50}},
        },
        output_schema={
            "type": "object",
            "properties": {
                "tickets": {"type": "array", "items": {"type": "object", "properties": ticket}},
                "total": {"type": "integer"},
            },
            "required": ["tickets", "total"],
        },
        call=call,
        read_only=True,
    )


if __name__ == "__main__":
    sys.exit(main())
