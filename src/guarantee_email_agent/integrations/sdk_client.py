"""The SDK's client, for the servers of others: it knows every version, and holds answers against their schemas."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from guarantee_email_agent.integrations.call_errors import ERROR_META_KEY
from guarantee_email_agent.integrations.http_transport import record_error_statuses
from guarantee_email_agent.integrations.offered_tool import OfferedTool
from guarantee_email_agent.integrations.tool_client import (
    NO_JSON,
    BadAnswerError,
    CallFailedError,
    ToolAnswer,
    encode_json,
)
from guarantee_email_agent.utils.gc_pause import gc_paused
from guarantee_email_agent.utils.version import __version__

if TYPE_CHECKING:
    from mcp import Client
    from mcp.client import Transport
    from mcp.client.session import IncomingMessage

MAX_TOOL_PAGES: Final = 100
# As the SDK words it:
_CONNECTION_CLOSED: Final = "Connection closed"
_INVALID_SCHEMA: Final = "Invalid schema"
# As the SDKs word it, those for Python and TypeScript:
_FORGOTTEN: Final = re.compile(r"(?i)\b(no valid|invalid|unknown|missing) session\b|\bserver not initialized\b")


def load_sdk() -> None:
    """Import what a connection needs, which takes most of a second: not to be counted among a server's delays."""
    logging.getLogger("mcp").setLevel(logging.CRITICAL)  # its tracebacks may quote mails
    with gc_paused():
        import mcp
        import mcp.client.streamable_http  # noqa: F401 - loaded ahead


@asynccontextmanager
async def sdk_client(transport: Transport, on_tools_changed: Callable[[], None]) -> AsyncIterator[SdkClient]:
    """on_tools_changed: called where the server says that its tools are others now."""
    from mcp import Client
    from mcp_types import Implementation, ToolListChangedNotification

    async def on_message(message: IncomingMessage) -> None:
        if isinstance(message, ToolListChangedNotification):
            on_tools_changed()

    client_info = Implementation(name="guarantee-email-agent", version=__version__)
    async with Client(transport, cache=None, client_info=client_info, message_handler=on_message) as client:
        yield SdkClient(client)


class SdkClient:
    """A ToolClient."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def list_tools(self) -> list[OfferedTool]:
        from mcp import MCPError

        tools: list[OfferedTool] = []
        cursor: str | None = None
        for _ in range(MAX_TOOL_PAGES):
            try:
                page = await self._client.list_tools(cursor=cursor)
            except MCPError as error:
                raise CallFailedError(error.message, error.code) from None
            tools += map(OfferedTool.of, page.tools)
            if (cursor := page.next_cursor) is None:
                break
        return tools

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> ToolAnswer:
        from mcp import MCPError
        from mcp_types import CONNECTION_CLOSED, PARSE_ERROR, TextContent

        encode_json(arguments)  # which the SDK would fail on in its own way
        statuses = record_error_statuses()
        try:
            result = await self._client.call_tool(tool, dict(arguments))
        except MCPError as error:
            if error.code == PARSE_ERROR and error.message == NO_JSON:
                raise BadAnswerError(NO_JSON) from None
            status = statuses[-1] if statuses else 0
            # The session, by a server that was started anew: 404 by the protocol, 400 of many.
            forgotten = status == 404 or (status == 400 and _FORGOTTEN.search(error.message) is not None)
            # The SDK's code for a lost connection is also the one that most servers have for any error of their own.
            ended = forgotten or (error.code == CONNECTION_CLOSED and error.message == _CONNECTION_CLOSED)
            raise CallFailedError(error.message, error.code, status, ended=ended, was_sent=not forgotten) from None
        except RuntimeError as error:  # for results that fit no schema
            if str(error).startswith(_INVALID_SCHEMA):
                raise BadAnswerError("cannot be held against its outputSchema, which is no valid one") from None
            raise ValueError(str(error)) from None
        text = "\n".join(block.text for block in result.content if isinstance(block, TextContent))
        structured = result.structured_content
        told = (result.meta or {}).get(ERROR_META_KEY)
        declared = structured if told is None else {"error": told}
        return ToolAnswer(bool(result.is_error), structured, text, declared)
