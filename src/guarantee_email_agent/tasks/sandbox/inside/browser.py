"""The browser endpoints: a process of its own drives a browser, one request after the other."""

from __future__ import annotations

import collections
import json
import os
import signal
import socket
import time
from collections.abc import Callable, Mapping
from typing import Final

from .devtools import DevTools
from .loop import Loop, Timer
from .page import Page
from .process import Starter, kill_group
from .request import Arguments, Failure, Invalid, Request
from .wire import REPLY_BYTES, REQUEST_BYTES, pack_reply, pack_request, reply_parts, request_lengths, unpack_head

REQUEST_S: Final = 60.0
_START_S: Final = 30.0
_CDP_PORT: Final = 9222
_MAX_REPLY: Final = 64 << 20
_PNG, _JPEG = 2, 3
# Where the page stands once what was done to it has been drawn.
_DRAWN: Final = """new Promise(done => requestAnimationFrame(() => requestAnimationFrame(
  () => done({x: scrollX, y: scrollY}))))"""

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


class Browser:
    """Passes requests on to the process that drives the browser, which is started with the first of them."""

    def __init__(
        self, loop: Loop, starter: Starter, program: str | None, environment: Mapping[str, str], home: str
    ) -> None:
        self._loop = loop
        self._starter = starter
        self._program = program
        self._environment = environment
        self._home = home
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
            REQUEST_S + _START_S, lambda: self._lost(408, "the browser did not answer in time")
        )

    def _driver(self) -> socket.socket:
        if self._socket is not None:
            return self._socket
        ours, theirs = socket.socketpair()
        pid = self._starter.fork()
        if pid == 0:
            _drive(theirs, str(self._program), self._environment, self._home)
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


def _drive(channel: socket.socket, program: str, environment: Mapping[str, str], home: str) -> None:
    """The process that drives the browser; never returns."""
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        # What the first process has open is none of the browser's business.
        os.closerange(3, channel.fileno())
        os.closerange(channel.fileno() + 1, 4096)
        _Driver(channel, program, environment, home).run()
    finally:
        os._exit(0)


class _Driver:
    def __init__(self, channel: socket.socket, program: str, environment: Mapping[str, str], home: str) -> None:
        self._channel = channel
        self._program = program
        self._environment = environment
        self._home = home
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
        if key not in _ROUTES:
            raise Failure(404, f"{request.path}: this sandbox does not offer that")
        arguments = request.arguments()
        if key[1] == "restart":
            self._end()
        page, devtools = self._ready()
        devtools.deadline = time.monotonic() + REQUEST_S
        page.in_front()
        _ROUTES[key](request, arguments, page)

    def _ready(self) -> tuple[Page, DevTools]:
        if self._page is None or self._devtools is None:
            self._devtools = self._start()
            self._devtools.deadline = time.monotonic() + _START_S
            self._page = Page(self._devtools)
        return self._page, self._devtools

    def _start(self) -> DevTools:
        to_browser, from_us = os.pipe()
        from_browser, to_us = os.pipe()
        profile = os.path.join("/tmp", f".browser-{os.getpid()}")  # noqa: S108 - inside
        options = (
            *_OPTIONS,
            f"--user-data-dir={profile}",
            "--remote-debugging-pipe",
            f"--remote-debugging-port={_CDP_PORT}",
        )
        pid = os.fork()
        if pid == 0:
            try:
                nothing = os.open("/dev/null", os.O_RDWR)
                # Out of the way first: 3 and 4 are where a browser looks for these pipes.
                ends = [_moved(to_browser), _moved(to_us), _moved(nothing)]
                for wanted, end in ((3, ends[0]), (4, ends[1]), (0, ends[2]), (1, ends[2]), (2, ends[2])):
                    os.dup2(end, wanted)
                os.chdir(self._home)
                window = "--window-size=1280,1024"
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


def _milliseconds(arguments: Arguments) -> float | None:
    value = arguments.number("timeout")
    return None if value is None else min(value / 1000, REQUEST_S)


def _info(request: Request, _: Arguments, page: Page) -> None:
    size = {"width": page.width, "height": page.height}
    inner = page.evaluate("({width: innerWidth, height: innerHeight})")
    information = {
        "user_agent": page.evaluate("navigator.userAgent"),
        # For programs inside the sandbox; the outside reaches the page through this API.
        "cdp_url": f"http://127.0.0.1:{_CDP_PORT}",
        "vnc_url": "",
        "viewport": size,
        "page_viewport": inner,
    }
    request.answer(information, "Browser")


def _screenshot(request: Request, _: Arguments, page: Page) -> None:
    kind = request.query.get("format", "png")
    if kind not in ("png", "jpeg"):
        raise Invalid("format", "must be png or jpeg")
    quality = request.query.get("quality", "")
    content = page.screenshot(
        full_page=request.query.get("full_page", "").lower() == "true",
        kind=kind,
        quality=int(quality) if quality.isdecimal() else None,
    )
    request.content(_PNG if kind == "png" else _JPEG, content)


