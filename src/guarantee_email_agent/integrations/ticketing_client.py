"""The ticketing system behind its MCP server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from guarantee_email_agent.integrations.mcp_session import McpSession
from guarantee_email_agent.utils.circuit_breaker import CircuitBreaker
from guarantee_email_agent.utils.clock import Clock
from guarantee_email_agent.utils.errors import IntegrationError

TICKET_FIELDS: Final = frozenset(
    {"serial_number", "warranty_status", "customer_email", "priority", "category", "idempotency_key"}
)
CALLS: Final = {"create_ticket": TICKET_FIELDS}
"""Without an idempotency key a call repeated after a lost answer opens a second ticket: such a server is refused."""

_PROBE_KEY: Final = "connection-test"


class TicketingClient:
    """A TicketingSystem. timeout_s: seconds for one call."""

    def __init__(self, session: McpSession, clock: Clock, timeout_s: float) -> None:
        self._session = session
        self._timeout_s = timeout_s
        self._circuit = CircuitBreaker(session.name, clock)

    async def create_ticket(self, ticket_data: Mapping[str, Any]) -> dict[str, Any]:
        """`{"ticket_id", "status": "created"|"existing"}`. Harmless to repeat: the key in the data sees to that."""
        return await self._circuit.call(lambda: self._session.call("create_ticket", dict(ticket_data), self._timeout_s))

    async def find_ticket(self, idempotency_key: str) -> str | None:
        """The id of the ticket with this key. Raises `ticketing_unsupported` where the server cannot tell."""
        if "find_ticket" not in self._session.tools:
            await self._session.start()
        if "find_ticket" not in self._session.tools:
            raise IntegrationError(
                f"{self._session.name}: the server has no find_ticket", f"{self._session.name}_unsupported"
            )
        answer = await self._circuit.call(
            lambda: self._session.call("find_ticket", {"idempotency_key": idempotency_key}, self._timeout_s)
        )
        found = answer.get("ticket_id")
        return found if isinstance(found, str) else None

    async def list_tickets(self, limit: int = 50) -> list[dict[str, Any]]:
        """The newest tickets as the built-in server keeps them. Raises `ticketing_unsupported` where it is another."""
        if "list_tickets" not in self._session.tools:
            raise IntegrationError(
                f"{self._session.name}: the server has no list_tickets", f"{self._session.name}_unsupported"
            )
        answer = await self._circuit.call(lambda: self._session.call("list_tickets", {"limit": limit}, self._timeout_s))
        return [ticket for ticket in answer.get("tickets", ()) if isinstance(ticket, dict)]

    async def test_connection(self) -> bool:
        """True, or MCPConnectionError; IntegrationError where the server answers but its database does not."""
        await self._session.start()
        self._session.require(CALLS)
        if "find_ticket" in self._session.tools:
            await self.find_ticket(_PROBE_KEY)
        return True

    async def close(self) -> None:
        await self._session.close()
