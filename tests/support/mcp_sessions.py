"""Sessions with real server processes, and what their failing calls raise."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from guarantee_email_agent.services.mcp.mcp_session import McpSession
from guarantee_email_agent.services.mcp.server_launch import ServerLaunch, common_environment
from guarantee_email_agent.utils.clock import SkippingClock
from guarantee_email_agent.utils.errors import IntegrationError

Session = TypeVar("Session", bound=McpSession)

PROGRAMS = Path(__file__).parents[1] / "services" / "mcp"


class Servers:
    """Makes sessions, and closes them all."""

    def __init__(self) -> None:
        self.clock = SkippingClock()
        self._sessions: list[McpSession] = []

    def launch(self, *args: str, script: str = "stdio_server.py", **fields: Any) -> ServerLaunch:
        fields.setdefault("environment", common_environment(os.environ))
        return ServerLaunch("mcp.test", sys.executable, (str(PROGRAMS / script), *args), **fields)

    def session(self, launch: ServerLaunch | None = None, name: str = "oracle", **settings: Any) -> McpSession:
        settings.setdefault("exit_grace_s", 1.0)
        return self.keep(McpSession(name, launch or self.launch(), self.clock, **settings))

    def keep(self, session: Session) -> Session:
        """Closed with the others."""
        self._sessions.append(session)
        return session

    async def close(self) -> None:
        await asyncio.gather(*(session.close() for session in self._sessions))


async def failure(call: Awaitable[Any]) -> IntegrationError:
    with pytest.raises(IntegrationError) as caught:
        await call
    return caught.value
