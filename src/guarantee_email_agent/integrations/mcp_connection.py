"""One connection to one MCP server, from its beginning to its end."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from guarantee_email_agent import __version__
from guarantee_email_agent.integrations.call_errors import ERROR_META_KEY
from guarantee_email_agent.integrations.http_transport import http_transport, record_error_statuses
from guarantee_email_agent.integrations.server_launch import ServerLaunch
from guarantee_email_agent.integrations.stdio_transport import StdioTransport
from guarantee_email_agent.utils.gc_pause import gc_paused

if TYPE_CHECKING:
    from mcp import Client
    from mcp.client import Transport
    from mcp_types import Tool

logger = logging.getLogger(__name__)

MAX_TOOL_PAGES: Final = 100


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What a tool answered. text: its text content, the blocks joined by line breaks.

    declared: what it says of a failure, for programs (see `declared_error`).
    """

    failed: bool
    structured: Any
    text: str
    declared: Any = None


@dataclass(eq=False)
class CallFailedError(Exception):
    """No answer of the tool came; the message is the server's or the SDK's. Never for a log above DEBUG.

    code: of JSON-RPC. http_status: of the response that there was instead, 0 without one. ended: the connection is of
    no more use. was_sent: the server may have got the call.
    """

    message: str
    code: int = 0
    http_status: int = 0
    ended: bool = False
    was_sent: bool = True


def load_sdk() -> None:
    """Import what a connection needs, which takes most of a second: not to be counted among a server's delays."""
    logging.getLogger("mcp").setLevel(logging.CRITICAL)  # its tracebacks may quote mails
    with gc_paused():
        import mcp
        import mcp.client.streamable_http  # noqa: F401


