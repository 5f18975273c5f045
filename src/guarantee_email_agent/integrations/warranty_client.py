"""The warranty system behind its MCP server."""

from __future__ import annotations

from typing import Any, Final

from guarantee_email_agent.integrations.mcp_session import McpSession
from guarantee_email_agent.utils.circuit_breaker import CircuitBreaker
from guarantee_email_agent.utils.clock import Clock

CALLS: Final = {"check_warranty": frozenset({"serial_number"})}


class WarrantyClient:
    """A WarrantyApi. timeout_s: seconds for one call."""

    def __init__(self, session: McpSession, clock: Clock, timeout_s: float) -> None:
        self._session = session
        self._timeout_s = timeout_s
        self._circuit = CircuitBreaker(session.name, clock)

    async def check_warranty(self, serial_number: str) -> dict[str, Any]:
        """As the service answers; `integrations.answers.warranty_answer` checks it."""
        return await self._circuit.call(
            lambda: self._session.call("check_warranty", {"serial_number": serial_number}, self._timeout_s)
        )

    async def test_connection(self) -> bool:
        """True, or MCPConnectionError. Looks nothing up: not every service takes a made-up number kindly."""
        await self._session.start()
        self._session.require(CALLS)
        return True

    async def close(self) -> None:
        await self._session.close()
