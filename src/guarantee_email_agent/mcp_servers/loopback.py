"""MCP servers on 127.0.0.1 over streamable HTTP, each under a path that nobody can guess, published and withdrawn while
others go on.

One thread with an event loop serves them all. Requests stand alone: no session is kept, and there is no stream for
messages of the server's own, so that a client may come and go as it likes.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import threading
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, Protocol, TypeVar

import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult, Tool
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from guarantee_email_agent.utils.distribution import __version__
from guarantee_email_agent.utils.loopback import HOST, listen_on_loopback

_START_S: Final = 10.0
_DRAIN_S: Final = 2.0  # that a call may take to end once its server is withdrawn
_KEY: Final = "guarantee_email_agent.tools"  # of an ASGI scope
_LIBRARIES: Final = ("mcp", "uvicorn", "sse_starlette")
_Result = TypeVar("_Result")


class PublishedTools(Protocol):
    """The tools of one server, which may be withdrawn while it works. Called on the server's event loop."""

    def declarations(self) -> Sequence[Tool]:
        """The tools as clients see them."""

    async def dispatch(self, tool_name: str, arguments: Mapping[str, Any]) -> CallToolResult:
        """The answer to a call; a failure is a result with `is_error`. Cancelled, it need not answer."""

    async def drain(self) -> None:
        """Wait for what goes on although its caller is gone."""

    def refused_too_large(self) -> None:
        """A request was refused for its size."""


class LoopbackServer:
    """max_request_bytes: of one request; a larger one is refused with status 413."""

    def __init__(self, max_request_bytes: int) -> None:
        self._max_request_bytes = max_request_bytes
        self._published: dict[str, Mapping[str, PublishedTools] | ASGIApp] = {}
        self._requests: dict[str, set[asyncio.Task[None]]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="mcp servers", daemon=True)
        self._socket = listen_on_loopback()
        self._port: int = self._socket.getsockname()[1]

    def start(self) -> None:
        """Raises RuntimeError where it does not come up."""
        for logger in _loggers():
            logger.addFilter(self._is_logged)
        self._thread.start()
        if not self._ready.wait(_START_S):
            raise RuntimeError("the server for mocks did not start")

    def publish(self, servers: Mapping[str, PublishedTools]) -> dict[str, str]:
        """The URL of each server by its name, until `withdraw`."""
        token = secrets.token_urlsafe(24)
        self._published[token] = servers
        return {name: f"http://{HOST}:{self._port}/{token}/{name}/mcp" for name in servers}

    def publish_app(self, app: ASGIApp) -> str:
        """The URL below which an application of any kind answers, until `withdraw`."""
        token = secrets.token_urlsafe(24)
        self._published[token] = app
        return f"http://{HOST}:{self._port}/{token}"

    def withdraw(self, urls: Mapping[str, str]) -> None:
        """Take servers back by what `publish` gave: calls that wait are cut off, and nothing reaches them any more."""
        for token in {url.split("/")[3] for url in urls.values()}:
            self.in_loop(self._withdraw(token))

    def stop(self) -> None:
        """Harmless to repeat."""
        if self._thread.is_alive():
            self._uvicorn.should_exit = True
            self._thread.join(_START_S)
        self._socket.close()
        for logger in _loggers():
            logger.removeFilter(self._is_logged)

    def _is_logged(self, record: logging.LogRecord) -> bool:
        """What the libraries log of requests may quote mails. Who uses them in another thread logs as he likes."""
        return record.thread != self._thread.ident

    def in_loop(self, coroutine: Coroutine[Any, Any, _Result]) -> _Result:
        """What a coroutine gives in the server's event loop."""
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    async def _withdraw(self, token: str) -> None:
        published = self._published.pop(token)
        servers = {} if callable(published) else published
        tasks = self._requests.pop(token, set())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        with suppress(TimeoutError):
            async with asyncio.timeout(_DRAIN_S):
                for tools in servers.values():
                    await tools.drain()

    def _run(self) -> None:
        config = uvicorn.Config(
            self._answer,
            interface="asgi3",
            lifespan="off",
            proxy_headers=False,
            log_config=None,
            access_log=False,
            timeout_graceful_shutdown=1,
            h11_max_incomplete_event_size=64 * 1024,
        )
        self._uvicorn = uvicorn.Server(config)
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        server: Server[Any] = Server(
            "guarantee-email-agent", version=__version__, on_list_tools=_list_tools, on_call_tool=_call_tool
        )
        self._manager = StreamableHTTPSessionManager(
            server,
            json_response=True,
            stateless=True,
            # A page in a browser must not reach it by a name that resolves to this machine.
            security_settings=TransportSecuritySettings(
                enable_dns_rebinding_protection=True, allowed_hosts=[f"{HOST}:{self._port}"]
            ),
            max_request_body_size=self._max_request_bytes,
        )
        async with self._manager.run():
            self._loop.call_soon(self._ready.set)
            await self._uvicorn.serve([self._socket])

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        path: str = scope["path"]
        token, _, place = path.removeprefix("/").partition("/")
        name, _, ending = place.partition("/")
        published = self._published.get(token, {})
        if callable(published):
            with self._running(token):
                await published(scope, receive, send)
            return
        tools = published.get(name)
        if tools is None or ending != "mcp":
            await PlainTextResponse("There is no such server.", 404)(scope, receive, send)
            return
        if scope["method"] != "POST":
            # No stream for the server's own messages, and no session to end.
            await PlainTextResponse("POST alone.", 405, {"Allow": "POST"})(scope, receive, send)
            return

        async def send_and_watch(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] == 413:
                tools.refused_too_large()
            await send(message)

        with self._running(token):
            await self._manager.handle_request({**scope, _KEY: tools}, receive, send_and_watch)

    @contextmanager
    def _running(self, token: str) -> Iterator[None]:
        """While a request is answered, which `withdraw` may end."""
        task = asyncio.current_task()
        assert task is not None
        running = self._requests.setdefault(token, set())
        running.add(task)
        try:
            with suppress(asyncio.CancelledError):  # by `withdraw`: nobody waits for the answer
                yield
        finally:
            running.discard(task)


def _loggers() -> list[logging.Logger]:
    """Those of the libraries that serve; a filter is not handed down to the loggers below one."""
    names = [name for name in logging.root.manager.loggerDict if name.partition(".")[0] in _LIBRARIES]
    return [logging.getLogger(name) for name in (*_LIBRARIES, *names)]


async def _list_tools(context: Any, _: object) -> ListToolsResult:
    return ListToolsResult(tools=list(_tools_of(context).declarations()))


async def _call_tool(context: Any, params: CallToolRequestParams) -> CallToolResult:
    return await _tools_of(context).dispatch(params.name, params.arguments or {})


def _tools_of(context: Any) -> PublishedTools:
    request: Request = context.request
    tools: PublishedTools = request.scope[_KEY]
    return tools
