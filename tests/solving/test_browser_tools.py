"""The browser's tools with the browser of this machine, in a sandbox that runs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from guarantee_email_agent.sandbox import SandboxSettings
from guarantee_email_agent.sandbox.client import SandboxClient
from guarantee_email_agent.sandbox.embedded import BROWSERS, EmbeddedSandbox
from guarantee_email_agent.solving.browser_tools import BROWSER_TOOLS
from guarantee_email_agent.solving.tools import ToolCall, ToolResult, Toolset

pytestmark = pytest.mark.skipif(not any(map(shutil.which, BROWSERS)), reason=f"there is none of {', '.join(BROWSERS)}")

PAGE = """<!doctype html><title>Shop</title><style>body {margin: 0} #box {width: 100px; height: 100px}</style>
<div id="box"></div><input id="q" value="old">
<div id="list" style="height: 50px; overflow: scroll"><p>a<p>b<p>c<p>d</div>
<div style="width: 3000px; height: 3000px"></div>
<script>
  const said = [], note = e => said.push([e.type, Math.round(e.clientX), Math.round(e.clientY), e.shiftKey, e.buttons]);
  for (const kind of ['mousedown', 'mousemove', 'mouseup', 'click']) addEventListener(kind, note);
  for (const kind of ['keydown', 'keyup']) addEventListener(kind, e => said.push([e.type, e.key, e.shiftKey]));
</script>"""
Use = Callable[..., ToolResult]


@pytest.fixture(scope="module")
def tools() -> Iterator[Toolset]:
    sandbox = EmbeddedSandbox(SandboxSettings())
    sandbox.start()
    try:
        client = SandboxClient(sandbox.base_url)
        client.call("POST", "/v1/file/write", {"file": "/tmp/page.html", "content": PAGE}, timeout_s=10)
        yield Toolset(BROWSER_TOOLS, client)
    finally:
        sandbox.stop()


@pytest.fixture
def use(tools: Toolset) -> Use:
    def use(name: str, **arguments: Any) -> ToolResult:
        return tools.use(ToolCall("1", name, arguments), 60.0)

    assert not use("browser_navigate", url="file:///tmp/page.html").error
    return use


def said(use: Use) -> Any:
    """What the page heard since it was asked last."""
    return json.loads(use("dom_evaluate", expression="said.splice(0)").message)


def test_mouse_goes_to_a_place_and_on_from_there(use: Use) -> None:
    assert use("browser_move_to", x=40, y=30).message == "Done."
    use("browser_move_rel", x_offset=10, y_offset=-5)
    assert said(use) == [["mousemove", 40, 30, False, 0], ["mousemove", 50, 25, False, 0]]


def test_something_is_dragged_with_the_button_held(use: Use) -> None:
    use("browser_move_to", x=10, y=10)
    use("browser_drag_to", x=50, y=30)
    use("browser_drag_rel", x_offset=20, y_offset=0)
    heard = said(use)
    assert [event[:3] for event in heard if event[0] in ("mousedown", "mouseup")] == [
        ["mousedown", 10, 10],
        ["mouseup", 50, 30],
        ["mousedown", 50, 30],
        ["mouseup", 70, 30],
    ]
    assert [event[4] for event in heard if event[0] == "mousemove"] == [0, 1, 1, 1, 1]


def test_a_key_is_held_while_others_and_the_mouse_are_used(use: Use) -> None:
    use("browser_key_down", key="Shift")
    use("browser_press", key="ArrowDown")
    use("browser_click", x=20, y=20)
    use("browser_key_up", key="Shift")
    use("browser_press", key="ArrowDown")
    heard = said(use)
    assert [event for event in heard if "key" in event[0]] == [
        ["keydown", "Shift", True],
        ["keydown", "ArrowDown", True],
        ["keyup", "ArrowDown", True],
        ["keyup", "Shift", False],
        ["keydown", "ArrowDown", False],
        ["keyup", "ArrowDown", False],
    ]
    assert [event[3] for event in heard if event[0] == "click"] == [True]


@pytest.mark.parametrize(
    ("more", "value"), [({}, "new"), ({"clear_first": True}, "new"), ({"clear_first": False}, "oldnew")]
)
def test_a_text_is_typed_into_a_field(use: Use, more: dict[str, Any], value: str) -> None:
    assert use("dom_type", selector="#q", text="new", **more).message == "Done."
    assert use("dom_evaluate", expression="q.value").message == value


def test_a_field_is_named_by_its_number_too(use: Use) -> None:
    numbers = {element["id"]: element["index"] for element in json.loads(use("dom_mark_elements").message)}
    use("dom_type", index=numbers["q"], text="by number")
    assert use("dom_evaluate", expression="q.value").message == "by number"


def test_a_key_is_pressed_on_an_element(use: Use) -> None:
    use("dom_press", selector="#q", key="End")
    use("dom_press", key="Backspace")
    assert use("dom_evaluate", expression="q.value").message == "ol"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("dom_press", {"key": "a"}), ("dom_type", {"text": "a"}), ("dom_scroll", {"direction": "up"})],
)
def test_without_the_element_it_says_so(use: Use, tool: str, arguments: dict[str, Any]) -> None:
    result = use(tool, selector="#none", **arguments)
    assert (result.error, result.message) == (True, f"{tool}: no element matches '#none'")


def test_page_and_element_are_scrolled_and_say_where_they_stand(use: Use) -> None:
    page = json.loads(use("dom_scroll", direction="down").message)
    assert (page["x"], page["y"]) == (0, 500)
    assert page["max_y"] > 2_000
    assert json.loads(use("dom_scroll", direction="right", amount=100).message)["x"] == 100
    end = json.loads(use("dom_scroll", direction="down", amount=10_000, selector="#list").message)
    assert end["y"] == end["max_y"] > 0


def test_the_size_of_what_is_in_view_is_told(use: Use) -> None:
    assert json.loads(use("browser_get_viewport_info").message) == {"width": 1280, "height": 1024}


def test_a_wait_takes_its_time(use: Use) -> None:
    use("dom_evaluate", expression="setTimeout(() => document.title = 'later', 20), 0")
    assert use("browser_wait", duration=0.1).message == "Waited 0.1 s."
    assert use("dom_evaluate", expression="document.title").message == "later"


def test_every_tool_bears_its_name_in_the_record(tools: Toolset) -> None:
    for tool in BROWSER_TOOLS:
        assert tools.action(ToolCall("1", tool.name, {}))["action_type"] == tool.name
