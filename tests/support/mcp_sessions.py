"""Sessions with real server processes, and what their failing calls raise."""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import pytest
from waiting import PATIENCE_S

from guarantee_email_agent.services.clients import MailClient
from guarantee_email_agent.services.mcp.mcp_services import McpMailbox
from guarantee_email_agent.services.mcp.mcp_session import McpSession
from guarantee_email_agent.services.mcp.server_launch import ServerLaunch, common_environment
from guarantee_email_agent.utils.clock import SkippingClock
from guarantee_email_agent.utils.errors import IntegrationError

Session = TypeVar("Session", bound=McpSession)

PROGRAMS = Path(__file__).parents[1] / "services" / "mcp"


TICKET: Final = {
    "serial_number": "SN-100",
    "warranty_status": "valid",
    "customer_email": "customer@example.com",
    "priority": "normal",
    "category": "warranty_claim",
    "idempotency_key": "mail-1",
}
"""What every ticket has."""


class Script:
    """What `scripted_tools.py` does, and was asked."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def write(self, *tools: dict[str, Any], notify: bool = False, **answers: dict[str, Any]) -> None:
        self.file.write_text(json.dumps({"tools": tools, "answers": answers, "notify": notify}))

    @property
    def calls(self) -> list[Any]:
        """The name and the arguments of each."""
        calls = self.file.with_name(f"{self.file.name}.calls")
        return [json.loads(line) for line in calls.read_text().splitlines()] if calls.exists() else []


def tool(name: str, *arguments: str, **fields: Any) -> dict[str, Any]:
    """As a server lists it. arguments: which it takes, of any type."""
    properties: dict[str, Any] = {argument: {} for argument in arguments}
    return {"name": name, "inputSchema": {"type": "object", "properties": properties}, **fields}


def prose(text: str, *, failed: bool = False) -> dict[str, Any]:
    """An answer."""
    return {"content": [{"type": "text", "text": text}], "isError": failed}


def structured(content: Mapping[str, Any]) -> dict[str, Any]:
    """An answer; one with an `error` is a failed call."""
    return {"content": [], "structuredContent": content, "isError": "error" in content}


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
        return self.keep(McpSession(name, launch or self.launch(), **settings))

    def scripted(self, script: Script) -> ServerLaunch:
        return self.launch(str(script.file), script="scripted_tools.py")

    def mail_client(self, session: McpSession, *, read_only: bool = False) -> MailClient:
        return McpMailbox(session, self.clock, PATIENCE_S, read_only=read_only)

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
