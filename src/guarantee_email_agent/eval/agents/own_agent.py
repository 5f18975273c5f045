"""Our own agent as an MCP client of the served mocks, as it meets real servers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from guarantee_email_agent.eval.mocks import MockAnthropicClient, MockedServices
from guarantee_email_agent.eval.models import EvalTestCase
from guarantee_email_agent.eval.runner import OpenServices
from guarantee_email_agent.eval.served_mocks import ServedMocks
from guarantee_email_agent.integrations.mail_client import MailClient
from guarantee_email_agent.integrations.mcp_session import McpSession
from guarantee_email_agent.integrations.server_launch import ServerLaunch
from guarantee_email_agent.integrations.services import TicketingClient, WarrantyClient
from guarantee_email_agent.mcp_servers.loopback import LoopbackServer
from guarantee_email_agent.utils.clock import SkippingClock

_CALL_S: Final = 3.0
"""For one call: what a scenario's time-out costs of real time, at every try."""


def services_over_mcp(server: LoopbackServer) -> OpenServices:
    """For EvalRunner."""

    @asynccontextmanager
    async def open_services(test_case: EvalTestCase) -> AsyncIterator[MockedServices]:
        served = ServedMocks(test_case)
        urls = server.publish(served.servers)
        clock = SkippingClock()

        def session(name: str, key: str) -> McpSession:
            return McpSession(name, ServerLaunch("--agent own", url=urls[key]), clock)

        mail = MailClient(session("mail", "mail"), clock, _CALL_S)
        warranty = WarrantyClient(session("warranty_api", "warranty"), clock, _CALL_S)
        ticketing = TicketingClient(session("ticketing", "ticketing"), clock, _CALL_S)
        clients = {"gmail": mail, "warranty": warranty, "ticketing": ticketing, "anthropic": MockAnthropicClient()}
        try:
            yield MockedServices(served.tools, served.clients, clients)
        finally:
            await asyncio.gather(mail.close(), warranty.close(), ticketing.close(), return_exceptions=True)
            await asyncio.to_thread(server.withdraw, urls)

    return open_services
