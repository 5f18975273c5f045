"""A look-up behind the MCP server of somebody else."""

from __future__ import annotations

from typing import Any, Final

from guarantee_email_agent.instructions.look_up import WARRANTY, LookUp
from guarantee_email_agent.services.call_errors import MALFORMED_SUFFIX
from guarantee_email_agent.services.clients import LookUpClient
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