def _config(request: Request, arguments: Arguments, page: Page) -> None:
    size = arguments.mapping("resolution")
    if size is not None:
        width, height = size.integer("width"), size.integer("height")
        if width is None or height is None or not (100 <= width <= 4096 and 100 <= height <= 4096):
            raise Invalid("resolution", "must have a width and a height between 100 and 4096")
        page.resize(width, height)
    request.answer({"width": page.width, "height": page.height})


def _navigate(request: Request, arguments: Arguments, page: Page) -> None:
    until = arguments.optional_text("wait_until") or "load"
    request.answer(page.navigate(arguments.text("url"), until, _milliseconds(arguments)), "Navigated")


def _go(steps: int) -> Route:
    def go(request: Request, _: Arguments, page: Page) -> None:
        if not page.go(steps):
            raise Failure(400, "there is no such page in the history")
        request.answer({"url": page.evaluate("location.href"), "title": page.evaluate("document.title")})

    return go


def _reload(request: Request, _: Arguments, page: Page) -> None:
    page.reload()
    request.answer({"url": page.evaluate("location.href"), "title": page.evaluate("document.title")})


def _click(request: Request, arguments: Arguments, page: Page) -> None:
    x, y = arguments.coordinate("x"), arguments.coordinate("y")
    if x is None or y is None:
        x, y = page.place(arguments.optional_text("selector"), arguments.integer("index"))
    page.click(x, y, _button(arguments), _clicks(arguments, "click_count"))
    request.answer({"x": x, "y": y, "url": page.evaluate("location.href")}, "Clicked")


def _hover(request: Request, arguments: Arguments, page: Page) -> None:
    x, y = arguments.coordinate("x"), arguments.coordinate("y")
    if x is None or y is None:
        x, y = page.place(arguments.optional_text("selector"), None)
    page.mouse_event("mouseMoved", x, y)
    request.answer({"x": x, "y": y})


def _scroll(request: Request, arguments: Arguments, page: Page) -> None:
    direction, amount = arguments.optional_text("direction") or "down", arguments.integer("amount") or 500
    ways = {"down": (0, 1), "up": (0, -1), "right": (1, 0), "left": (-1, 0)}
    if direction not in ways:
        raise Invalid("direction", f"must be one of {', '.join(ways)}")
    page.scroll(ways[direction][0] * amount, ways[direction][1] * amount)
    request.answer(page.evaluate(_DRAWN))


def _scroll_to(request: Request, arguments: Arguments, page: Page) -> None:
    x, y = arguments.coordinate("x") or 0, arguments.coordinate("y") or 0
    request.answer(page.evaluate(f"(scrollTo({x}, {y}), {{x: scrollX, y: scrollY}})"))


def _wait(request: Request, arguments: Arguments, page: Page) -> None:
    kind, seconds = arguments.optional_text("type") or "selector", _milliseconds(arguments)
    if kind == "timeout":
        time.sleep(min(1.0 if seconds is None else seconds, REQUEST_S / 2))
    elif kind == "selector":
        element = f"document.querySelector({json.dumps(arguments.text('selector'))})"
        state = arguments.optional_text("state") or "visible"
        seen = f"(e => e && e.getClientRects().length > 0)({element})"
        conditions = {"visible": seen, "attached": element, "hidden": f"!{seen}", "detached": f"!{element}"}
        if state not in conditions:
            raise Invalid("state", f"must be one of {', '.join(conditions)}")
        page.wait(conditions[state], 30.0 if seconds is None else seconds)
    elif kind == "function":
        page.wait(arguments.text("expression"), 30.0 if seconds is None else seconds)
    elif kind in ("navigation", "load_state"):
        page.wait("document.readyState === 'complete'", 30.0 if seconds is None else seconds)
    else:
        raise Failure(501, f"this sandbox cannot wait for '{kind[:40]}'")
    request.answer({"type": kind})


