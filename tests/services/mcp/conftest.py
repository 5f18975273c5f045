from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from mcp_sessions import Servers

from guarantee_email_agent.services.mcp.mcp_session import McpSession


@pytest.fixture
async def servers() -> AsyncIterator[Servers]:
    """What it started is stopped."""
    servers = Servers()
    yield servers
    await servers.close()


@pytest.fixture
def session(servers: Servers) -> McpSession:
    """With `stdio_server.py`."""
    return servers.session()


@pytest.fixture(params=["sdk", "stdio_client"])
def either(servers: Servers, request: pytest.FixtureRequest) -> McpSession:
    """The same, through the SDK's client and through the one that our own servers get."""
    return servers.session(servers.launch(built_in=request.param == "stdio_client"))
