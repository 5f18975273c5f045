"""The tickets in this process, in an SQLite database."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from guarantee_email_agent.services.blocking import BlockingService
from guarantee_email_agent.services.ticket_store import FIELDS, SERVER, TicketStore, TicketStoreError
from guarantee_email_agent.services.tool_error import ToolError

_NAMED: Final = frozenset(FIELDS) - {"details"}


class LocalTickets:
    """A TicketSource."""

    name = SERVER
    tool = "create_ticket"

    def __init__(self, database: Path, timeout_s: float) -> None:
        self._service = BlockingService(SERVER, "tickets.database", lambda: _open(database), timeout_s)

    async def create_ticket(self, ticket_data: Mapping[str, Any]) -> dict[str, Any]:
        """`{"ticket_id", "status": "created"|"existing"}`. Fields beside the store's own become its `details`."""
        further = {name: value for name, value in ticket_data.items() if name not in _NAMED}
        ticket = {name: value for name, value in ticket_data.items() if name in _NAMED}
        if further:
            ticket["details"] = json.dumps(further, ensure_ascii=False)
        number, is_new = await self._service.call(self.tool, lambda store: store.create(ticket, now()))
        return {"ticket_id": number, "status": "created" if is_new else "existing"}

    async def add_note(self, ticket_id: str, note: str, idempotency_key: str) -> bool:
        await self._service.call("add_note", lambda store: store.add_note(ticket_id, note, idempotency_key, now()))
        return True

    async def test_connection(self) -> bool:
        await self._service.call("find_ticket", lambda store: store.find("connection-test"))
        return True

    async def test_answer(self) -> str:
        return ""

    async def close(self) -> None:
        await self._service.close()


def now() -> str:
    """UTC, ISO 8601."""
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _open(database: Path) -> TicketStore:
    try:
        return TicketStore(database)
    except TicketStoreError as error:
        raise ToolError(f"{SERVER}_invalid_database", str(error)) from None
