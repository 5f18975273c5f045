"""The process that drives the browser, over a pair of pipes."""

from __future__ import annotations

import os
import signal
import socket
import time
from contextlib import suppress
from typing import Final

from .api_request import ApiRequest, RequestError
from .browser_actions import CDP_PORT, REQUEST_S, ROUTES
from .browser_page import HEIGHT, WIDTH, BrowserPage
from .devtools import DevTools
from .process_starter import ProcessStarter, place_descriptors
from .wire import REQUEST, pack_reply, read_exactly, unpack_head

START_S: Final = 30.0
_GONE: Final = 502

# Nothing but what the page asks for goes out, and nothing waits for a screen, a sound card or a person.
_OPTIONS: Final = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--mute-audio", "--no-first-run", "--no-default-browser-check"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-quic"),
    *("--disable-default-apps", "--disable-extensions", "--disable-breakpad", "--disable-crash-reporter"),
    *("--disable-domain-reliability", "--disable-features=Translate,OptimizationHints,MediaRouter", "--no-pings"),
    *("--password-store=basic", "--use-mock-keychain", "--hide-crash-restore-bubble", "--no-zygote"),
    "--disable-smooth-scrolling",
)


def drive(channel: socket.socket, program: str, starter: ProcessStarter, *, own_network: bool) -> None:
    """In a process of its own: answer the requests that come over `channel`; never returns.

    own_network: whether loopback is the sandbox's own, so that programs inside may be let at the browser as well.
    """
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        # What the first process has open is none of the browser's business.
        os.closerange(3, channel.fileno())
        os.closerange(channel.fileno() + 1, 4096)
        _BrowserDriver(channel, program, starter, own_network).run()
    finally:
        os._exit(0)


class _BrowserDriver:
    def __init__(self, channel: socket.socket, program: str, starter: ProcessStarter, own_network: bool) -> None:
        self._channel = channel
        self._program = program
        self._starter = starter
        self._own_network = own_network
        self._devtools: DevTools | None = None
        self._page: BrowserPage | None = None
        self._pid = 0

    def run(self) -> None:
        """Until the other end of the channel is closed."""
        try:
            while True:
                self._channel.sendall(self._reply_to_next_request())
        except EOFError:
            self._stop()

    def _reply_to_next_request(self) -> bytes:
        receive, replies = self._channel.recv, list[bytes]()
        number, head_length, body_length = REQUEST.unpack(read_exactly(receive, REQUEST.size))
        head, body = read_exactly(receive, head_length), read_exactly(receive, body_length)
        request = ApiRequest(*unpack_head(head), body, lambda *reply: replies.append(pack_reply(number, *reply)))
        try:
            self._answer(request)
        except RequestError as error:
            if error.status == _GONE:
                self._stop()
            request.fail(error)
        except (OSError, KeyError, TypeError, ValueError) as error:
            # The browser did not keep to its protocol, so the next request starts another one.
            self._stop()
            request.fail(RequestError(_GONE, f"the browser has ended: {type(error).__name__} {error}"))
        return replies[0]

    def _answer(self, request: ApiRequest) -> None:
        key = (request.method, request.path.rstrip("/").removeprefix("/v1/browser/"))
        if key not in ROUTES:
            raise RequestError(404, f"{request.path}: this sandbox does not offer that")
        arguments = request.arguments()
        if key[1] == "restart":
            self._stop()
        page, devtools = self._ensure_started()
        devtools.deadline = time.monotonic() + REQUEST_S
        page.select_newest()
        request.answer(ROUTES[key](request, arguments, page))

    def _ensure_started(self) -> tuple[BrowserPage, DevTools]:
        if self._page is None or self._devtools is None:
            self._stop()  # one that did not get ready in time
            self._devtools = self._start()
            self._devtools.deadline = time.monotonic() + START_S
            self._page = BrowserPage(self._devtools)
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
                # 3 and 4 are where a browser looks for these pipes.
                place_descriptors({0: nothing, 1: nothing, 2: nothing, 3: to_browser, 4: to_us})
                os.chdir(self._starter.home)
                command = [self._program, *options, f"--window-size={WIDTH},{HEIGHT}", "about:blank"]
                os.execve(self._program, command, dict(self._starter.environment))  # noqa: S606 - the very purpose
            finally:
                os._exit(127)
        os.close(to_browser)
        os.close(to_us)
        self._pid = pid
        return DevTools(from_browser, from_us)

    def _stop(self) -> None:
        if self._devtools is not None:
            self._devtools.close()
            with suppress(ProcessLookupError, ChildProcessError):
                os.kill(self._pid, signal.SIGKILL)
                os.waitpid(self._pid, 0)
        self._devtools = self._page = None
