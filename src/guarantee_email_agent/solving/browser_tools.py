"""The browser's tools: `browser_*` act like a person with mouse and keyboard, `dom_*` on the page's elements."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any, Final

from guarantee_email_agent.solving.tools import (
    Image,
    SandboxApi,
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
_TEXT_OF: Final = "(e => e ? e.innerText : null)(document.querySelector(%s))"
_HTML_OF: Final = "(e => e ? e.outerHTML : null)(document.querySelector(%s))"


def _post(path: str) -> ToolFunction:
    def run(sandbox: SandboxApi, arguments: Mapping[str, Any], timeout_s: float) -> str:
        data = sandbox.call("POST", f"{_PAGE}/{path}", arguments, timeout_s=timeout_s)
        return to_text(data) if data else "Done."

    return run


def _get_content(whole_page: str, expression: str) -> ToolFunction:
    def run(sandbox: SandboxApi, arguments: Mapping[str, Any], timeout_s: float) -> str:
        if "selector" not in arguments:
            return to_text(sandbox.call("GET", f"{_PAGE}/{whole_page}", None, timeout_s=timeout_s))
        found = _run_script(sandbox, expression % json.dumps(arguments["selector"]), timeout_s)
        if found is None:
            raise TaskError(f"no element matches {arguments['selector']!r:.200}", "tool_no_element")
        return to_text(found)

    return run


def _evaluate(expression: Callable[[Mapping[str, Any]], str]) -> ToolFunction:
    def run(sandbox: SandboxApi, arguments: Mapping[str, Any], timeout_s: float) -> str:
        return to_text(_run_script(sandbox, expression(arguments), timeout_s))

    return run


def _mark_elements(sandbox: SandboxApi, _: Mapping[str, Any], timeout_s: float) -> str:
    return to_text(sandbox.call("GET", f"{_PAGE}/elements", timeout_s=timeout_s))


def _run_script(sandbox: SandboxApi, expression: str, timeout_s: float) -> Any:
    data = sandbox.call("POST", f"{_PAGE}/evaluate", {"expression": expression}, timeout_s=timeout_s)
    return data["result"] if isinstance(data, Mapping) and set(data) == {"result"} else data


def _screenshot(sandbox: SandboxApi, arguments: Mapping[str, Any], timeout_s: float) -> Image:
    return Image.parse(sandbox.download(f"{_PAGE}/screenshot", arguments, timeout_s=timeout_s), "the screenshot")


def _wait(sandbox: SandboxApi, arguments: Mapping[str, Any], timeout_s: float) -> str:
    request = {"type": "selector", "selector": arguments["selector"], "timeout": 1000 * min(30.0, timeout_s)}
    sandbox.call("POST", f"{_PAGE}/wait", request, timeout_s=timeout_s)
    return "It is there."


_SELECTOR: Final = string("CSS selector of the element.")
_MAYBE_SELECTOR: Final = string("CSS selector of the element, or use index.", required=False)
_INDEX: Final = integer("Number of the element as dom_mark_elements gave it, or use selector.", required=False)

BROWSER_TOOLS: Final = (
    Tool("browser_navigate", "Open a page.", {"url": string("Its address.")}, _post("navigate")),
    Tool("browser_back", "Go back one page.", {}, _post("back")),
    Tool("browser_forward", "Go forward one page.", {}, _post("forward")),
    Tool("browser_reload", "Load the page anew.", {}, _post("reload")),
    Tool(
        "browser_click",
        "Click at a place of the page.",
        {
            "x": ToolParameter("number", "Pixels from the left."),
            "y": ToolParameter("number", "Pixels from the top."),
            "button": string("Which button.", required=False, choices=("left", "right", "middle")),
            "click_count": integer("2 for a double click.", required=False),
        },
        _post("click"),
    ),
    Tool("browser_type", "Type a text where the focus is.", {"text": string("The text.")}, _post("type")),
    Tool("browser_press", "Press a key.", {"key": string("Such as Enter, Tab or ArrowDown.")}, _post("press_key")),
    Tool(
        "browser_hotkey",
        "Press keys together.",
        {"keys": ToolParameter("array", "Such as Control and a.", items="string")},
        _post("hot_key"),
    ),
    Tool(
        "browser_scroll",
        "Scroll the page.",
        {
            "direction": string("Which way.", choices=("up", "down", "left", "right")),
            "amount": integer("Pixels.", required=False),
        },
        _post("scroll"),
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
        "dom_select_option",
        "Choose from a list.",
        {"selector": _SELECTOR, "value": string("Value of the option.")},
        _post("select_option"),
    ),
    Tool("dom_hover", "Move the mouse over an element.", {"selector": _SELECTOR}, _post("hover")),
    Tool("dom_scroll_to", "Scroll an element into view.", {"selector": _SELECTOR}, _post("scroll_to_element")),
    Tool("dom_wait_for", "Wait until an element is there.", {"selector": _SELECTOR}, _wait),
    Tool(
        "dom_evaluate",
        "Evaluate a JavaScript expression on the page.",
        {"expression": string("It.")},
        _evaluate(itemgetter("expression")),
    ),
)
