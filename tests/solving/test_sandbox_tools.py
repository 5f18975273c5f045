"""The tools against a sandbox's HTTP API."""

from collections.abc import Callable
from typing import Any

import pytest
from tasks_and_sandboxes import MakeTask

from guarantee_email_agent.solving.sandbox_tools import ClientType, tools_for
from guarantee_email_agent.solving.tools import MAX_IMAGE_BYTES, ToolCall, ToolResult, Toolset
from guarantee_email_agent.utils.errors import TaskError

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)
Use = Callable[..., ToolResult]


@pytest.fixture
def use(stub_client: Any) -> Use:
    """Use a tool in the stub sandbox."""
    tools = Toolset(tools_for(ClientType.UNIFIED), stub_client)
    return lambda name, **arguments: tools.use(ToolCall("1", name, arguments), 10.0)


def test_shell_shows_an_exit_code_that_is_no_success(use: Use) -> None:
    result = use("shell_execute", command="echo no >&2; exit 3")
    assert (result.error, result.message) == (False, "no\n[exit code 3]")


@pytest.mark.parametrize("timeout", [10_000, 0])
def test_no_tool_may_take_longer_than_the_task_has(use: Use, stub_sandbox: Any, timeout: int) -> None:
    use("shell_execute", command="true", timeout=timeout)
    asked = stub_sandbox.asked[-1][1]
    assert (asked["hard_timeout"], asked["no_change_timeout"], "timeout" in asked) == (10.0, 11, False)


def test_code_in_an_unknown_language_does_not_reach_the_sandbox(use: Use, stub_sandbox: Any) -> None:
    assert use("code_execute", language="cobol", code="…").error
    assert stub_sandbox.asked == []


SLEEP = {"command": "sleep 9", "timeout": 2}
PROGRAM = {"language": "python", "code": "…"}
ENDED = {"stdout": "out\n", "stderr": "err\n", "exit_code": 1, "traceback": None}
STOPPED = {"output": "so far", "status": "hard_timeout", "exit_code": None}
EDIT = {"file": "/f", "old_str": "a", "new_str": "b"}
FILES = {"files": [{"path": "/d/a"}, {"path": "/d/b", "is_directory": True}], "unreadable": ["/c"]}
SEARCH = {"file": "/f", "regex": "a+"}
REPLACE, EDITOR = "replace_in_file", "str_replace_editor"
VIEW = {"command": "view", "path": "/f"}


@pytest.mark.parametrize(
    ("tool", "arguments", "path", "data", "message"),
    [
        ("shell_execute", SLEEP, "shell/exec", STOPPED, "so far\n[stopped after 2 s]"),
        ("shell_execute", SLEEP, "shell/exec", {"output": "", "status": "running"}, "[not ended: running]"),
        ("code_execute", PROGRAM, "code/execute", ENDED, "out\nerr\n[exit code 1]"),
        ("code_execute", PROGRAM, "code/execute", ENDED | {"status": "timeout"}, "out\nerr\n[stopped after 10 s]"),
        ("file_list", {"path": "/d"}, "file/list", FILES, "/d/a\n/d/b/\n[cannot be read: /c]"),
        ("file_list", {"path": "/d"}, "file/list", {"files": None}, "(empty)"),
        ("file_write", {"file": "/f", "content": "a"}, "file/write", {"bytes_written": 1}, "Wrote 1 bytes to /f"),
        ("file_read", {"file": "/f"}, "file/read", {"content": "a note\n"}, "a note\n"),
        (REPLACE, EDIT, "file/replace", {"replaced_count": 2}, "Replaced 2 in /f"),
        (REPLACE, EDIT, "file/replace", {"replaced_count": 0}, f"{REPLACE}: old_str does not occur in /f"),
        ("search_in_file", SEARCH, "file/search", {"line_numbers": [3, 9], "matches": ["aa", "a"]}, "3: aa\n9: a"),
        ("search_in_file", SEARCH, "file/search", {"matches": []}, "(no match)"),
        ("find_files", {"path": "/", "glob": "*"}, "file/find", {"unreadable": ["/c"]}, "[cannot be read: /c]"),
        (EDITOR, VIEW, f"file/{EDITOR}", {"output": "1 a", "error": None}, "1 a"),
        (EDITOR, VIEW, f"file/{EDITOR}", {"output": "", "error": "a occurs twice"}, f"{EDITOR}: a occurs twice"),
        ("browser_navigate", {"url": "http://127.0.0.1"}, "browser/page/navigate", None, "Done."),
        ("browser_click", {"x": 1, "y": 2.5}, "browser/page/click", None, "Done."),
        ("browser_type", {"text": "a"}, "browser/page/type", None, "Done."),
        ("browser_press", {"key": "Enter"}, "browser/page/press_key", None, "Done."),
        ("browser_hotkey", {"keys": ["Control", "a"]}, "browser/page/hot_key", None, "Done."),
        ("browser_scroll", {"direction": "down"}, "browser/page/scroll", None, "Done."),
        ("dom_click", {"index": 3}, "browser/page/click", None, "Done."),
        ("dom_fill", {"selector": "input", "text": "a"}, "browser/page/fill", None, "Done."),
        ("dom_get_text", {}, "browser/page/text", "All of it", "All of it"),
        ("dom_get_html", {}, "browser/page/html", "<p>", "<p>"),
        ("dom_get_text", {"selector": "h1"}, "browser/page/evaluate", "Title", "Title"),
        ("dom_get_text", {"selector": "h2"}, "browser/page/evaluate", None, "dom_get_text: no element matches 'h2'"),
        ("dom_mark_elements", {}, "browser/page/elements", "[0]<a>Next</a>", "[0]<a>Next</a>"),
        ("dom_evaluate", {"expression": "1+1"}, "browser/page/evaluate", {"result": 2}, "2"),
        ("dom_wait_for", {"selector": "p"}, "browser/page/wait", None, "It is there."),
    ],
)
def test_tool_asks_its_endpoint(
    use: Use, stub_sandbox: Any, tool: str, arguments: dict[str, Any], path: str, data: Any, message: str
) -> None:
    stub_sandbox.pages[f"/v1/{path}"] = data
    assert use(tool, **arguments).message == message
    assert [asked for asked, _ in stub_sandbox.asked] == [f"/v1/{path}"]


