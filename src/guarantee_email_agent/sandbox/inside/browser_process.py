"""The browser endpoints: a process of its own drives a browser, one request after the other."""

from __future__ import annotations

import asyncio
import socket
from typing import Final

from .api_request import ApiRequest, Reply, RequestError
from .browser_actions import REQUEST_S, ROUTES
from .browser_driver import START_S, BrowserSettings, drive
from .process_starter import ProcessStarter, kill_group
from .wire import pack_request, receive_reply

_MAX_REPLY: Final = 64 << 20


class BrowserProcess:
    """Passes requests on to the process that drives the browser, which is started with the first of them."""

    def __init__(self, starter: ProcessStarter, settings: BrowserSettings) -> None:
        self._starter = starter
        self._settings = settings
        self._turn = asyncio.Lock()
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._pid = 0

    async def reply(self, request: ApiRequest) -> Reply:
        if (request.method, request.path.rstrip("/")) not in ROUTES:
            remedy = "Connect to the browser itself, at the cdp_url of GET /v1/browser/info"
            raise RequestError(501, f"{request.path}: this sandbox does not offer that. {remedy}")
        if self._settings.program is None:
            remedy = "Install Chromium (Debian: apt-get install chromium), or use --sandbox docker"
            raise RequestError(501, f"this machine has no browser. {remedy}")
        async with self._turn:
            try:
                async with asyncio.timeout(REQUEST_S + START_S):
                    reader, writer = self._streams = self._streams or await self._start()
                    writer.write(pack_request(0, request.method, request.target, request.content_type, request.body))
                    return await receive_reply(reader, _MAX_REPLY)
            except TimeoutError:
                self._stop()
                raise RequestError(408, "the browser did not answer in time") from None
            except (OSError, EOFError) as error:
                self._stop()
                raise RequestError(502, f"the browser has ended: {error}") from None

    async def _start(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        ours, theirs = socket.socketpair()
        with theirs:
            self._pid = self._starter.fork(lambda: drive(theirs, self._settings, self._starter))
        return await asyncio.open_unix_connection(sock=ours)

    def _stop(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None
            kill_group(self._pid)
