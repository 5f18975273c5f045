"""The process that drives the browser, over a pair of pipes that nobody else has."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from .api_request import Failure, Request
from .browser_actions import CDP_PORT, REQUEST_S, ROUTES
from .browser_page import HEIGHT, WIDTH, Page
from .devtools import DevTools
from .wire import REQUEST_BYTES, pack_reply, request_lengths, unpack_head

if TYPE_CHECKING:
    import socket

START_S: Final = 30.0
_GONE: Final = 502

# Nothing but what the page asks for goes out, and nothing waits for a screen, a sound card or a person.
_OPTIONS: Final = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--mute-audio", "--no-first-run", "--no-default-browser-check"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-quic"),
    *("--disable-default-apps", "--disable-extensions", "--disable-breakpad", "--disable-crash-reporter"),
    *("--disable-domain-reliability", "--disable-features=Translate,OptimizationHints,MediaRouter", "--no-pings"),
    *(
        "--password-store=basic",
        "--use-mock-keychain",
        "--hide-crash-restore-bubble",
        "--no-zygote",
        "--disable-smooth-scrolling",
    ),
)


def drive(
    channel: socket.socket, program: str, environment: Mapping[str, str], home: str, *, own_network: bool
) -> None:
    """In a process of its own: answer the requests that come over `channel`; never returns.

    own_network: whether loopback is the sandbox's own, so that programs inside may be let at the browser as well.
    """
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        # What the first process has open is none of the browser's business.
        os.closerange(3, channel.fileno())
        os.closerange(channel.fileno() + 1, 4096)
        _Driver(channel, program, environment, home, own_network).run()
    finally:
        os._exit(0)


class _Driver:
    def __init__(
        self, channel: socket.socket, program: str, environment: Mapping[str, str], home: str, own_network: bool
    ) -> None:
        self._channel = channel
        self._program = program
        self._environment = environment
        self._home = home
        self._own_network = own_network
        self._devtools: DevTools | None = None
        self._page: Page | None = None
        self._pid = 0

    def run(self) -> None:
        while True:
            number, head_length, body_length = request_lengths(self._take(REQUEST_BYTES))
            method, target, content_type = unpack_head(self._take(head_length))
            body = self._take(body_length)
            replies: list[bytes] = []
            request = Request(
                method,
                target,
                content_type,
                body,
                lambda status, kind, content: replies.append(pack_reply(number, status, kind, content)),  # noqa: B023
            )
            try:
                self._answer(request)
            except Failure as failure:
                if failure.status == _GONE:
                    self._end()
                request.fail(failure)
            except (OSError, KeyError, TypeError, ValueError) as error:
                # The browser did not keep to its protocol, so the next request starts another one.
                self._end()
                request.fail(Failure(502, f"the browser has ended: {type(error).__name__} {error}"))
            self._channel.sendall(replies[0])

    def _take(self, count: int) -> bytes:
        parts = bytearray()
        while len(parts) < count:
            chunk = self._channel.recv(min(count - len(parts), 1 << 20))
            if not chunk:
                self._end()
                os._exit(0)
            parts += chunk
        return bytes(parts)

    def _answer(self, request: Request) -> None:
        key = (request.method, request.path.rstrip("/").removeprefix("/v1/browser/"))
        if key not in ROUTES:
            raise Failure(404, f"{request.path}: this sandbox does not offer that")
        arguments = request.arguments()
        if key[1] == "restart":
            self._end()
        page, devtools = self._ready()
        devtools.deadline = time.monotonic() + REQUEST_S
        page.in_front()
        ROUTES[key](request, arguments, page)

    def _ready(self) -> tuple[Page, DevTools]:
        if self._page is None or self._devtools is None:
            self._devtools = self._start()
            self._devtools.deadline = time.monotonic() + START_S
            self._page = Page(self._devtools)
        return self._page, self._devtools

    def _start(self) -> DevTools:
        to_browser, from_us = os.pipe()
        from_browser, to_us = os.pipe()
        profile = os.path.join("/tmp", f".browser-{os.getpid()}")  # noqa: S108 - inside
        options: tuple[str, ...] = (*_OPTIONS, f"--user-data-dir={profile}", "--remote-debugging-pipe")
        if self._own_network:
            options += (f"--remote-debugging-port={CDP_PORT}",)
        pid = os.fork()
        if pid == 0:
            try:
                nothing = os.open("/dev/null", os.O_RDWR)
                # Out of the way first: 3 and 4 are where a browser looks for these pipes.
                ends = [_moved(to_browser), _moved(to_us), _moved(nothing)]
                for wanted, end in ((3, ends[0]), (4, ends[1]), (0, ends[2]), (1, ends[2]), (2, ends[2])):
                    os.dup2(end, wanted)
                os.chdir(self._home)
                window = f"--window-size={WIDTH},{HEIGHT}"
                command = [self._program, *options, window, "about:blank"]
                os.execve(self._program, command, dict(self._environment))  # noqa: S606 - the very purpose
            finally:
                os._exit(127)
        os.close(to_browser)
        os.close(to_us)
        self._pid = pid
        self._pipes = (from_browser, from_us)
        return DevTools(from_browser, from_us)

    def _end(self) -> None:
        if self._devtools is not None:
            for descriptor in self._pipes:
                os.close(descriptor)
            try:
                os.kill(self._pid, signal.SIGKILL)
                os.waitpid(self._pid, 0)
            except (ProcessLookupError, ChildProcessError):
                pass
        self._devtools = self._page = None


def _moved(descriptor: int) -> int:
    import fcntl

    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 100)
