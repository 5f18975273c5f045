from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from mcp_sessions import Servers


@pytest.fixture
async def servers() -> AsyncIterator[Servers]:
    """What it started is stopped."""
    servers = Servers()
    yield servers
    await servers.close()
