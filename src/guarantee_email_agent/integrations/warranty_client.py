"""The warranty system behind its MCP server, and the check of what it answers before anything reaches a customer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from guarantee_email_agent.instructions.router import WarrantyStatus
from guarantee_email_agent.integrations.ports import is_quotable
from guarantee_email_agent.utils.circuit_breaker import CircuitBreaker
from guarantee_email_agent.utils.clock import Clock
from guarantee_email_agent.utils.errors import IntegrationError

if TYPE_CHECKING:  # an evaluation reads answers, and starts no server
    from guarantee_email_agent.integrations.mcp_session import McpSession

CALLS: Final = {"check_warranty": frozenset({"serial_number"})}

_STATUSES: Final[Mapping[str, WarrantyStatus]] = {"valid": "valid", "expired": "expired", "not_found": "not_found"}


class WarrantyClient:
    """A WarrantyApi. timeout_s: seconds for one call."""

    def __init__(self, session: McpSession, clock: Clock, timeout_s: float) -> None:
        self._session = session
        self._timeout_s = timeout_s
        self._circuit = CircuitBreaker(session.name, clock)

    async def check_warranty(self, serial_number: str) -> dict[str, Any]:
        """As the service answers; `parse_warranty_answer` checks it."""
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


@dataclass(frozen=True, slots=True)
class WarrantyAnswer:
    """What the warranty system knows of one serial number; dates and coverage in its own words."""

    status: WarrantyStatus
    expiration_date: str | None
    coverage: str | None


def parse_warranty_answer(raw: object) -> WarrantyAnswer:
    """Raises IntegrationError `warranty_api_malformed` for anything that could not be repeated to a customer."""
    if not isinstance(raw, Mapping):
        raise _malformed("is no mapping")
    status = raw.get("status")
    if not isinstance(status, str) or not status.strip():
        raise _malformed("has no status")
    known = _STATUSES.get(status.strip().casefold().replace(" ", "_").replace("-", "_"), "other")
    return WarrantyAnswer(known, _quotable_value(raw, "expiration_date"), _quotable_value(raw, "coverage"))


def _quotable_value(raw: Mapping[str, object], name: str) -> str | None:
    value = raw.get(name)
    if value is None or value == "":
        return None
    if not isinstance(value, str) or not is_quotable(value):
        raise _malformed(f"has an unusable {name}")
    return value


def _malformed(problem: str) -> IntegrationError:
    return IntegrationError(f"The answer of warranty_api {problem}. Check the service", "warranty_api_malformed")
