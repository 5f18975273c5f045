"""One connection to one MCP server of somebody else, over HTTP or stdio: the official SDK's client.

It knows every version of the protocol, and holds answers against their schemas.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from guarantee_email_agent.services.call_errors import ERROR_META_KEY
from guarantee_email_agent.services.mcp.server_launch import AnswerTooLargeError, ServerLaunch, StdioServer
from guarantee_email_agent.utils.distribution import __version__
from guarantee_email_agent.utils.loopback import is_loopback
from guarantee_email_agent.utils.process import gc_paused

if TYPE_CHECKING:
    from httpx2 import AsyncByteStream, Response
    from mcp import Client
    from mcp.client import Transport
    from mcp.client._transport import TransportStreams
    from mcp.client.session import IncomingMessage
    from mcp_types import Tool

logger = logging.getLogger(__name__)

MAX_TOOL_PAGES: Final = 100
CONNECT_S: Final = 10.0  # for one HTTP connection to come about
# As the SDK words it:
_CONNECTION_CLOSED: Final = "Connection closed"
# As the SDKs word it, those for Python and TypeScript:
_FORGOTTEN: Final = re.compile(r"(?i)\b(no valid|invalid|unknown|missing) session\b|\bserver not initialized\b")


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """name, and the JSON schemas of its arguments and of its answer. read_only: whether it says that it only reads."""

    name: str
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any] | None = None
    read_only: bool = False
    description: str = ""

    @classmethod
    def of(cls, tool: Tool) -> Self:
        read_only = tool.annotations is not None and tool.annotations.read_only_hint is True
        return cls(tool.name, tool.input_schema, tool.output_schema, read_only, tool.description or "")

    @property
    def parameters(self) -> frozenset[str] | None:
        """The names of its arguments; None where it takes any."""
        properties = self.input_schema.get("properties")
        return frozenset(properties) if isinstance(properties, Mapping) else None


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What a tool answered. text: its text content, the blocks joined by line breaks. content: all blocks, of the SDK.

    declared: what it says of a failure, for programs (see `declared_error`).
    """

    failed: bool
    structured: Any
    text: str
    declared: Any = None
    content: Sequence[Any] = ()


@dataclass(eq=False)
class CallFailedError(Exception):
    """No answer of the tool came; the message is the server's or the client's. Never for a log above DEBUG.

    code: of JSON-RPC. http_status: of the response that there was instead, 0 without one. ended: the connection is of
    no more use. was_sent: the server may have got the call.
    """

    message: str
    code: int = 0
    http_status: int = 0
    ended: bool = False
    was_sent: bool = True

    def __str__(self) -> str:
        return self.message


def load_sdk() -> None:
    """Import what a connection needs, which takes most of a second: not to be counted among a server's delays."""
    logging.getLogger("mcp").setLevel(logging.CRITICAL)  # its tracebacks may quote mails
    with gc_paused():
        import mcp
        import mcp.client.streamable_http  # noqa: F401 - loaded ahead


