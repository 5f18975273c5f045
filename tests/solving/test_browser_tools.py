"""The browser's tools with the browser of this machine, in a sandbox that runs."""

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


def test_something_is_dragged_with_the_button_held(use: Use) -> None:
    use("browser_move_to", x=10, y=10)
    use("browser_drag_to", x=50, y=30)
    heard = said(use)
    assert [event[:3] for event in heard if event[0] in ("mousedown", "mouseup")] == [
        ["mousedown", 10, 10],
        ["mouseup", 50, 30],
    ]
    assert [event[4] for event in heard if event[0] == "mousemove"] == [0, 1, 1]


def test_a_wait_takes_its_time(use: Use) -> None:
    use("dom_evaluate", expression="setTimeout(() => document.title = 'later', 20), 0")
    assert use("browser_wait", duration=0.1).message == "Waited 0.1 s."
    assert use("dom_evaluate", expression="document.title").message == "later"


def test_every_tool_bears_its_name_in_the_record(tools: Toolset) -> None:
    for tool in BROWSER_TOOLS:
        assert tools.action(ToolCall("1", tool.name, {}))["action_type"] == tool.name
