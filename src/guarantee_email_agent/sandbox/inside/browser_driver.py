"""The process that drives the browser, over a pair of pipes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from guarantee_email_agent.isolation.processes import kill_group

from .api_request import (
    ApiRequest,
    Arguments,
    InvalidArgumentError,
    Reply,
    RequestError,
    choose,
    pack_reply,
    pack_request,
    receive_reply,
    receive_request,
    success,
)
from .browser_page import HEIGHT, WIDTH, BrowserPage
from .devtools import GONE, DevTools
from .process_starter import ProcessStarter, place_descriptors

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
                writer.write(pack_reply(number, await self._reply(request)))
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
                    writer.write(pack_request(0, request.method, request.target, request.body))
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


REQUEST_S: Final = 60.0
"""Seconds that one request to the browser may take."""
_PNG: Final = 2
# Where the page stands once what was done to it has been drawn.
_SCROLL_POSITION: Final = """new Promise(done => requestAnimationFrame(() => requestAnimationFrame(
  () => done({x: scrollX, y: scrollY}))))"""

Action = Callable[[Arguments, BrowserPage], Awaitable[Any]]
"""Gives the data of the reply, or the reply."""


def _timeout_s(arguments: Arguments) -> float | None:
    value = arguments.number("timeout")
    return None if value is None else min(value / 1000, REQUEST_S)


async def _info(_: Arguments, page: BrowserPage) -> dict[str, Any]:
    return {
        "user_agent": await page.evaluate("navigator.userAgent"),
        "cdp_url": "",
        "vnc_url": "",
        "viewport": {"width": WIDTH, "height": HEIGHT},
        "page_viewport": await page.evaluate("({width: innerWidth, height: innerHeight})"),
    }


async def _screenshot(arguments: Arguments, page: BrowserPage) -> Reply:
    choose("format", arguments.optional_text("format") or "png", {"png": _PNG})
    full_page = (arguments.optional_text("full_page") or "").lower() == "true"
    return Reply(200, _PNG, await page.screenshot(full_page=full_page))


async def _navigate(arguments: Arguments, page: BrowserPage) -> Reply:
    until = arguments.optional_text("wait_until") or "load"
    return success(await page.navigate(arguments.text("url"), until, _timeout_s(arguments)), "Navigated")


async def _point(arguments: Arguments, page: BrowserPage, index: int | None = None) -> tuple[float, float]:
    x, y = arguments.coordinate("x"), arguments.coordinate("y")
    return (x, y) if x is not None and y is not None else await page.locate(arguments.optional_text("selector"), index)


async def _click(arguments: Arguments, page: BrowserPage) -> Reply:
    x, y = await _point(arguments, page, arguments.integer("index"))
    await page.click(x, y, _button(arguments), _click_count(arguments, "click_count"))
    return success({"x": x, "y": y, "url": await page.evaluate("location.href")}, "Clicked")


async def _hover(arguments: Arguments, page: BrowserPage) -> dict[str, float]:
    x, y = await _point(arguments, page)
    await page.mouse_event("mouseMoved", x, y)
    return {"x": x, "y": y}


async def _scroll(arguments: Arguments, page: BrowserPage) -> object:
    direction, amount = arguments.optional_text("direction") or "down", arguments.integer("amount") or 500
    x, y = choose("direction", direction, {"down": (0, 1), "up": (0, -1), "right": (1, 0), "left": (-1, 0)})
    await page.scroll(x * amount, y * amount)
    return await page.evaluate(_SCROLL_POSITION)


async def _wait(arguments: Arguments, page: BrowserPage) -> dict[str, str]:
    kind, seconds = arguments.optional_text("type") or "selector", _timeout_s(arguments)
    if kind == "selector":
        element = f"document.querySelector({json.dumps(arguments.text('selector'))})"
        visible = f"(e => e && e.getClientRects().length > 0)({element})"
        conditions = {"visible": visible, "attached": element, "hidden": f"!{visible}", "detached": f"!{element}"}
        condition = choose("state", arguments.optional_text("state") or "visible", conditions)
    elif kind == "function":
        condition = arguments.text("expression")
    else:
        raise RequestError(501, f"this sandbox cannot wait for '{kind[:40]}'; it waits for a selector or a function")
    await page.wait(condition, 30.0 if seconds is None else seconds)
    return {"type": kind}


async def _action(arguments: Arguments, page: BrowserPage) -> Reply:
    """What a person does with mouse and keyboard."""
    kind = arguments.text("action_type")
    x, y = arguments.coordinate("x"), arguments.coordinate("y")
    at = page.mouse if x is None or y is None else (x, y)
    actions: dict[str, Callable[[], Awaitable[None]]] = {
        "MOVE_TO": lambda: page.mouse_event("mouseMoved", *at),
        "CLICK": lambda: page.click(*at, _button(arguments), _click_count(arguments, "num_clicks")),
        "DOUBLE_CLICK": lambda: page.click(*at, "left", 2),
        "RIGHT_CLICK": lambda: page.click(*at, "right", 1),
        "DRAG_TO": lambda: page.drag(*at),
        "SCROLL": lambda: page.scroll(arguments.coordinate("dx") or 0.0, arguments.coordinate("dy") or 0.0),
        "TYPING": lambda: page.type(arguments.text("text")),
        "PRESS": lambda: page.press(arguments.text("key")),
        "HOTKEY": lambda: page.press(*arguments.texts("keys")),
        "WAIT": lambda: asyncio.sleep(min(arguments.number("duration") or 0.0, REQUEST_S / 2)),
    }
    await choose("action_type", kind, actions)()
    done = {"status": "success", "action_performed": kind}
    return success(done, "Action done", **done)


async def _scroll_to_element(arguments: Arguments, page: BrowserPage) -> None:
    await page.locate(arguments.text("selector"), None)


async def _html(arguments: Arguments, page: BrowserPage) -> str:
    return await page.html(outer=(arguments.optional_text("outer") or "").lower() != "false")


def _button(arguments: Arguments) -> str:
    button = arguments.optional_text("button") or "left"
    if button not in ("left", "right", "middle"):
        raise InvalidArgumentError("button", "must be left, right or middle")
    return button


def _click_count(arguments: Arguments, name: str) -> int:
    return min(max(arguments.integer(name) or 1, 1), 10)


async def _select_option(arguments: Arguments, page: BrowserPage) -> None:
    value, label = arguments.optional_text("value"), arguments.optional_text("label")
    await page.select(arguments.text("selector"), value, label, arguments.integer("index"))


async def _fill(arguments: Arguments, page: BrowserPage) -> None:
    await page.fill(arguments.optional_text("selector"), arguments.integer("index"), arguments.text("text"))


ROUTES: Final[dict[tuple[str, str], Action]] = {
    ("GET", "/v1/browser/info"): _info,
    ("GET", "/v1/browser/screenshot"): _screenshot,
    ("POST", "/v1/browser/actions"): _action,
    ("POST", "/v1/browser/page/navigate"): _navigate,
    ("POST", "/v1/browser/page/back"): lambda _, page: page.go(-1),
    ("POST", "/v1/browser/page/forward"): lambda _, page: page.go(1),
    ("POST", "/v1/browser/page/reload"): lambda _, page: page.reload(),
    ("POST", "/v1/browser/page/click"): _click,
    ("POST", "/v1/browser/page/hover"): _hover,
    ("POST", "/v1/browser/page/fill"): _fill,
    ("POST", "/v1/browser/page/type"): lambda arguments, page: page.type(arguments.text("text")),
    ("POST", "/v1/browser/page/press_key"): lambda arguments, page: page.press(arguments.text("key")),
    ("POST", "/v1/browser/page/hot_key"): lambda arguments, page: page.press(*arguments.texts("keys")),
    ("POST", "/v1/browser/page/select_option"): _select_option,
    ("POST", "/v1/browser/page/scroll"): _scroll,
    ("POST", "/v1/browser/page/scroll_to_element"): _scroll_to_element,
    ("POST", "/v1/browser/page/wait"): _wait,
    ("POST", "/v1/browser/page/evaluate"): lambda arguments, page: page.evaluate(arguments.text("expression")),
    ("GET", "/v1/browser/page/text"): lambda _, page: page.text(),
    ("GET", "/v1/browser/page/html"): _html,
    ("GET", "/v1/browser/page/elements"): lambda _, page: page.elements(),
    ("GET", "/v1/browser/page/screenshot"): _screenshot,
}
"""What our tools and the clients that are known need."""
