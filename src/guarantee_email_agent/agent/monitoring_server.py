"""Answers `/metrics`, `/healthz` and `/readyz` over HTTP, from the event loop in which the agent works.

So an answer shows that the loop is alive. What callers can take is bounded: one request a connection, its size, its
time, and how many there are; where there are too many, the oldest one goes, so that a probe gets through.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import re
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, TypeAlias

import h11

logger = logging.getLogger(__name__)

MAX_CONNECTIONS: Final = 32
MAX_REQUEST_BYTES: Final = 8192
REQUEST_TIMEOUT_S: Final = 5.0
"""For everything: the request, the answer, and taking it."""

TEXT: Final = "text/plain; charset=utf-8"
_METHODS: Final = (b"GET", b"HEAD")
_HEADERS: Final = (("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"), ("Connection", "close"))
_HOST: Final = re.compile(r"(?P<name>\[[^\]]*\]|[^:\[\]]*)(:[0-9]{1,5})?")


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: bytes
    content_type: str = TEXT


Page: TypeAlias = Callable[[], Answer]


class MonitoringServer:
    """For one event loop. pages: by path; each is asked in the loop, so it may not wait.

    host_names: what a caller over TCP may call us, besides `localhost` and IP addresses. A browser that a foreign page
    leads here by a name of its own (DNS rebinding) calls us something else.
    """

    def __init__(self, pages: Mapping[str, Page], host_names: Sequence[str] = ()) -> None:
        self.host_names = host_names
        self._pages = pages
        self.callers: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        """Who is being answered, the oldest first."""

    async def serve(self, listener: socket.socket) -> asyncio.Server:
        """Answer on a socket that listens, until what this returns is closed."""
        start = asyncio.start_unix_server if listener.family == socket.AF_UNIX else asyncio.start_server
        return await start(self._accept, sock=listener, limit=MAX_REQUEST_BYTES)

    async def close(self) -> None:
        """Cut off who is being answered."""
        cut_off = list(self.callers)
        for task in cut_off:
            self._cut_off(task)
        await asyncio.gather(*cut_off, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self.callers) >= MAX_CONNECTIONS:
            self._cut_off(next(iter(self.callers)))
        task = asyncio.create_task(self._handle(reader, writer))
        self.callers[task] = writer
        task.add_done_callback(lambda done: self.callers.pop(done, None))

    def _cut_off(self, task: asyncio.Task[None]) -> None:
        self.callers.pop(task).transport.abort()  # closing would wait until the caller has taken everything
        task.cancel()

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT_S):
                if answer := await self._answer_to(reader, is_local=_is_local(writer)):
                    writer.write(answer)
                    await writer.drain()
                    writer.write_eof()
                    while await reader.read(MAX_REQUEST_BYTES):  # closing before would lose the answer on its way
                        pass
        except (TimeoutError, OSError):
            writer.transport.abort()
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _answer_to(self, reader: asyncio.StreamReader, *, is_local: bool) -> bytes | None:
        """None for a caller who goes without having asked."""
        connection = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_REQUEST_BYTES)
        is_head = False
        try:
            request = await _read_request(connection, reader)
            if request is None:
                return None
            answer, is_head = self._answer(request, is_local=is_local), request.method == b"HEAD"
        except h11.RemoteProtocolError as error:
            answer = _refusal(error.error_status_hint, "This is no HTTP request.")
        return _as_bytes(connection, answer, is_head=is_head)

    def _answer(self, request: h11.Request, *, is_local: bool) -> Answer:
        host = next((value.decode("latin-1") for name, value in request.headers if name == b"host"), "")
        if not is_local and not self._is_ours(host):
            return _refusal(421, "Ask by an IP address, localhost, or a name that metrics.host_names lists.")
        if request.method not in _METHODS:
            return _refusal(405, "Only read: GET and HEAD.")
        page = self._pages.get(request.target.decode("latin-1").partition("?")[0])
        if page is None:
            return _refusal(404, f"There are: {', '.join(self._pages)}.")
        try:
            return page()
        except Exception as error:
            logger.error("A page of the metrics port failed: %s", type(error).__name__)
            logger.debug("The page that failed", exc_info=True)
            return _refusal(500, "This failed. The log of the agent has more.")

    def _is_ours(self, host: str) -> bool:
        if (match := _HOST.fullmatch(host)) is None:
            return False
        name = match["name"].lower()
        if name in {"localhost", *map(str.lower, self.host_names)}:
            return True
        with suppress(ValueError):
            ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
            return True
        return False


async def _read_request(connection: h11.Connection, reader: asyncio.StreamReader) -> h11.Request | None:
    """None where the caller goes without having asked. Raises h11.RemoteProtocolError."""
    while True:
        event = connection.next_event()
        if isinstance(event, h11.Request):
            return event
        if isinstance(event, h11.ConnectionClosed):
            return None
        connection.receive_data(await reader.read(MAX_REQUEST_BYTES))


def _refusal(status: int, sentence: str) -> Answer:
    return Answer(status, f"{sentence}\n".encode())


def _as_bytes(connection: h11.Connection, answer: Answer, *, is_head: bool) -> bytes:
    headers = [*_HEADERS, ("Content-Type", answer.content_type), ("Content-Length", str(len(answer.body)))]
    if answer.status == 405:
        headers.append(("Allow", b", ".join(_METHODS).decode()))
    head = connection.send(h11.Response(status_code=answer.status, headers=headers))
    return (head or b"") + (b"" if is_head else answer.body)


def _is_local(writer: asyncio.StreamWriter) -> bool:
    """Over the Unix socket, where no browser comes from."""
    family: int = writer.get_extra_info("socket").family
    return family == socket.AF_UNIX
