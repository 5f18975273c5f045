"""The browser endpoints: a process of its own drives a browser, one request after the other."""

from __future__ import annotations

import collections
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from .api_request import Failure, Request
from .browser_actions import REQUEST_S
from .browser_driver import START_S, drive
from .event_loop import Loop, Timer
from .process_starter import Starter, kill_group
from .wire import REPLY_BYTES, pack_request, reply_parts

if TYPE_CHECKING:
    import socket

_MAX_REPLY: Final = 64 << 20


class Browser:
    """Passes requests on to the process that drives the browser, which is started with the first of them."""

    def __init__(
        self,
        loop: Loop,
        starter: Starter,
        program: str | None,
        environment: Mapping[str, str],
        home: str,
        *,
        own_network: bool,
    ) -> None:
        self._loop = loop
        self._starter = starter
        self._program = program
        self._environment = environment
        self._home = home
        self._own_network = own_network
        self._waiting: collections.deque[Request] = collections.deque()
        self._current: Request | None = None
        self._timer: Timer | None = None
        self._socket: socket.socket | None = None
        self._pid = 0
        self._received = bytearray()

    def handle(self, request: Request) -> None:
        if self._program is None:
            raise Failure(
                501,
                "this machine has no browser. Install Chromium (Debian: apt-get install chromium), "
                "or use --sandbox docker",
            )
        self._waiting.append(request)
        self._next()

    def _next(self) -> None:
        if self._current is not None or not self._waiting:
            return
        request = self._waiting.popleft()
        try:
            driver = self._driver()
            target = request.path + (f"?{_query(request)}" if request.query else "")
            driver.sendall(pack_request(0, request.method, target, request.content_type, request.body))
        except (Failure, OSError) as error:
            self._stop()
            request.fail(error if isinstance(error, Failure) else Failure(502, f"the browser has ended: {error}"))
            self._next()
            return
        self._current = request
        self._timer = self._loop.after(
            REQUEST_S + START_S, lambda: self._lost(408, "the browser did not answer in time")
        )

    def _driver(self) -> socket.socket:
        if self._socket is not None:
            return self._socket
        import socket  # only a browser needs it

        ours, theirs = socket.socketpair()
        pid = self._starter.fork()
        if pid == 0:
            drive(theirs, str(self._program), self._environment, self._home, own_network=self._own_network)
        theirs.close()
        ours.settimeout(5.0)
        self._socket, self._pid = ours, pid
        self._received.clear()
        self._loop.watch(ours.fileno(), self._receive)
        return ours

    def _receive(self, _: int) -> None:
        assert self._socket is not None
        try:
            chunk = self._socket.recv(1 << 18)
        except OSError:
            chunk = b""
        if not chunk:
            self._lost(502, "the browser has ended")
            return
        self._received += chunk
        if len(self._received) < REPLY_BYTES:
            return
        _, status, kind, length = reply_parts(self._received)
        if length > _MAX_REPLY:
            self._lost(507, "the browser's answer is too long")
        elif len(self._received) >= REPLY_BYTES + length:
            content = bytes(self._received[REPLY_BYTES : REPLY_BYTES + length])
            self._received.clear()
            request = self._done()
            if request is not None and kind:
                request.content(kind, content)
            elif request is not None:
                request.passed_on(status, content)
            self._next()

    def _lost(self, status: int, message: str) -> None:
        self._stop()
        if (request := self._done()) is not None:
            request.fail(Failure(status, message))
        self._next()

    def _done(self) -> Request | None:
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


def _query(request: Request) -> str:
    from urllib.parse import urlencode

    return urlencode(request.query)
