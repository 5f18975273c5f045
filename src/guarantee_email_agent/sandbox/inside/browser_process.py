"""The browser endpoints: a process of its own drives a browser, one request after the other."""

from __future__ import annotations

import collections
import socket
from typing import Final
from urllib.parse import urlencode

from .api_request import ApiRequest, RequestError
from .browser_actions import REQUEST_S
from .browser_driver import START_S, drive
from .event_loop import Timer, read_available
from .process_starter import ProcessStarter, kill_group
from .wire import REPLY, pack_request

_MAX_REPLY: Final = 64 << 20


class BrowserProcess:
    """Passes requests on to the process that drives the browser, which is started with the first of them."""

    def __init__(self, starter: ProcessStarter, program: str | None, *, own_network: bool) -> None:
        self._starter = starter
        self._loop = starter.loop
        self._program = program
        self._own_network = own_network
        self._waiting: collections.deque[ApiRequest] = collections.deque()
        self._current: ApiRequest | None = None
        self._timer: Timer | None = None
        self._socket: socket.socket | None = None
        self._pid = 0
        self._received = bytearray()

    def handle(self, request: ApiRequest) -> None:
        if self._program is None:
            remedy = "Install Chromium (Debian: apt-get install chromium), or use --sandbox docker"
            raise RequestError(501, f"this machine has no browser. {remedy}")
        self._waiting.append(request)
        self._start_next()

    def _start_next(self) -> None:
        if self._current is not None or not self._waiting:
            return
        request = self._waiting.popleft()
        try:
            driver = self._driver()
            target = request.path + (f"?{urlencode(request.query)}" if request.query else "")
            driver.sendall(pack_request(0, request.method, target, request.content_type, request.body))
        except (RequestError, OSError) as error:
            self._stop()
            ended = RequestError(502, f"the browser has ended: {error}")
            request.fail(error if isinstance(error, RequestError) else ended)
            self._start_next()
            return
        self._current = request
        self._timer = self._loop.after(
            REQUEST_S + START_S, lambda: self._fail_current(408, "the browser did not answer in time")
        )

    def _driver(self) -> socket.socket:
        if self._socket is not None:
            return self._socket
        ours, theirs = socket.socketpair()
        pid = self._starter.fork()
        if pid == 0:
            drive(theirs, str(self._program), self._starter, own_network=self._own_network)
        theirs.close()
        ours.settimeout(5.0)
        self._socket, self._pid = ours, pid
        self._received.clear()
        self._loop.watch(ours.fileno(), self._receive)
        return ours

    def _receive(self, _: int) -> None:
        assert self._socket is not None
        chunk = read_available(self._socket.fileno())
        if chunk is None:
            return
        if not chunk:
            self._fail_current(502, "the browser has ended")
            return
        self._received += chunk
        if len(self._received) < REPLY.size:
            return
        _, status, kind, length = REPLY.unpack_from(self._received)
        if length > _MAX_REPLY:
            self._fail_current(507, "the browser's answer is too long")
        elif len(self._received) >= REPLY.size + length:
            content = bytes(self._received[REPLY.size : REPLY.size + length])
            self._received.clear()
            if (request := self._take_current()) is not None:
                request.send(status, kind, content)
            self._start_next()

    def _fail_current(self, status: int, message: str) -> None:
        self._stop()
        if (request := self._take_current()) is not None:
            request.fail(RequestError(status, message))
        self._start_next()

    def _take_current(self) -> ApiRequest | None:
        if self._timer is not None:
            self._timer.cancel()
        request, self._current, self._timer = self._current, None, None
        return request

    def _stop(self) -> None:
        if self._socket is not None:
            self._loop.unwatch(self._socket.fileno())
            self._socket.close()
            self._socket = None
            kill_group(self._pid)
