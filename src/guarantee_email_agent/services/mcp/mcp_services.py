"""Look-ups and tickets behind the MCP servers of somebody else."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from guarantee_email_agent.config.mcp_server import ToolMapping
from guarantee_email_agent.instructions.look_up import WARRANTY, LookUp
from guarantee_email_agent.services.call_errors import MALFORMED_SUFFIX, forbid_repeat
from guarantee_email_agent.services.clients import LookUpClient, TicketingClient
from guarantee_email_agent.services.look_up_answer import parse_look_up_answer
from guarantee_email_agent.services.mcp.mapped_session import MappedSession, not_tried
from guarantee_email_agent.services.mcp.mcp_session import McpSession
from guarantee_email_agent.utils.clock import Clock
from guarantee_email_agent.utils.errors import IntegrationError

SAMPLE_NUMBER: Final = "CHECK-00000000"
SAMPLE_DIGITS: Final = "00000000"
"""Where the numbers of a service are whole ones."""


class McpLookUp(LookUpClient):
    """timeout_s: seconds for one call.

    Its connection test looks nothing up: not every service takes a made-up number kindly. takes_any: this one does.
    """

    def __init__(
        self,
        session: McpSession,
        timeout_s: float,
        tool: str,
        argument: str,
        clock: Clock,
        look_up: LookUp,
        *,
        takes_any: bool = False,
    ) -> None:
        super().__init__(session.name, session.name_of(tool), clock, look_up)
        self._session = session
        self._timeout_s = timeout_s
        self._own_tool = tool
        self._argument = argument
        self._takes_any = takes_any

    async def _ask(self, number: str) -> dict[str, Any]:
        return await self._session.call(self._own_tool, {self._argument: number}, self._timeout_s)

    async def test_connection(self) -> bool:
        """Raises MCPConnectionError for a tool that is missing, or does not take the number."""
        await self._session.require({self._own_tool: frozenset({self._argument})})
        return True

    async def test_answer(self) -> str:
        if isinstance(self._session, MappedSession):
            return await self._test_mapped_answer(self._session)
        if self._takes_any:
            try:
                await self.look_up(SAMPLE_NUMBER)
            except IntegrationError as error:  # a service that refuses a number has its reasons, and is not to blame
                if error.code.endswith(MALFORMED_SUFFIX):
                    raise
        return ""

    async def _test_mapped_answer(self, session: MappedSession) -> str:
        tool = self._own_tool
        if not session.may_sample(tool):
            return not_tried(session, tool)
        given = session.sample(tool).get(self._argument)
        numbers = (SAMPLE_NUMBER, SAMPLE_DIGITS) if given is None else (given,)
        number = next((each for each in numbers if session.asks_for(tool, {self._argument: each})), None)
        if number is None:
            return f"{self.tool} was not tried: the sample is no whole number"
        answer = parse_look_up_answer(await self.look_up(number), self._look_up)
        known = "".join(f", {name}" for name in answer.facts)
        return f"{self.tool} answered a sample call: {answer.status}{known}"

    async def close(self) -> None:
        await self._session.close()


def warranty_over_mcp(session: McpSession, timeout_s: float, clock: Clock) -> McpLookUp:
    """The warranty system, which is asked for a number that nobody has to see that it answers."""
    return McpLookUp(session, timeout_s, "check_warranty", "serial_number", clock, WARRANTY, takes_any=True)


# Without an idempotency key a call repeated after a lost answer opens a second ticket: such a server is refused.
_TICKET_ARGUMENTS: Final = frozenset(
    {"serial_number", "warranty_status", "customer_email", "priority", "category", "idempotency_key"}
)


class McpTickets(TicketingClient):
    """timeout_s: seconds for one call."""

    def __init__(self, session: McpSession, timeout_s: float, clock: Clock) -> None:
        super().__init__(session.name, session.name_of("create_ticket"), clock)
        self._session = session
        self._timeout_s = timeout_s

    async def _create(self, ticket_data: Mapping[str, Any]) -> dict[str, Any]:
        fields: dict[str, Any] = dict(ticket_data)
        if not await self._session.offers("create_ticket", fields.keys(), self._timeout_s):
            # Ours has a place for what it does not know by name.
            further = {name: value for name, value in fields.items() if name not in _TICKET_ARGUMENTS}
            fields = {name: value for name, value in fields.items() if name in _TICKET_ARGUMENTS} | {"details": further}
        return await self._session.call("create_ticket", fields, self._timeout_s)

    async def _add_note(self, ticket_id: str, note: str, idempotency_key: str) -> bool:
        """False, and nothing happens, where the server's `add_note` takes other arguments, or it has none."""
        arguments = {"ticket_id": ticket_id, "note": note, "idempotency_key": idempotency_key}
        if not await self._session.offers("add_note", arguments.keys(), self._timeout_s):
            return False
        await self._session.call("add_note", arguments, self._timeout_s)
        return True

    async def test_connection(self) -> bool:
        """Raises MCPConnectionError, and IntegrationError where the server answers but its database does not."""
        await self._session.require({"create_ticket": _TICKET_ARGUMENTS})
        if "find_ticket" in self._session.tools:
            await self._session.call("find_ticket", {"idempotency_key": "connection-test"}, self._timeout_s)
        return True

    async def close(self) -> None:
        await self._session.close()


class MappedTickets(McpTickets):
    """On a server whose tools are mapped. The mapping says what keeps a ticket from being opened twice."""

    def __init__(
        self, session: MappedSession, timeout_s: float, clock: Clock, mappings: Mapping[str, ToolMapping]
    ) -> None:
        super().__init__(session, timeout_s, clock)
        self._mapped = session
        self._mappings = mappings

    async def _create(self, ticket_data: Mapping[str, Any]) -> dict[str, Any]:
        if "find_ticket" in self._mappings:
            found = await self._find(str(ticket_data["idempotency_key"]))
            if found is not None:
                return {"ticket_id": found, "status": "existing"}
        if self._mappings["create_ticket"].may_duplicate:
            with forbid_repeat():
                return await self._mapped.call("create_ticket", ticket_data, self._timeout_s)
        return await self._mapped.call("create_ticket", ticket_data, self._timeout_s)

    async def test_connection(self) -> bool:
        await self._session.require({"create_ticket": frozenset()})
        return True

    async def test_answer(self) -> str:
        if "find_ticket" not in self._mappings:
            return ""
        if not self._mapped.may_sample("find_ticket"):
            return not_tried(self._mapped, "find_ticket")
        found = await self._find(self._mapped.sample("find_ticket").get("idempotency_key", "connection-test"))
        return f"{self._mapped.name_of('find_ticket')} answered a sample call: {found or 'no such ticket'}"

    async def _find(self, key: str) -> str | None:
        """The ticket that holds the key: a search may find others that resemble it."""
        found = await self._mapped.call("find_ticket", {"idempotency_key": key}, self._timeout_s)
        holds_key = re.compile(rf"(?<![\w-]){re.escape(key)}(?![\w-])")
        return next(
            (ticket["ticket_id"] for ticket in found["tickets"] if holds_key.search(ticket["idempotency_key"])), None
        )
