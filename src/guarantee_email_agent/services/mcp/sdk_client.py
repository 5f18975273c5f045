"""The official SDK as client of the servers of others, over HTTP and stdio.

It knows every version of the protocol, and holds answers against their schemas.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Self

from guarantee_email_agent.services.call_errors import ERROR_META_KEY
from guarantee_email_agent.services.mcp.server_launch import ServerLaunch
from guarantee_email_agent.services.mcp.server_process import AnswerTooLargeError, ServerProcess
from guarantee_email_agent.services.mcp.tools import BadAnswerError, CallFailedError, OfferedTool, ToolAnswer
from guarantee_email_agent.utils.loopback import is_loopback
from guarantee_email_agent.utils.process import gc_paused
from guarantee_email_agent.utils.version import __version__

if TYPE_CHECKING:
    from ssl import SSLContext

    from httpx2 import AsyncByteStream, Response
    from mcp import Client
    from mcp.client import Transport
    from mcp.client._transport import TransportStreams
    from mcp.client.session import IncomingMessage
    from mcp.shared.message import SessionMessage

MAX_TOOL_PAGES: Final = 100
_NO_JSON: Final = "is no message in valid JSON"
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
    """A connection that is open. Sets no limit to the waiting."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def list_tools(self) -> list[OfferedTool]:
        """The tools of all pages. Raises CallFailedError."""
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
        """Raises CallFailedError where no answer of the tool comes, ValueError where it is not as the tool declares,
        and BadAnswerError where more is known of why.
        """
        from mcp import MCPError
        from mcp_types import CONNECTION_CLOSED, PARSE_ERROR, TextContent

        try:  # half a character (a lone surrogate), or no number, which the SDK fails on in its own way
            json.dumps(arguments, ensure_ascii=False, allow_nan=False).encode()
        except ValueError:
            raise CallFailedError("the arguments cannot be written as JSON", was_sent=False) from None
        statuses = record_error_statuses()
        try:
            result = await self._client.call_tool(tool, dict(arguments))
        except MCPError as error:
            if error.code == PARSE_ERROR and error.message == _NO_JSON:
                raise BadAnswerError(_NO_JSON) from None
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
        return ToolAnswer(bool(result.is_error), structured, text, declared, result.content)


CONNECT_S: Final = 10.0  # for one HTTP connection to come about

# The SDK sends an HTTP request in the context of the call that it serves, so the call learns of its own status alone.
_error_statuses: ContextVar[list[int] | None] = ContextVar("error_statuses", default=None)


def record_error_statuses() -> list[int]:
    """A list that will hold the error statuses of the responses to the requests of this context."""
    statuses: list[int] = []
    _error_statuses.set(statuses)
    return statuses


@asynccontextmanager
async def http_transport(
    launch: ServerLaunch, max_answer_bytes: int, on_too_large: Callable[[AnswerTooLargeError], None]
) -> AsyncIterator[TransportStreams]:
    """The SDK's `Transport`. on_too_large: for an answer beyond the limit."""
    from httpx2 import URL, AsyncByteStream, AsyncClient, Timeout
    from mcp.client.streamable_http import streamable_http_client

    async def limit_size(response: Response) -> None:
        """The SDK limits an event of a stream, and no answer that is JSON as a whole."""
        if response.request.method == "POST" and isinstance(response.stream, AsyncByteStream):
            response.headers.pop("Content-Encoding", None)
            response.stream = _limited_stream(response.stream, max_answer_bytes, on_too_large)

    # Reading has no limit of its own: each call has a deadline. Compressed, an answer's size could not be counted.
    headers = {"Accept-Encoding": "identity", **launch.headers}
    assert launch.url is not None
    http = AsyncClient(
        headers=headers,
        timeout=Timeout(CONNECT_S, read=None),
        verify=_ssl_context(),
        trust_env=not is_loopback(URL(launch.url).host),  # a proxy could not reach this machine
    )
    http.event_hooks["response"] += [_record_error_status, limit_size]
    client = streamable_http_client(launch.url, http_client=http, max_sse_event_size=max_answer_bytes)
    async with http, client as streams:
        yield streams


@cache
def _ssl_context() -> SSLContext:
    """The client's default, read once: its certificates take 20 ms, and every session has a client of its own."""
    from httpx2 import create_ssl_context

    return create_ssl_context()


async def _record_error_status(response: Response) -> None:
    if (statuses := _error_statuses.get()) is not None and response.status_code >= 400:
        statuses.append(response.status_code)


def _limited_stream(
    stream: AsyncByteStream, limit: int, on_too_large: Callable[[AnswerTooLargeError], None]
) -> AsyncByteStream:
    from httpx2 import AsyncByteStream

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


@asynccontextmanager
async def stdio_transport(process: ServerProcess) -> AsyncIterator[TransportStreams]:
    """The SDK's `Transport`. Raises OSError and ValueError as the process does."""
    import anyio
    import mcp_types as types
    from mcp.shared.message import SessionMessage

    incoming_send, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)

    async def receive(line: bytes) -> bool:
        message: types.JSONRPCMessage
        try:
            message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            if (answered := _answered_id(line)) is None:
                return False
            # Without an answer its call would wait until its deadline, as if the server were silent.
            error = types.ErrorData(code=types.PARSE_ERROR, message=_NO_JSON)
            message = types.JSONRPCError(jsonrpc="2.0", id=answered, error=error)
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # the reader is gone
            await incoming_send.send(SessionMessage(message))
        return True

    def on_end(_: AnswerTooLargeError | None) -> None:
        incoming_send.close()

    async with process.running(receive, on_end):
        try:
            yield incoming, _ServerStdin(process)
        finally:
            incoming.close()


def _answered_id(line: bytes) -> int | None:
    """The request that a line answers which is no valid message, for instance for half a character in a text.

    Ours have a number. Other JSON with an `id`, such as a line of a log, answers nothing.
    """
    with suppress(ValueError, RecursionError):
        match json.loads(line):
            case {"jsonrpc": "2.0", "id": int(answered), "result": _} | {
                "jsonrpc": "2.0",
                "id": int(answered),
                "error": _,
            } if not isinstance(answered, bool):
                return answered
    return None


class _ServerStdin:
    """The server's stdin as the SDK's `WriteStream`.

    A message is written whole or not at all, also where its sender is cancelled.
    """

    def __init__(self, process: ServerProcess) -> None:
        self._process = process

    async def send(self, item: SessionMessage, /) -> None:
        import anyio
        import mcp_types as types

        if self._process.is_closing:
            raise anyio.ClosedResourceError
        self._process.write(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
        if isinstance(item.message, types.JSONRPCRequest):
            try:
                await self._process.drain()
            except OSError:
                raise anyio.BrokenResourceError from None

    async def aclose(self) -> None:
        self._process.close_stdin()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
