"""An MCP server reached by URL: the SDK's transport over an HTTP client that limits and watches its responses."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Final

from guarantee_email_agent.integrations.server_launch import ServerLaunch, is_loopback
from guarantee_email_agent.integrations.server_process import AnswerTooLargeError

if TYPE_CHECKING:
    from ssl import SSLContext

    from httpx2 import AsyncByteStream, Response
    from mcp.client._transport import TransportStreams

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