def _action(request: Request, arguments: Arguments, page: Page) -> None:
    """What a person does with mouse and keyboard."""
    kind = arguments.text("action_type")
    x, y = arguments.coordinate("x"), arguments.coordinate("y")
    at = page.mouse if x is None or y is None else (x, y)
    by = (arguments.coordinate("x_offset") or 0.0, arguments.coordinate("y_offset") or 0.0)
    moved = (page.mouse[0] + by[0], page.mouse[1] + by[1])
    actions: dict[str, Callable[[], object]] = {
        "MOVE_TO": lambda: page.mouse_event("mouseMoved", *at),
        "MOVE_REL": lambda: page.mouse_event("mouseMoved", *moved),
        "CLICK": lambda: page.click(*at, _button(arguments), _clicks(arguments, "num_clicks")),
        "DOUBLE_CLICK": lambda: page.click(*at, "left", 2),
        "RIGHT_CLICK": lambda: page.click(*at, "right", 1),
        "MOUSE_DOWN": lambda: page.mouse_event("mousePressed", *page.mouse, _button(arguments), 1),
        "MOUSE_UP": lambda: page.mouse_event("mouseReleased", *page.mouse, _button(arguments), 1),
        "DRAG_TO": lambda: _drag(page, at),
        "DRAG_REL": lambda: _drag(page, moved),
        "SCROLL": lambda: page.scroll(_steps(arguments, "dx"), _steps(arguments, "dy")),
        "TYPING": lambda: page.type(arguments.text("text")),
        "PRESS": lambda: page.press(arguments.text("key")),
        "KEY_DOWN": lambda: page.key(arguments.text("key"), down=True),
        "KEY_UP": lambda: page.key(arguments.text("key"), down=False),
        "HOTKEY": lambda: page.press(*arguments.texts("keys")),
        "WAIT": lambda: time.sleep(min(arguments.number("duration") or 0.0, REQUEST_S / 2)),
    }
    if kind not in actions:
        raise Invalid("action_type", f"must be one of {', '.join(actions)}")
    actions[kind]()
    done = {"status": "success", "action_performed": kind}
    request.answer(done, "Action done", **done)


def _drag(page: Page, to: tuple[float, float]) -> None:
    page.mouse_event("mousePressed", *page.mouse, "left", 1)
    page.mouse_event("mouseMoved", *to, "left", buttons=1)
    page.mouse_event("mouseReleased", *to, "left", 1)


def _steps(arguments: Arguments, name: str) -> float:
    return arguments.coordinate(name) or 0.0


def _button(arguments: Arguments) -> str:
    button = arguments.optional_text("button") or "left"
    if button not in ("left", "right", "middle"):
        raise Invalid("button", "must be left, right or middle")
    return button


def _clicks(arguments: Arguments, name: str) -> int:
    return min(max(arguments.integer(name) or 1, 1), 10)


def _does(action: Callable[[Arguments, Page], object]) -> Route:
    """An action whose result is told as it is."""

    def does(request: Request, arguments: Arguments, page: Page) -> None:
        request.answer(action(arguments, page))

    return does


def _selected(arguments: Arguments, page: Page) -> None:
    page.select(
        arguments.text("selector"),
        arguments.optional_text("value"),
        arguments.optional_text("label"),
        arguments.integer("index"),
    )


Route = Callable[[Request, Arguments, Page], None]

_ROUTES: Final[dict[tuple[str, str], Route]] = {
    ("GET", "info"): _info,
    ("GET", "screenshot"): _screenshot,
    ("POST", "actions"): _action,
    ("POST", "config"): _config,
    ("POST", "restart"): _does(lambda _, __: None),
    ("POST", "page/navigate"): _navigate,
    ("POST", "page/back"): _go(-1),
    ("POST", "page/forward"): _go(1),
    ("POST", "page/reload"): _reload,
    ("POST", "page/click"): _click,
    ("POST", "page/hover"): _hover,
    ("POST", "page/fill"): _does(
        lambda arguments, page: page.fill(
            arguments.optional_text("selector"), arguments.integer("index"), arguments.text("text")
        )
    ),
    ("POST", "page/type"): _does(lambda arguments, page: page.type(arguments.text("text"))),
    ("POST", "page/press_key"): _does(lambda arguments, page: page.press(arguments.text("key"))),
    ("POST", "page/hot_key"): _does(lambda arguments, page: page.press(*arguments.texts("keys"))),
    ("POST", "page/select_option"): _does(_selected),
    ("POST", "page/check"): _does(lambda arguments, page: page.check(arguments.text("selector"), wanted=True)),
    ("POST", "page/uncheck"): _does(lambda arguments, page: page.check(arguments.text("selector"), wanted=False)),
    ("POST", "page/scroll"): _scroll,
    ("POST", "page/scroll_to"): _scroll_to,
    ("POST", "page/scroll_to_element"): _does(lambda arguments, page: page.place(arguments.text("selector"), None)),
    ("POST", "page/wait"): _wait,
    ("POST", "page/evaluate"): _does(lambda arguments, page: page.evaluate(arguments.text("expression"))),
    ("GET", "page/text"): _does(lambda _, page: page.text()),
    ("GET", "page/html"): lambda request, _, page: request.answer(
        page.html(outer=request.query.get("outer", "true").lower() != "false")
    ),
    ("GET", "page/elements"): _does(lambda _, page: page.elements()),
    ("GET", "page/screenshot"): _screenshot,
}
