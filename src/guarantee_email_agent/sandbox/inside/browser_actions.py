"""What each of the browser endpoints does with the page."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, Final

from .api_request import Arguments, InvalidArgumentError, Reply, RequestError, choose, success
from .browser_page import BrowserPage

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
        "viewport": {"width": page.width, "height": page.height},
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
