"""Our own agent as an MCP client of the served mocks, as it meets real servers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Final

from guarantee_email_agent.eval.mocks import MockAnthropicClient, MockedServices, Mocks
from guarantee_email_agent.eval.models import EvalTestCase
from guarantee_email_agent.eval.runner import OpenServices
from guarantee_email_agent.eval.served_mocks import ServedMocks
from guarantee_email_agent.instructions.lexicon import LexiconSource
from guarantee_email_agent.mcp_servers.loopback import LoopbackServer
from guarantee_email_agent.services.mcp.mcp_mailbox import McpMailbox
from guarantee_email_agent.services.mcp.mcp_services import McpTickets, warranty_over_mcp
from guarantee_email_agent.services.mcp.mcp_session import McpSession
from guarantee_email_agent.services.mcp.server_launch import ServerLaunch
from guarantee_email_agent.utils.clock import SkippingClock

_CALL_S: Final = 30.0
"""For one call. A scenario's time-out takes none of it."""


class SkippingEventLoop(asyncio.SelectorEventLoop):
    """An event loop whose time can be put forward, so that nobody waits for a deadline that is sure to pass."""

    def __init__(self) -> None:
        self._skipped_s = 0.0
        super().__init__()

    def time(self) -> float:
        return super().time() + self._skipped_s

    def skip(self, seconds: float) -> None:
        """May be called from any thread."""
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self.call_soon_threadsafe(self._skip, seconds)

    def _skip(self, seconds: float) -> None:
        self._skipped_s += seconds


def services_over_mcp(server: LoopbackServer) -> OpenServices:
    """For an EvalRunner whose scenarios run in a SkippingEventLoop."""

    @asynccontextmanager
    async def open_services(
        test_case: EvalTestCase, lexicon: LexiconSource
    ) -> AsyncIterator[tuple[Mocks, MockedServices]]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SkippingEventLoop)
        served = ServedMocks(test_case, on_silence=partial(loop.skip, _CALL_S))
        urls = server.publish(served.servers)
        clock = SkippingClock()

        def session(name: str, key: str) -> McpSession:
            return McpSession(name, ServerLaunch("--agent own", url=urls[key]), clock)

        mail = McpMailbox(session("mail", "mail"), clock, _CALL_S)
        warranty = warranty_over_mcp(session("warranty_api", "warranty"), _CALL_S, clock)
        ticketing = McpTickets(session("ticketing", "ticketing"), _CALL_S, clock)
        try:
            yield served.mocks, MockedServices(mail, warranty, ticketing, MockAnthropicClient(lexicon=lexicon))
        finally:
            await asyncio.gather(mail.close(), warranty.close(), ticketing.close(), return_exceptions=True)
            await asyncio.to_thread(server.withdraw, urls)

    return open_services
