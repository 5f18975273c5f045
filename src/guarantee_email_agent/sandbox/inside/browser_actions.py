"""What each of the browser endpoints does with the page."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Final

from .api_request import ApiRequest, Arguments, InvalidArgumentError, RequestError, choose
from .browser_page import BrowserPage

REQUEST_S: Final = 60.0
"""Seconds that one request to the browser may take."""
CDP_PORT: Final = 9222
_PNG, _JPEG = 2, 3
# Where the page stands once what was done to it has been drawn.
_SCROLL_POSITION: Final = """new Promise(done => requestAnimationFrame(() => requestAnimationFrame(
  () => done({x: scrollX, y: scrollY}))))"""

Action = Callable[[ApiRequest, Arguments, BrowserPage], object]
"""Gives the data of the answer, unless it answers the request itself."""


def _timeout_s(arguments: Arguments) -> float | None:
    value = arguments.number("timeout")
    return None if value is None else min(value / 1000, REQUEST_S)


def _info(request: ApiRequest, _: Arguments, page: BrowserPage) -> None:
    information = {
        "user_agent": page.evaluate("navigator.userAgent"),
        # For programs inside, where the network is the sandbox's own; the outside has this API.
        "cdp_url": f"http://127.0.0.1:{CDP_PORT}",
        "vnc_url": "",
        "viewport": {"width": page.width, "height": page.height},
        "page_viewport": page.evaluate("({width: innerWidth, height: innerHeight})"),
    }
    request.answer(information, "Browser")


def _screenshot(request: ApiRequest, _: Arguments, page: BrowserPage) -> None:
    kind = request.query.get("format", "png")
    if kind not in ("png", "jpeg"):
        raise InvalidArgumentError("format", "must be png or jpeg")
    quality, full_page = request.query.get("quality", ""), request.query.get("full_page", "").lower() == "true"
    content = page.screenshot(kind, int(quality) if quality.isdecimal() else None, full_page=full_page)
    request.send(200, _PNG if kind == "png" else _JPEG, content)


def _config(_: ApiRequest, arguments: Arguments, page: BrowserPage) -> dict[str, int]:
    if (size := arguments.mapping("resolution")) is not None:
        width, height = size.integer("width"), size.integer("height")
        if width is None or height is None or not (100 <= width <= 4096 and 100 <= height <= 4096):
            raise InvalidArgumentError("resolution", "must have a width and a height between 100 and 4096")
        page.resize(width, height)
    return {"width": page.width, "height": page.height}


def _navigate(request: ApiRequest, arguments: Arguments, page: BrowserPage) -> None:
    until = arguments.optional_text("wait_until") or "load"
    request.answer(page.navigate(arguments.text("url"), until, _timeout_s(arguments)), "Navigated")


def _point(arguments: Arguments, page: BrowserPage, index: int | None = None) -> tuple[float, float]:
    x, y = arguments.coordinate("x"), arguments.coordinate("y")
    return page.locate(arguments.optional_text("selector"), index) if x is None or y is None else (x, y)


def _click(request: ApiRequest, arguments: Arguments, page: BrowserPage) -> None:
    x, y = _point(arguments, page, arguments.integer("index"))
    page.click(x, y, _button(arguments), _click_count(arguments, "click_count"))
    request.answer({"x": x, "y": y, "url": page.evaluate("location.href")}, "Clicked")


def _hover(_: ApiRequest, arguments: Arguments, page: BrowserPage) -> dict[str, float]:
    x, y = _point(arguments, page)
    page.mouse_event("mouseMoved", x, y)
    return {"x": x, "y": y}


def _scroll(_: ApiRequest, arguments: Arguments, page: BrowserPage) -> object:
    direction, amount = arguments.optional_text("direction") or "down", arguments.integer("amount") or 500
    x, y = choose("direction", direction, {"down": (0, 1), "up": (0, -1), "right": (1, 0), "left": (-1, 0)})
    page.scroll(x * amount, y * amount)
    return page.evaluate(_SCROLL_POSITION)


def _scroll_to(_: ApiRequest, arguments: Arguments, page: BrowserPage) -> object:
    x, y = arguments.coordinate("x") or 0, arguments.coordinate("y") or 0
    return page.evaluate(f"(scrollTo({x}, {y}), {{x: scrollX, y: scrollY}})")


def _wait(_: ApiRequest, arguments: Arguments, page: BrowserPage) -> dict[str, str]:
    kind, seconds = arguments.optional_text("type") or "selector", _timeout_s(arguments)
    wait_s = 30.0 if seconds is None else seconds
    if kind == "timeout":
        time.sleep(min(1.0 if seconds is None else seconds, REQUEST_S / 2))
    elif kind == "selector":
        element = f"document.querySelector({json.dumps(arguments.text('selector'))})"
        visible = f"(e => e && e.getClientRects().length > 0)({element})"
        conditions = {"visible": visible, "attached": element, "hidden": f"!{visible}", "detached": f"!{element}"}
        page.wait(choose("state", arguments.optional_text("state") or "visible", conditions), wait_s)
    elif kind == "function":
        page.wait(arguments.text("expression"), wait_s)
    elif kind in ("navigation", "load_state"):
        page.wait("document.readyState === 'complete'", wait_s)
    else:
        raise RequestError(501, f"this sandbox cannot wait for '{kind[:40]}'")
    return {"type": kind}


def _action(request: ApiRequest, arguments: Arguments, page: BrowserPage) -> None:
    """What a person does with mouse and keyboard."""
    kind = arguments.text("action_type")
    x, y = arguments.coordinate("x"), arguments.coordinate("y")
    at = page.mouse if x is None or y is None else (x, y)
    by = (arguments.coordinate("x_offset") or 0.0, arguments.coordinate("y_offset") or 0.0)
    moved = (page.mouse[0] + by[0], page.mouse[1] + by[1])
    actions: dict[str, Callable[[], object]] = {
        "MOVE_TO": lambda: page.mouse_event("mouseMoved", *at),
        "MOVE_REL": lambda: page.mouse_event("mouseMoved", *moved),
        "CLICK": lambda: page.click(*at, _button(arguments), _click_count(arguments, "num_clicks")),
        "DOUBLE_CLICK": lambda: page.click(*at, "left", 2),
        "RIGHT_CLICK": lambda: page.click(*at, "right", 1),
        "MOUSE_DOWN": lambda: page.mouse_event("mousePressed", *page.mouse, _button(arguments), 1),
        "MOUSE_UP": lambda: page.mouse_event("mouseReleased", *page.mouse, _button(arguments), 1),
        "DRAG_TO": lambda: _drag(page, at),
        "DRAG_REL": lambda: _drag(page, moved),
        "SCROLL": lambda: page.scroll(arguments.coordinate("dx") or 0.0, arguments.coordinate("dy") or 0.0),
        "TYPING": lambda: page.type(arguments.text("text")),
        "PRESS": lambda: page.press(arguments.text("key")),
        "KEY_DOWN": lambda: page.key(arguments.text("key"), down=True),
        "KEY_UP": lambda: page.key(arguments.text("key"), down=False),
        "HOTKEY": lambda: page.press(*arguments.texts("keys")),
        "WAIT": lambda: time.sleep(min(arguments.number("duration") or 0.0, REQUEST_S / 2)),
    }
    choose("action_type", kind, actions)()
    done = {"status": "success", "action_performed": kind}
    request.answer(done, "Action done", **done)


def _drag(page: BrowserPage, to: tuple[float, float]) -> None:
    page.mouse_event("mousePressed", *page.mouse, "left", 1)
    page.mouse_event("mouseMoved", *to, "left", buttons=1)
    page.mouse_event("mouseReleased", *to, "left", 1)


def _button(arguments: Arguments) -> str:
    button = arguments.optional_text("button") or "left"
    if button not in ("left", "right", "middle"):
        raise InvalidArgumentError("button", "must be left, right or middle")
    return button


def _click_count(arguments: Arguments, name: str) -> int:
    return min(max(arguments.integer(name) or 1, 1), 10)


def _select_option(_: ApiRequest, arguments: Arguments, page: BrowserPage) -> None:
    value, label = arguments.optional_text("value"), arguments.optional_text("label")
    page.select(arguments.text("selector"), value, label, arguments.integer("index"))


def _fill(_: ApiRequest, arguments: Arguments, page: BrowserPage) -> None:
    page.fill(arguments.optional_text("selector"), arguments.integer("index"), arguments.text("text"))


ROUTES: Final[dict[tuple[str, str], Action]] = {
    ("GET", "info"): _info,
    ("GET", "screenshot"): _screenshot,
    ("POST", "actions"): _action,
    ("POST", "config"): _config,
    ("POST", "restart"): lambda *_: None,
    ("POST", "page/navigate"): _navigate,
    ("POST", "page/back"): lambda _, __, page: page.go(-1),
    ("POST", "page/forward"): lambda _, __, page: page.go(1),
    ("POST", "page/reload"): lambda _, __, page: page.reload(),
    ("POST", "page/click"): _click,
    ("POST", "page/hover"): _hover,
    ("POST", "page/fill"): _fill,
    ("POST", "page/type"): lambda _, arguments, page: page.type(arguments.text("text")),
    ("POST", "page/press_key"): lambda _, arguments, page: page.press(arguments.text("key")),
    ("POST", "page/hot_key"): lambda _, arguments, page: page.press(*arguments.texts("keys")),
    ("POST", "page/select_option"): _select_option,
    ("POST", "page/check"): lambda _, arguments, page: page.check(arguments.text("selector"), checked=True),
    ("POST", "page/uncheck"): lambda _, arguments, page: page.check(arguments.text("selector"), checked=False),
    ("POST", "page/scroll"): _scroll,
    ("POST", "page/scroll_to"): _scroll_to,
    ("POST", "page/scroll_to_element"): lambda _, arguments, page: page.locate(arguments.text("selector"), None),
    ("POST", "page/wait"): _wait,
    ("POST", "page/evaluate"): lambda _, arguments, page: page.evaluate(arguments.text("expression")),
    ("GET", "page/text"): lambda _, __, page: page.text(),
    ("GET", "page/html"): lambda request, _, page: page.html(outer=request.query.get("outer", "").lower() != "false"),
    ("GET", "page/elements"): lambda _, __, page: page.elements(),
    ("GET", "page/screenshot"): _screenshot,
}