class McpConnection:
    """The SDK's client, whose contexts are entered and left in one task of our own; calls may come from any task.

    `open` once, then `call` until `ended`, and `close` in any case.
    """

    def __init__(self, name: str, launch: ServerLaunch, max_answer_bytes: int, exit_grace_s: float) -> None:
        self._name = name
        self._launch = launch
        self._max_answer_bytes = max_answer_bytes
        self._exit_grace_s = exit_grace_s
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._client: Client | None = None
        self._opened = False
        self._stdio: StdioTransport | None = None
        self.parameters: Mapping[str, frozenset[str] | None] = {}
        """The tools, each with the names of its arguments; None where it takes any."""
        self.answer_types: Mapping[str, Mapping[str, frozenset[str]]] = {}
        """The fields of each tool's answer with their types, as far as it declares them plainly."""
        self.last_stderr_line = ""
        """The last line of the server's stderr, printable."""
        self.reason: BaseException | None = None
        """Why it ended, where there was an error."""

    @property
    def ended(self) -> bool:
        return self._task is None or self._stop.is_set() or self._task.done()

    @property
    def exit_code(self) -> int | None:
        """Of the server's process; negative for a signal. None for one that runs or is reached by URL."""
        return self._stdio.exit_code if self._stdio else None

    async def open(self) -> None:
        """Connect, negotiate the protocol, list the tools. Raises what stood in the way; `close` all the same."""
        opened = asyncio.Event()
        self._task = asyncio.create_task(self._run(opened), name=f"mcp {self._name}")
        self._task.add_done_callback(lambda _: opened.set())
        await opened.wait()
        if not self._opened:
            raise self.reason or EOFError("the connection was closed")

    def end(self, reason: BaseException | None = None) -> None:
        """Leave, and stop the server if we started it, without waiting for that."""
        self.reason = self.reason or reason
        self._stop.set()

    async def ended_within(self, seconds: float | None) -> bool:
        """`end`, and whether the server is gone by then. Cancelled, it still ends."""
        self.end()
        return self._task is None or bool((await asyncio.wait((self._task,), timeout=seconds))[0])

    async def close(self) -> None:
        """`end`, and return once the server is gone; one that has not answered yet is not waited for."""
        if self._task is None:
            return
        if not self._opened:
            self._task.cancel()
        # A process is stopped in steps that have limits; the SDK's end of a session over HTTP has none.
        if not await self.ended_within(None if self._stdio else self._exit_grace_s):
            self._task.cancel()
            await asyncio.wait((self._task,), timeout=self._exit_grace_s)

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> ToolAnswer:
        """Raises CallFailedError where no answer of the tool comes, ValueError where it is not as the tool declares.

        Sets no limit to the waiting.
        """
        from mcp import MCPError
        from mcp_types import CONNECTION_CLOSED, TextContent

        try:
            json.dumps(arguments, ensure_ascii=False, allow_nan=False).encode()
        except ValueError:  # half a character (a lone surrogate), or no number
            raise CallFailedError("the arguments cannot be written as JSON", was_sent=False) from None
        if self._client is None or self.ended:
            raise CallFailedError("the connection has ended", ended=True, was_sent=False)
        statuses = record_error_statuses()
        try:
            result = await self._client.call_tool(tool, dict(arguments))
        except MCPError as error:
            status = statuses[-1] if statuses else 0
            forgotten = status == 404  # the session, by a server that was started anew
            ended = forgotten or error.code == CONNECTION_CLOSED or self._stop.is_set()
            raise CallFailedError(error.message, error.code, status, ended=ended, was_sent=not forgotten) from None
        except (RuntimeError, ValueError) as error:  # the SDK's, for results that fit no schema
            if self._stop.is_set():
                raise CallFailedError("the connection has ended", ended=True) from None
            raise ValueError(str(error)) from None
        text = "\n".join(block.text for block in result.content if isinstance(block, TextContent))
        structured = result.structured_content
        told = (result.meta or {}).get(ERROR_META_KEY)
        declared = structured if told is None else {"error": told}
        return ToolAnswer(bool(result.is_error), structured, text, declared)

    async def _run(self, opened: asyncio.Event) -> None:
        try:
            async with self._create_client() as self._client:
                tools = await _list_tools(self._client)
                self.parameters = {tool.name: _argument_names(tool) for tool in tools}
                self.answer_types = {tool.name: _declared_types(tool) for tool in tools}
                self._opened = True
                opened.set()
                await self._stop.wait()
        except asyncio.CancelledError:
            self.end(TimeoutError("it did not answer in time"))
        except (Exception, BaseExceptionGroup) as error:  # noqa: BLE001 - whatever it is, it is why there is no connection
            self.end(_root_cause(error))
        finally:
            self._stop.set()

    def _create_client(self) -> Client:
        from mcp import Client
        from mcp_types import Implementation

        limit = self._max_answer_bytes
        transport: Transport
        if self._launch.command is None:
            transport = http_transport(self._launch, limit, self.end)
        else:
            self._stdio = StdioTransport(self._launch, limit, self._exit_grace_s, self._log_stderr, self.end)
            transport = self._stdio
        client_info = Implementation(name="guarantee-email-agent", version=__version__)
        return Client(transport, cache=None, client_info=client_info)

    def _log_stderr(self, line: str) -> None:
        if any(map(str.isalnum, line)):
            self.last_stderr_line = line
            # Ours print what an operator has to know; somebody else's may quote a mail. Why a server does not start
            # stands in the error.
            level = logging.WARNING if self._launch.built_in and self._opened else logging.DEBUG
            logger.log(level, "%s: %s", self._name, self._launch.with_setting_names(line))


async def _list_tools(client: Client) -> list[Tool]:
    tools: list[Tool] = []
    cursor: str | None = None
    for _ in range(MAX_TOOL_PAGES):
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        if (cursor := page.next_cursor) is None:
            break
    return tools


def _argument_names(tool: Tool) -> frozenset[str] | None:
    properties = tool.input_schema.get("properties")
    return frozenset(properties) if isinstance(properties, Mapping) else None


def _declared_types(tool: Tool) -> dict[str, frozenset[str]]:
    """Of the fields with a plain `type`; what is put together of other schemas is known by the answers alone."""
    properties = (tool.output_schema or {}).get("properties")
    found: dict[str, frozenset[str]] = {}
    for name, schema in properties.items() if isinstance(properties, Mapping) else ():
        match schema:
            case {"type": str(one)}:
                found[name] = frozenset({one})
            case {"type": [*several]}:
                found[name] = frozenset(map(str, several))
    return found


def _root_cause(error: BaseException) -> BaseException:
    """Task groups wrap what happened, several levels deep."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
