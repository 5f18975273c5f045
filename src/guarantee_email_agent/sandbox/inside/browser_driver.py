"""The process that drives the browser, over a pair of pipes."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from .api_request import (
    ApiRequest,
    Reply,
    RequestError,
    pack_reply,
    pack_request,
    receive_reply,
    receive_request,
    success,
)
from .browser_actions import REQUEST_S, ROUTES
from .browser_page import HEIGHT, WIDTH, BrowserPage
from .devtools import GONE, DevTools
from .process_starter import ProcessStarter, kill_group, place_descriptors

START_S: Final = 30.0
_INNER_PORT: Final = 9222
_MAX_DESCRIPTOR: Final = 4_096

# Nothing but what the page asks for goes out, and nothing waits for a screen, a sound card or a person.
_OPTIONS: Final = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--mute-audio", "--no-first-run", "--no-default-browser-check"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-quic"),
    *("--disable-default-apps", "--disable-extensions", "--disable-breakpad", "--disable-crash-reporter"),
    *("--disable-domain-reliability", "--disable-features=Translate,OptimizationHints,MediaRouter", "--no-pings"),
    *("--password-store=basic", "--use-mock-keychain", "--hide-crash-restore-bubble", "--no-zygote"),
    "--disable-smooth-scrolling",
)


def drive(channel: socket.socket, settings: Mapping[str, Any], starter: ProcessStarter) -> None:
    """In a process of its own: answer the requests that come over `channel` until it is closed."""
    # What the first process has open is none of the browser's business.
    os.closerange(3, channel.fileno())
    os.closerange(channel.fileno() + 1, _MAX_DESCRIPTOR)
    asyncio.run(_BrowserDriver(channel, settings, starter).run())


class _BrowserDriver:
    def __init__(self, channel: socket.socket, settings: Mapping[str, Any], starter: ProcessStarter) -> None:
        self._channel = channel
        self._settings = settings
        self._starter = starter
        self._devtools: DevTools | None = None
        self._page: BrowserPage | None = None
        self._pid = 0

    async def run(self) -> None:
        reader, writer = await asyncio.open_unix_connection(sock=self._channel)
        try:
            while True:
                number, request = await receive_request(reader)
                reply = await self._reply(request)
                writer.write(pack_reply(number, reply.status, reply.kind, reply.content))
                await writer.drain()
        except (EOFError, OSError):
            self._stop()

    async def _reply(self, request: ApiRequest) -> Reply:
        try:
            action, arguments = ROUTES[request.method, request.path.rstrip("/")], request.arguments()
            page = await self._ensure_started()
            async with asyncio.timeout(REQUEST_S):
                await page.select_newest()
                result = await action(arguments, page)
            return result if isinstance(result, Reply) else success(result)
        except TimeoutError:
            return await self._fail(RequestError(408, "the browser did not finish in time"))
        except RequestError as error:
            return await self._fail(error)
        except (OSError, KeyError, TypeError, ValueError) as error:
            # The browser did not keep to its protocol, so the next request starts another one.
            self._stop()
            return RequestError(GONE, f"the browser has ended: {type(error).__name__} {error}").reply()

    async def _fail(self, error: RequestError) -> Reply:
        if error.status == GONE:
            self._stop()
        elif error.status == 408 and self._page is not None:
            await self._page.abandon_if_stuck()
        return error.reply()

    async def _ensure_started(self) -> BrowserPage:
        async with asyncio.timeout(START_S):
            if self._page is None:
                self._stop()  # one that did not get ready in time
                self._devtools = await self._start()
                page = BrowserPage(self._devtools)
                await page.start()
                self._page = page
        return self._page

    async def _start(self) -> DevTools:
        to_browser, from_us = os.pipe()
        from_browser, to_us = os.pipe()
        profile = os.path.join("/tmp", f".browser-{os.getpid()}")  # noqa: S108 - inside
        options: tuple[str, ...] = (*_OPTIONS, f"--user-data-dir={profile}", "--remote-debugging-pipe")
        if self._settings["own_network"]:
            options += (f"--remote-debugging-port={_INNER_PORT}",)
        pid = os.fork()
        if pid == 0:
            try:
                nothing = os.open("/dev/null", os.O_RDWR)
                # 3 and 4 are where a browser looks for these pipes.
                place_descriptors({0: nothing, 1: nothing, 2: nothing, 3: to_browser, 4: to_us})
                os.chdir(self._starter.home)
                program = str(self._settings["program"])
                command = [program, *options, f"--window-size={WIDTH},{HEIGHT}", "about:blank"]
                os.execve(program, command, dict(self._starter.environment))  # noqa: S606 - the very purpose
            finally:
                os._exit(127)
        os.close(to_browser)
        os.close(to_us)
        self._pid = pid
        return await DevTools.connect(from_browser, from_us)

    def _stop(self) -> None:
        if self._devtools is not None:
            self._devtools.close()
            with suppress(ProcessLookupError, ChildProcessError):
                os.kill(self._pid, signal.SIGKILL)
                os.waitpid(self._pid, 0)
        self._devtools = self._page = None


_MAX_REPLY: Final = 64 << 20


class BrowserProcess:
    """Passes requests on to the process that drives the browser, which is started with the first of them.

    settings: `program`, the path of the browser, None where there is none; `own_network`, whether loopback is the
    sandbox's own, so that programs inside may be let at the browser as well.
    """

    def __init__(self, starter: ProcessStarter, settings: Mapping[str, Any]) -> None:
        self._starter = starter
        self._settings = settings
        self._turn = asyncio.Lock()
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._pid = 0

    async def reply(self, request: ApiRequest) -> Reply:
        if (request.method, request.path.rstrip("/")) not in ROUTES:
            remedy = f"A program inside may connect to the browser itself, at port {_INNER_PORT}"
            raise RequestError(501, f"{request.path}: this sandbox does not offer that. {remedy}")
        if self._settings["program"] is None:
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
