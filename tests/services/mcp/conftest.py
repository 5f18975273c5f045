from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from mcp_sessions import Script, Servers

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


@pytest.fixture
def script(tmp_path: Path) -> Script:
    """Of the next server by `servers.scripted`."""
    return Script(tmp_path / "script.json")


@pytest.fixture(autouse=True, scope="session")
def _needs_mcp() -> None:
    pytest.importorskip("mcp", reason="mcp is not installed: uv sync --group ci")