def test_selector_cannot_become_code(use: Use, stub_sandbox: Any) -> None:
    use("dom_get_text", selector='"); steal("')
    assert 'querySelector("\\"); steal(\\"")' in stub_sandbox.asked[0][1]["expression"]


def test_picture_is_handed_on_for_the_model_to_see(use: Use, stub_sandbox: Any) -> None:
    (stub_sandbox.folder / "a.png").write_bytes(PNG)
    result = use("image_read", file="/a.png")
    assert result.message == "[image/png, 28 bytes]"
    assert (result.image.media_type, result.image.base64[:8]) == ("image/png", "iVBORw0K")


def test_screenshot_is_a_picture(use: Use, stub_sandbox: Any) -> None:
    stub_sandbox.pages["/v1/browser/page/screenshot"] = PNG
    assert use("browser_screenshot").image is not None


@pytest.mark.parametrize(
    ("content", "problem"),
    [(b"text", "/a.png is no PNG, JPEG, GIF or WebP picture"), (PNG + bytes(MAX_IMAGE_BYTES), "make it smaller")],
)
def test_what_is_no_usable_picture_is_an_error(use: Use, stub_sandbox: Any, content: bytes, problem: str) -> None:
    (stub_sandbox.folder / "a.png").write_bytes(content)
    result = use("image_read", file="/a.png")
    assert result.error
    assert problem in result.message


def names(client_type: ClientType) -> set[str]:
    return {tool.name for tool in tools_for(client_type)}


def test_browser_client_has_the_browser_alone_and_shell_client_all_but_it() -> None:
    browser = {name for name in names(ClientType.UNIFIED) if name.startswith(("browser_", "dom_"))}
    assert names(ClientType.BROWSER) == {*browser, "task_complete"}
    assert names(ClientType.SHELL) == names(ClientType.UNIFIED) - browser


def test_client_type_is_the_tasks_to_say(make_task: MakeTask) -> None:
    assert ClientType.of(make_task("plain")) is ClientType.UNIFIED
    assert ClientType.of(make_task("web", settings="client_type: browser\n")) is ClientType.BROWSER


@pytest.mark.parametrize("value", ["wide", "[]", "7", "null"])
def test_unknown_client_type_is_an_error(make_task: MakeTask, value: str) -> None:
    with pytest.raises(TaskError, match=r"client_type must be one of unified, browser, shell, not "):
        ClientType.of(make_task(settings=f"client_type: {value}\n"))
