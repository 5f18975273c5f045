"""The browser's tools: `browser_*` act like a person with mouse and keyboard, `dom_*` on the page's elements."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
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

MAX_WAIT_S: Final = 30.0
_PAGE: Final = "/v1/browser/page"

# A selector is passed as a JSON string, never as code.
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
        found = _run_script(sandbox, expression % json.dumps(selector), timeout_s)
        if found is None:
            raise TaskError(f"no element matches {selector!r:.200}", "tool_no_element")
        return to_text(found)

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


def _evaluate(sandbox: SandboxClient, arguments: Mapping[str, Any], timeout_s: float) -> str:
    return to_text(_run_script(sandbox, arguments["expression"], timeout_s))


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
    Tool("browser_drag_to", "Drag from where the mouse is to a place of the page.", _PLACE, _act("DRAG_TO")),
    Tool("browser_type", "Type a text where the focus is.", {"text": string("The text.")}, _post("type")),
    Tool("browser_press", "Press a key.", {"key": _KEY}, _post("press_key")),
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
    Tool("dom_mark_elements", "Number what can be clicked or filled in on the page.", {}, _mark_elements),
    Tool("dom_click", "Click an element.", {"selector": _MAYBE_SELECTOR, "index": _INDEX}, _post("click")),
    Tool(
        "dom_fill",
        "Put a text into a field, in place of what it holds.",
        {"text": string("The text."), "selector": _MAYBE_SELECTOR, "index": _INDEX},
        _post("fill"),
    ),
    Tool(
        "dom_select_option",
        "Choose from a list.",
        {"selector": _SELECTOR, "value": string("Value of the option.")},
        _post("select_option"),
    ),
    Tool("dom_hover", "Move the mouse over an element.", {"selector": _SELECTOR}, _post("hover")),
    Tool("dom_scroll_to", "Scroll an element into view.", {"selector": _SELECTOR}, _post("scroll_to_element")),
    Tool("dom_wait_for", "Wait until an element is there.", {"selector": _SELECTOR}, _wait),
    Tool("dom_evaluate", "Evaluate a JavaScript expression on the page.", {"expression": string("It.")}, _evaluate),
)
