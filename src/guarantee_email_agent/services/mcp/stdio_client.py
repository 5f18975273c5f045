"""The client of our own servers over stdio: the same protocol as the SDK's client, in the few messages that they use.

The SDK takes most of a second and 30 MB to load, and then three times as long for a call. Answers are not held against
the schema of the tool: ours are made from the very models that the schemas are written from.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from itertools import count
from typing import Any, Final

from guarantee_email_agent.services.call_errors import ERROR_META_KEY
from guarantee_email_agent.services.mcp.server_process import AnswerTooLargeError, ServerProcess
from guarantee_email_agent.services.mcp.tool_client import CallFailedError, OfferedTool, ToolAnswer, encode_json
from guarantee_email_agent.utils.version import __version__

PROTOCOL_VERSION: Final = "2025-11-25"


@asynccontextmanager
async def stdio_client(process: ServerProcess) -> AsyncIterator[StdioClient]:
    """Raises OSError and ValueError as the process does, and ConnectionError where it is no such server."""
    client = StdioClient(process)
    async with process.running(client.receive, client.end):
        try:
            await client.initialize()
        except CallFailedError as failure:
            raise ConnectionError(failure.message) from None
        yield client


class StdioClient:
    """A ToolClient. Any number of tasks may call at once."""

    def __init__(self, process: ServerProcess) -> None:
        self._process = process
        self._ids = count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._ended = False

    async def initialize(self) -> None:
        """Raises ConnectionError."""
        about = {"name": "guarantee-email-agent", "version": __version__}
        offered = {"protocolVersion": PROTOCOL_VERSION, "capabilities": {}, "clientInfo": about}
        result = await self._request("initialize", offered)
        if result.get("protocolVersion") != PROTOCOL_VERSION:
            raise ConnectionError("it speaks another version of the protocol")
        self._process.write(_line({"jsonrpc": "2.0", "method": "notifications/initialized"}))

    async def list_tools(self) -> list[OfferedTool]:
        tools: list[OfferedTool] = []
        page: dict[str, Any] = {}
        while not tools or page.get("nextCursor"):
            page = await self._request("tools/list", {"cursor": page["nextCursor"]} if tools else {})
            try:
                tools += (OfferedTool(t["name"], t["inputSchema"], t.get("outputSchema")) for t in page["tools"])
            except (KeyError, TypeError):
                raise ConnectionError("its list of tools cannot be read") from None
            if not tools:
                break
        return tools

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> ToolAnswer:
        result = await self._request("tools/call", {"name": tool, "arguments": arguments})
        match result:
            case {"content": [*blocks], **rest}:
                text = "\n".join(block["text"] for block in blocks if block.get("type") == "text")
            case _:
                raise ValueError("the answer has no content")
        structured = rest.get("structuredContent")
        told = rest.get("_meta", {}).get(ERROR_META_KEY)
        declared = structured if told is None else {"error": told}
        return ToolAnswer(bool(rest.get("isError")), structured, text, declared)

    async def receive(self, line: bytes) -> bool:
        """Take a line of the server; False for one that is no message."""
        try:
            message = json.loads(line.decode())  # else it looks for UTF-16 and UTF-32 first
        except (ValueError, RecursionError):
            return False
        match message:
            case {"jsonrpc": "2.0", "id": int(request), "result": dict(result)}:
                if (waiting := self._waiting.pop(request, None)) is not None and not waiting.done():
                    waiting.set_result(result)
            case {"jsonrpc": "2.0", "id": int(request), "error": {"code": int(code), "message": str(text)}}:
                if (waiting := self._waiting.pop(request, None)) is not None and not waiting.done():
                    waiting.set_exception(CallFailedError(text, code))
            case {"jsonrpc": "2.0", "method": str()} | {"jsonrpc": "2.0", "id": None, "error": dict()}:
                pass
            case _:
                return False
        return True

    def end(self, _: AnswerTooLargeError | None = None) -> None:
        """No answer will come any more."""
        self._ended = True
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(CallFailedError("Connection closed", ended=True))
        self._waiting.clear()

    async def _request(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        if self._ended or self._process.is_closing:
            raise CallFailedError("Connection closed", ended=True, was_sent=False)
        request = next(self._ids)
        line = _line({"jsonrpc": "2.0", "id": request, "method": method, "params": params})
        answer = asyncio.get_running_loop().create_future()
        self._waiting[request] = answer
        try:
            self._process.write(line)
            await self._process.drain()
            result: dict[str, Any] = await answer
        except OSError:
            raise CallFailedError("Connection closed", ended=True) from None
        except asyncio.CancelledError:
            if self._waiting.pop(request, None) is not None and method != "initialize":
                given_up = {"requestId": request, "reason": "the caller gave it up"}
                self._process.write(_line({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": given_up}))
            raise
        finally:
            self._waiting.pop(request, None)
            if not answer.cancel() and not answer.cancelled():
                answer.exception()  # else asyncio complains of one that nobody asked for
        return result


def _line(message: Mapping[str, Any]) -> bytes:
    return encode_json(message) + b"\n"
