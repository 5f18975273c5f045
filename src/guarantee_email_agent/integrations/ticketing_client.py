"""The ticketing system behind its MCP server, and the check of the ticket numbers that it gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from guarantee_email_agent.integrations.ports import TICKET_ID
from guarantee_email_agent.utils.circuit_breaker import CircuitBreaker
from guarantee_email_agent.utils.clock import Clock
from guarantee_email_agent.utils.errors import IntegrationError

if TYPE_CHECKING:  # an evaluation reads answers, and starts no server
    from guarantee_email_agent.integrations.mcp_session import McpSession

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
        return await self._call("create_ticket", dict(ticket_data))

    async def list_tickets(self, limit: int = 50) -> list[dict[str, Any]]:
        """The newest tickets, of the built-in server only."""
        answer = await self._call("list_tickets", {"limit": limit})
        return [ticket for ticket in answer.get("tickets", ()) if isinstance(ticket, dict)]

    async def test_connection(self) -> bool:
        """True, or MCPConnectionError; IntegrationError where the server answers but its database does not."""
        await self._session.start()
        self._session.require(CALLS)
        if "find_ticket" in self._session.tools:
            await self._call("find_ticket", {"idempotency_key": _PROBE_KEY})
        return True

    async def close(self) -> None:
        await self._session.close()

    async def _call(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        return await self._circuit.call(lambda: self._session.call(tool, arguments, self._timeout_s))


def parse_ticket_id(raw: object) -> str:
    """Raises IntegrationError `ticketing_malformed` for an answer without a usable ticket number."""
    value = raw.get("ticket_id") if isinstance(raw, Mapping) else None
    if not isinstance(value, str) or not TICKET_ID.fullmatch(value):
        raise IntegrationError(
            "The answer of ticketing has no usable ticket_id. Check the service", "ticketing_malformed"
        )
    return value
