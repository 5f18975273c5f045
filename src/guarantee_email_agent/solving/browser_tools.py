"""The browser's tools: `browser_*` act like a person with mouse and keyboard, `dom_*` on the page's elements."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any, Final

from guarantee_email_agent.sandbox.client import SandboxClient
from guarantee_email_agent.solving.tools import (
    Image,
    Tool,
    ToolFunction,
    ToolParameter,
    boolean,
    integer,
    string,
    to_text,
)
from guarantee_email_agent.utils.errors import TaskError

MAX_ELEMENTS: Final = 50
MAX_WAIT_S: Final = 30.0
_PAGE: Final = "/v1/browser/page"

# What is found on a page comes back as plain data; an agent's selector is passed as a JSON string, never as code.
_QUERY: Final = """(() => {
  const found = [...document.querySelectorAll(%s)];
  return {count: found.length, elements: found.slice(0, %d).map(e => ({
    tag: e.tagName.toLowerCase(), text: (e.innerText || e.value || '').trim().slice(0, 200),
    attributes: Object.fromEntries([...e.attributes].map(a => [a.name, a.value.slice(0, 200)]))}))};
})()"""
_LINKS: Final = """[...document.querySelectorAll('a[href]')].map(
  e => ({text: (e.innerText || '').trim().slice(0, 200), url: e.href}))"""
# Of an element, or of the page where none is given; where it stands then, and how far it could go.
_SCROLL: Final = """(e => { if (!e) return null; e.scrollBy({left: %d, top: %d, behavior: 'instant'});
  return {x: Math.round(e.scrollLeft), y: Math.round(e.scrollTop),
    max_x: e.scrollWidth - e.clientWidth, max_y: e.scrollHeight - e.clientHeight}; })(%s)"""
_FOCUS: Final = "(e => e ? (e.focus(), true) : null)(document.querySelector(%s))"
_TEXT_OF: Final = "(e => e ? e.innerText : null)(document.querySelector(%s))"
_HTML_OF: Final = "(e => e ? e.outerHTML : null)(document.querySelector(%s))"


def _post(path: str) -> Callable[[SandboxClient, Mapping[str, Any], float], str]:
    def run(sandbox: SandboxClient, arguments: Mapping[str, Any], timeout_s: float) -> str:
        data = sandbox.call("POST", f"{_PAGE}/{path}", arguments, timeout_s=timeout_s)
        return to_text(data) if data else "Done."

    return run


def _get_content(whole_page: str, expression: str) -> ToolFunction:
    def run(sandbox: SandboxClient, arguments: Mapping[str, Any], timeout_s: float) -> str:
        if "selector" not in arguments:
            return to_text(sandbox.call("GET", f"{_PAGE}/{whole_page}", None, timeout_s=timeout_s))
        selector = arguments["selector"]
        return to_text(_of_element(sandbox, expression % json.dumps(selector), selector, timeout_s))

    return run


def _act(action_type: str) -> ToolFunction:
    """What the API has no address of its own for."""

    def run(sandbox: SandboxClient, arguments: Mapping[str, Any], timeout_s: float) -> str:
        sandbox.call("POST", "/v1/browser/actions", {"action_type": action_type, **arguments}, timeout_s=timeout_s)
        return "Done."

    return run


def _pause(sandbox: SandboxClient, arguments: Mapping[str, Any], timeout_s: float) -> str:
    seconds = max(min(arguments["duration"], MAX_WAIT_S, timeout_s), 0.0)
    _act("WAIT")(sandbox, {"duration": seconds}, timeout_s)
    return f"Waited {seconds:g} s."


def _viewport(sandbox: SandboxClient, _: Mapping[str, Any], timeout_s: float) -> str:
    information = sandbox.call("GET", "/v1/browser/info", None, timeout_s=timeout_s)
    return to_text(information.get("page_viewport") or information.get("viewport"))


def _type_into(sandbox: SandboxClient, arguments: Mapping[str, Any], timeout_s: float) -> str:
    element = {name: arguments[name] for name in ("selector", "index") if name in arguments}
    if arguments.get("clear_first", True):
        _post("fill")(sandbox, {**element, "text": ""}, timeout_s)
    else:
        _post("click")(sandbox, element, timeout_s)
        _post("press_key")(sandbox, {"key": "End"}, timeout_s)
    return _post("type")(sandbox, {"text": arguments["text"]}, timeout_s)


def _press_on(sandbox: SandboxClient, arguments: Mapping[str, Any], timeout_s: float) -> str:
    if "selector" in arguments:
        _of_element(sandbox, _FOCUS % json.dumps(arguments["selector"]), arguments["selector"], timeout_s)
    return _post("press_key")(sandbox, {"key": arguments["key"]}, timeout_s)


def _scroll(sandbox: SandboxClient, arguments: Mapping[str, Any], timeout_s: float) -> str:
    x, y = {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}[arguments["direction"]]
    selector, amount = arguments.get("selector"), arguments.get("amount", 500)
    element = "document.scrollingElement" if selector is None else f"document.querySelector({json.dumps(selector)})"
    return to_text(_of_element(sandbox, _SCROLL % (x * amount, y * amount, element), selector, timeout_s))


def _of_element(sandbox: SandboxClient, expression: str, selector: object, timeout_s: float) -> Any:
    """What a script gives for an element. Raises TaskError where there is none."""
    found = _run_script(sandbox, expression, timeout_s)
    if found is None:
        raise TaskError(f"no element matches {selector!r:.200}", "tool_no_element")
    return found


def _evaluate(expression: Callable[[Mapping[str, Any]], str]) -> ToolFunction:
    def run(sandbox: SandboxClient, arguments: Mapping[str, Any], timeout_s: float) -> str:
        return to_text(_run_script(sandbox, expression(arguments), timeout_s))

    return run


def _mark_elements(sandbox: SandboxClient, _: Mapping[str, Any], timeout_s: float) -> str:
    return to_text(sandbox.call("GET", f"{_PAGE}/elements", timeout_s=timeout_s))


def _run_script(sandbox: SandboxClient, expression: str, timeout_s: float) -> Any:
    data = sandbox.call("POST", f"{_PAGE}/evaluate", {"expression": expression}, timeout_s=timeout_s)
    return data["result"] if isinstance(data, Mapping) and set(data) == {"result"} else data


def _screenshot(sandbox: SandboxClient, arguments: Mapping[str, Any], timeout_s: float) -> Image:
    return Image.parse(sandbox.download(f"{_PAGE}/screenshot", arguments, timeout_s=timeout_s), "the screenshot")


def _wait(sandbox: SandboxClient, arguments: Mapping[str, Any], timeout_s: float) -> str:
    request = {"type": "selector", "selector": arguments["selector"], "timeout": 1000 * min(30.0, timeout_s)}
    sandbox.call("POST", f"{_PAGE}/wait", request, timeout_s=timeout_s)
    return "It is there."


_SELECTOR: Final = string("CSS selector of the element.")
_MAYBE_SELECTOR: Final = string("CSS selector of the element, or use index.", required=False)
_INDEX: Final = integer("Number of the element as dom_mark_elements gave it, or use selector.", required=False)

_PLACE: Final = {
    "x": ToolParameter("number", "Pixels from the left."),
    "y": ToolParameter("number", "Pixels from the top."),
}
_OFFSET: Final = {
    "x_offset": ToolParameter("number", "Pixels to the right."),
    "y_offset": ToolParameter("number", "Pixels down."),
}
_KEY: Final = string("Such as Enter, Tab or ArrowDown.")
_DIRECTION: Final = string("Which way.", choices=("up", "down", "left", "right"))
_AMOUNT: Final = integer("Pixels.", required=False)

BROWSER_TOOLS: Final = (
    Tool("browser_navigate", "Open a page.", {"url": string("Its address.")}, _post("navigate")),
    Tool("browser_back", "Go back one page.", {}, _post("back")),
    Tool("browser_forward", "Go forward one page.", {}, _post("forward")),
    Tool("browser_reload", "Load the page anew.", {}, _post("reload")),
    Tool(
        "browser_click",
        "Click at a place of the page.",
        {
            **_PLACE,
            "button": string("Which button.", required=False, choices=("left", "right", "middle")),
            "click_count": integer("2 for a double click.", required=False),
        },
        _post("click"),
    ),
    Tool("browser_move_to", "Move the mouse to a place of the page.", _PLACE, _act("MOVE_TO")),
    Tool("browser_move_rel", "Move the mouse from where it is.", _OFFSET, _act("MOVE_REL")),
    Tool("browser_drag_to", "Drag from where the mouse is to a place of the page.", _PLACE, _act("DRAG_TO")),
    Tool("browser_drag_rel", "Drag from where the mouse is.", _OFFSET, _act("DRAG_REL")),
    Tool("browser_type", "Type a text where the focus is.", {"text": string("The text.")}, _post("type")),
    Tool("browser_press", "Press a key.", {"key": _KEY}, _post("press_key")),
    Tool("browser_key_down", "Press a key and hold it.", {"key": _KEY}, _act("KEY_DOWN")),
    Tool("browser_key_up", "Let go of a key.", {"key": _KEY}, _act("KEY_UP")),
    Tool(
        "browser_hotkey",
        "Press keys together.",
        {"keys": ToolParameter("array", "Such as Control and a.", items="string")},
        _post("hot_key"),
    ),
    Tool("browser_scroll", "Scroll the page.", {"direction": _DIRECTION, "amount": _AMOUNT}, _post("scroll")),
    Tool(
        "browser_wait",
        "Give the page some time.",
        {"duration": ToolParameter("number", f"Seconds, {MAX_WAIT_S:g} at most.")},
        _pause,
    ),
    Tool("browser_get_viewport_info", "How much of the page is in view: width and height.", {}, _viewport),
    Tool(
        "browser_screenshot",
        "Look at the page.",
        {"full_page": boolean("All of it, not what is in view.")},
        _screenshot,
    ),
    Tool(
        "dom_get_text",
        "Read the text of the page, or of an element.",
        {"selector": string("CSS selector.", required=False)},
        _get_content("text", _TEXT_OF),
    ),
    Tool(
        "dom_get_html",
        "Read the HTML of the page, or of an element.",
        {"selector": string("CSS selector.", required=False)},
        _get_content("html", _HTML_OF),
    ),
    Tool(
        "dom_query_selector",
        "Find elements: how many, their texts, attributes.",
        {"selector": _SELECTOR},
        _evaluate(lambda arguments: _QUERY % (json.dumps(arguments["selector"]), MAX_ELEMENTS)),
    ),
    Tool("dom_extract_links", "List the links of the page.", {}, _evaluate(lambda _: _LINKS)),
    Tool("dom_mark_elements", "Number what can be clicked or filled in on the page.", {}, _mark_elements),
    Tool("dom_click", "Click an element.", {"selector": _MAYBE_SELECTOR, "index": _INDEX}, _post("click")),
    Tool(
        "dom_fill",
        "Put a text into a field, in place of what it holds.",
        {"text": string("The text."), "selector": _MAYBE_SELECTOR, "index": _INDEX},
        _post("fill"),
    ),
    Tool(
        "dom_type",
        "Type a text into a field.",
        {
            "text": string("The text."),
            "selector": _MAYBE_SELECTOR,
            "index": _INDEX,
            "clear_first": boolean("Whether in place of what it holds, which is the default, or after it."),
        },
        _type_into,
    ),
    Tool(
        "dom_press",
        "Press a key on an element, or where the focus is.",
        {"key": _KEY, "selector": string("CSS selector of the element.", required=False)},
        _press_on,
    ),
    Tool(
        "dom_select_option",
        "Choose from a list.",
        {"selector": _SELECTOR, "value": string("Value of the option.")},
        _post("select_option"),
    ),
    Tool("dom_hover", "Move the mouse over an element.", {"selector": _SELECTOR}, _post("hover")),
    Tool("dom_scroll_to", "Scroll an element into view.", {"selector": _SELECTOR}, _post("scroll_to_element")),
    Tool(
        "dom_scroll",
        "Scroll an element, or the page. Tells where it stands then, and how far it could go.",
        {
            "direction": _DIRECTION,
            "amount": integer("Pixels, 500 if not given.", required=False),
            "selector": string("CSS selector of the element.", required=False),
        },
        _scroll,
    ),
    Tool("dom_wait_for", "Wait until an element is there.", {"selector": _SELECTOR}, _wait),
    Tool(
        "dom_evaluate",
        "Evaluate a JavaScript expression on the page.",
        {"expression": string("It.")},
        _evaluate(itemgetter("expression")),
    ),
)