class McpConnection:
    """A client, whose contexts are entered and left in one task of our own; calls may come from any task.

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
        self._process: StdioServer | None = None
        self.tools: Mapping[str, OfferedTool] = {}
        """As they were listed last, by name."""
        self.tools_changed = False
        """Whether the server said that they did since."""
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
        return self._process.exit_code if self._process else None

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
        if not await self.ended_within(None if self._process else self._exit_grace_s):
            self._task.cancel()
            await asyncio.wait((self._task,), timeout=self._exit_grace_s)

    async def list_tools(self) -> None:
        """Ask for the tools anew, those of all pages. Raises CallFailedError; they are then as they were."""
        from mcp import MCPError

        client = self._open_client()
        tools: dict[str, OfferedTool] = {}
        cursor: str | None = None
        self.tools_changed = False
        try:
            for _ in range(MAX_TOOL_PAGES):
                page = await client.list_tools(cursor=cursor)
                for tool in map(OfferedTool.of, page.tools):
                    if tools.setdefault(tool.name, tool) != tool:
                        raise ValueError(f"it offers two different tools called {tool.name}")
                if (cursor := page.next_cursor) is None:
                    break
            else:
                raise ValueError(f"its list of tools has more than {MAX_TOOL_PAGES} pages")
        except (MCPError, OSError, RuntimeError, ValueError) as error:
            self.tools_changed = True
            said = getattr(error, "message", str(error))
            if type(error).__name__ == "ValidationError":  # pydantic's takes a paragraph with an address in it
                what: Any = error
                place = ".".join(map(str, what.errors()[0]["loc"]))
                said = f"its {what.title} is not what MCP has: {place}: {what.errors()[0]['msg']}"
            raise CallFailedError(said, ended=self.ended) from None
        self.tools = tools

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> ToolAnswer:
        """Sets no limit to the waiting. Raises CallFailedError where no answer of the tool comes, ValueError where it
        is not as the tool declares.
        """
        from mcp import MCPError
        from mcp_types import CONNECTION_CLOSED, TextContent

        client = self._open_client()
        try:  # half a character (a lone surrogate), or no number, which the SDK fails on in its own way
            json.dumps(arguments, ensure_ascii=False, allow_nan=False).encode()
        except ValueError:
            raise CallFailedError("the arguments cannot be written as JSON", was_sent=False) from None
        statuses: list[int] = []
        _error_statuses.set(statuses)
        try:
            result = await client.call_tool(tool, dict(arguments))
        except MCPError as error:
            status = statuses[-1] if statuses else 0
            # The session, by a server that was started anew: 404 by the protocol, 400 of many.
            forgotten = status == 404 or (status == 400 and _FORGOTTEN.search(error.message) is not None)
            # The SDK's code for a lost connection is also the one that most servers have for any error of their own.
            ended = forgotten or (error.code == CONNECTION_CLOSED and error.message == _CONNECTION_CLOSED)
            ended = ended or self._stop.is_set()
            raise CallFailedError(error.message, error.code, status, ended=ended, was_sent=not forgotten) from None
        except (RuntimeError, ValueError) as error:  # RuntimeError for results that fit no schema
            if self._stop.is_set():
                raise CallFailedError("the connection has ended", ended=True) from None
            raise ValueError(str(error)) from None
        text = "\n".join(block.text for block in result.content if isinstance(block, TextContent))
        structured = result.structured_content
        told = (result.meta or {}).get(ERROR_META_KEY)
        declared = structured if told is None else {"error": told}
        return ToolAnswer(bool(result.is_error), structured, text, declared, result.content)

    def _open_client(self) -> Client:
        if self._client is None or self.ended:
            raise CallFailedError("the connection has ended", ended=True, was_sent=False)
        return self._client

    async def _run(self, opened: asyncio.Event) -> None:
        from mcp import Client
        from mcp_types import Implementation, ToolListChangedNotification

        async def on_message(message: IncomingMessage) -> None:
            if isinstance(message, ToolListChangedNotification):
                self.tools_changed = True

        info = Implementation(name="guarantee-email-agent", version=__version__)
        try:
            client = Client(self._transport(), cache=None, client_info=info, message_handler=on_message)
            async with client as self._client:
                await self.list_tools()
                self._opened = True
                opened.set()
                await self._stop.wait()
        except asyncio.CancelledError:
            self.end(TimeoutError("it did not answer in time"))
        except (Exception, BaseExceptionGroup) as error:  # noqa: BLE001 - whatever it is, it is why there is no connection
            self.end(_root_cause(error))
        finally:
            self._stop.set()

    def _transport(self) -> Transport:
        if self._launch.command is None:
            return self._http_transport()
        self._process = StdioServer(
            self._launch, self._max_answer_bytes, self._exit_grace_s, self._log_stderr, self.end
        )
        return self._process.running()

    @asynccontextmanager
    async def _http_transport(self) -> AsyncIterator[TransportStreams]:
        from httpx2 import URL, AsyncByteStream, AsyncClient, Timeout
        from mcp.client.streamable_http import streamable_http_client

        async def limit_size(response: Response) -> None:
            """The SDK limits an event of a stream, and no answer that is JSON as a whole."""
            if response.request.method == "POST" and isinstance(response.stream, AsyncByteStream):
                response.headers.pop("Content-Encoding", None)
                response.stream = self._limited_stream(response.stream)

        # Reading has no limit of its own: each call has a deadline. Compressed, an answer's size could not be counted.
        headers = {"Accept-Encoding": "identity", **self._launch.headers}
        assert self._launch.url is not None
        http = AsyncClient(
            headers=headers,
            timeout=Timeout(CONNECT_S, read=None),
            trust_env=not is_loopback(URL(self._launch.url).host),  # a proxy could not reach this machine
        )
        http.event_hooks["response"] += [_record_error_status, limit_size]
        client = streamable_http_client(self._launch.url, http_client=http, max_sse_event_size=self._max_answer_bytes)
        async with http, client as streams:
            yield streams

    def _limited_stream(self, stream: AsyncByteStream) -> AsyncByteStream:
        from httpx2 import AsyncByteStream

        limit, on_too_large = self._max_answer_bytes, self.end

        class Limited(AsyncByteStream):
            async def __aiter__(self) -> AsyncIterator[bytes]:
                size = 0
                async for part in stream:
                    size += len(part)
                    if size > limit:
                        error = AnswerTooLargeError(limit)
                        on_too_large(error)
                        raise error
                    yield part

            async def aclose(self) -> None:
                await stream.aclose()

        return Limited()

    def _log_stderr(self, line: str) -> None:
        if any(map(str.isalnum, line)):
            self.last_stderr_line = line
            logger.debug("%s: %s", self._name, line)  # it may quote a mail


# The SDK sends an HTTP request in the context of the call that it serves, so the call learns of its own status alone.
_error_statuses: ContextVar[list[int] | None] = ContextVar("error_statuses", default=None)


async def _record_error_status(response: Response) -> None:
    if (statuses := _error_statuses.get()) is not None and response.status_code >= 400:
        statuses.append(response.status_code)


def _root_cause(error: BaseException) -> BaseException:
    """Task groups wrap what happened, several levels deep."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
