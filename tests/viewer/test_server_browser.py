"""The pages in a real browser: keyboard, roles, sizes, colours, and a run that goes on."""

from collections.abc import Iterator
from typing import Any

import pytest
from browser_pages import Browser, accessibility_violations, browser_program
from running_view import RunningView, running_view
from stored_runs import StoredRuns, result

from guarantee_email_agent.runlog.records import Check, Input, InputSet

HOSTILE = "<script>document.title = 'owned'</script><img src=x onerror=\"document.title='owned'\">" + "x" * 500
PAGES = (
    "",
    "runs/last",
    "runs/last?verdict=not+passed",
    "runs/last/results/valid_warranty_001",
    "runs/last/results/valid_warranty_002",
    "compare",
    "nothing",
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(browser_program() is None, reason="this machine has no Chromium"),
]


def scenario(position: int, verdict: Any = "passed", *, text: str = "Hello", **changes: Any) -> Any:
    checks = (Check("response_body_contains", "missing phrase 'x'", "'x'", "'y'"),) if verdict != "passed" else ()
    listed = [
        {"name": "email_sent", "passed": True, "expected": "True"},
        *({**each._asdict(), "passed": False} for each in checks),
    ]
    values = {
        "language": ("en", "de")[position % 2],
        "checks": checks,
        "request": {"from": "jane@example.com", "subject": text, "body": text},
        "response": {
            "email_sent": True,
            "response_body": f"{text} {verdict}",
            "ticket_created": True,
            "ticket_fields": {"a": "b"},
        },
        "trace": {
            "read": {"topic": "warranty", "numbers": ["SN1"]},
            "execution_trace": [{"action": {"action_type": "send_email", "body": text}, "feedback": {"message": "ok"}}],
        },
        "judgement": {"checks": listed},
    }
    return result(position, verdict, **values | changes)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> StoredRuns:
    folder = tmp_path_factory.mktemp("viewed")
    (folder / "config.yaml").write_text("{}\n")
    runs = StoredRuns(folder / "runs.db")
    old, new = (InputSet([Input.of("instruction", "main.md", text)]) for text in (b"be kind\n", b"be short\n"))
    for number in range(1, 4):
        runs.write(number, [scenario(each, inputs=old) for each in range(1, 71)], planned=70)
    failing = [scenario(1, "failed", inputs=new), scenario(2, "error", text=HOSTILE, inputs=new)]
    runs.write(4, [*failing, *(scenario(each, inputs=new) for each in range(3, 71))], "failed", 4, planned=70)
    return runs


@pytest.fixture(scope="module")
def view(runs: StoredRuns) -> Iterator[RunningView]:
    with running_view(runs.file.parent) as view:
        yield view


@pytest.fixture
def page(browser: Browser, view: RunningView) -> Any:
    """Opens a page."""

    def open_(path: str = "", **how: Any) -> Browser:
        browser.open(f"{view.address}{path}", **how)
        return browser

    return open_


def wait_for(browser: Browser, condition: str) -> None:
    """Until it holds in the page, which is looked at when it changes."""
    watched = "{childList: true, subtree: true, attributes: true}"
    browser.evaluate(
        f"new Promise(done => {{ const look = () => {{ if ({condition}) {{ observer.disconnect(); done(); }} }};"
        f"const observer = new MutationObserver(look); observer.observe(document, {watched}); look(); }})"
    )


def press(browser: Browser, key: str, code: int) -> None:
    text = {"text": "\r"} if key == "Enter" else {}
    browser.call("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **text)
    browser.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)


def names(browser: Browser) -> list[str]:
    return browser.evaluate("Array.from(document.querySelectorAll('#found .results .name'), e => e.textContent)")


@pytest.mark.parametrize("path", PAGES)
def test_each_page_loads_only_its_own_files_and_nobody_complains(page: Any, view: RunningView, path: str) -> None:
    browser = page(path)
    assert {each.removeprefix(view.address).split("/")[0] for each in browser.requests[1:]} <= {"static"}
    complaints = [each for each in browser.complaints if "404" not in each or path != "nothing"]
    assert complaints == []
    assert "owned" not in browser.evaluate("document.title")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("path", PAGES)
def test_each_page_is_accessible(page: Any, path: str, width: int, dark: bool) -> None:
    browser = page(path, width=width, dark=dark)
    assert accessibility_violations(browser) == []


@pytest.mark.parametrize("path", PAGES)
def test_each_page_is_as_wide_as_the_screen_with_landmarks_and_one_heading(page: Any, path: str) -> None:
    browser = page(path, width=360)
    assert browser.evaluate("document.documentElement.scrollWidth") <= 360
    browser.call("Accessibility.enable")
    nodes = browser.call("Accessibility.getFullAXTree")["nodes"]
    roles = [node["role"]["value"] for node in nodes if not node.get("ignored")]
    assert {"banner", "navigation", "main", "contentinfo"} <= set(roles)
    levels = browser.evaluate("Array.from(document.querySelectorAll('h1, h2, h3'), each => each.tagName)")
    assert levels.count("H1") == 1
    assert levels[0] == "H1"


def test_the_keyboard_alone_leads_from_the_list_to_a_result(page: Any, view: RunningView) -> None:
    browser = page("runs/last?verdict=failed")
    press(browser, "Tab", 9)
    assert browser.evaluate("document.activeElement.textContent") == "Skip to the content"
    for _ in range(60):
        press(browser, "Tab", 9)
        if browser.evaluate("document.activeElement.matches('#found .results .name')"):
            break
    assert browser.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    browser.follow(lambda: press(browser, "Enter", 13))
    assert browser.evaluate("location.pathname").endswith("/results/valid_warranty_001")


def test_choosing_a_filter_changes_the_list_and_the_address_and_keeps_the_focus(page: Any) -> None:
    browser = page("runs/last")
    browser.evaluate(
        "{ const field = document.getElementById('verdict'); field.focus(); field.value = 'not passed';"
        "field.dispatchEvent(new Event('change', {bubbles: true})) }"
    )
    wait_for(browser, "document.querySelectorAll('#found .results .name').length === 2")
    assert names(browser) == ["valid_warranty_001", "valid_warranty_002"]
    assert "verdict=not%20passed" in browser.evaluate("location.search")
    assert browser.evaluate("document.activeElement.id") == "verdict"
    assert browser.evaluate("document.querySelector('#found [role=status]').textContent") == "2 results fit"


def test_typing_searches(page: Any) -> None:
    browser = page("runs/last")
    browser.evaluate("document.getElementById('text').focus()")
    browser.call("Input.insertText", text="customer 69")
    wait_for(browser, "document.querySelectorAll('#found .results .name').length === 1")
    assert names(browser) == ["valid_warranty_069"]


def test_without_scripts_the_filters_work_by_their_button(page: Any) -> None:
    browser = page("runs/last", scripts=False)
    browser.follow(
        lambda: browser.evaluate(
            "{ document.getElementById('verdict').value = 'error';"
            "document.querySelector('form[role=search]').requestSubmit() }"
        )
    )
    assert names(browser) == ["valid_warranty_002"]
