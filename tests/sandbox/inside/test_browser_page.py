"""Pages that mean no good, or do none: whatever they do, the next request is answered."""

import shutil
from contextlib import suppress
from typing import Any

import pytest
from agent_sandbox.core.api_error import ApiError
from running_sandbox import Box, refused
from waiting import wait_until

from guarantee_email_agent.sandbox import SandboxSettings
from guarantee_email_agent.sandbox.embedded import BROWSERS

pytestmark = [
    pytest.mark.skipif(not any(map(shutil.which, BROWSERS)), reason=f"there is none of {', '.join(BROWSERS)}"),
    pytest.mark.slow,
]

CALM = "file:///tmp/calm.html"
SERVER = """
import socket
silent = socket.create_server(("127.0.0.1", 8001))
while True:
    kept = silent.accept()
"""


def start(program: str, port: int) -> str:
    """Command that starts a server and waits for it."""
    reached = f"(: </dev/tcp/127.0.0.1/{port}) 2>/dev/null"
    return f"python3 {program} & for i in $(seq 100); do {reached} && break; sleep 0.05; done"


@pytest.fixture
def page(box: Box) -> Any:
    box.write("/tmp/calm.html", "<title>Calm</title>")
    assert box.real.browser_page.navigate(url=CALM).data["title"] == "Calm"
    return box.real.browser_page


def location(page: Any) -> Any:
    return page.evaluate(expression="location.href").data


def test_alerts_without_end_hold_nobody_up(box: Box, page: Any) -> None:
    box.write("/tmp/alerts.html", "<title>Alerts</title><script>alert(1); setInterval(() => alert(2), 50)</script>")
    assert page.navigate(url="file:///tmp/alerts.html").data["title"] == "Alerts"
    assert page.navigate(url=CALM).data["title"] == "Calm"


def test_a_page_does_not_keep_who_wants_to_leave(box: Box, page: Any) -> None:
    box.write("/tmp/stay.html", "<button id=b></button><script>onbeforeunload = e => e.preventDefault()</script>")
    page.navigate(url="file:///tmp/stay.html")
    page.click(selector="#b")
    assert page.navigate(url=CALM).data["title"] == "Calm"


@pytest.mark.slow
def test_a_page_in_an_endless_loop_gives_way_to_another(page: Any) -> None:
    page.evaluate(expression="void setTimeout(() => { for (;;); })")
    with refused(408):
        page.wait(type="function", expression="window.never", timeout=500)
    assert location(page) == "about:blank"
    assert page.navigate(url=CALM).data["title"] == "Calm"


def test_a_page_that_crashes_gives_way_to_another(page: Any) -> None:
    with refused(400):
        page.navigate(url="chrome://crash")
    with suppress(ApiError):  # the news of it may come after the request
        page.wait(type="function", expression="false", timeout=5000)
    assert page.navigate(url=CALM).data["title"] == "Calm"


def test_a_page_that_closes_itself_gives_way_to_another(page: Any) -> None:
    page.evaluate(expression="void open('about:blank#popup')")
    assert location(page) == "about:blank#popup"
    page.evaluate(expression="void setTimeout(close)")

    def is_another() -> bool:
        try:
            return bool(location(page) != "about:blank#popup")
        except ApiError:  # asked in the very moment in which it closed
            return False

    wait_until(is_another)
    assert page.navigate(url=CALM).data["title"] == "Calm"


def test_a_page_that_never_comes_leaves_the_one_before(box: Box, page: Any) -> None:
    box.write("/tmp/silent.py", SERVER)
    box.shell(start("/tmp/silent.py", 8001))
    with refused(408) as refusal:
        page.navigate(url="http://127.0.0.1:8001/", timeout=300)
    assert "not loaded within 0.3 s" in refusal.value.body["message"]
    assert location(page) == CALM


def test_hundreds_of_tabs_hide_no_page(page: Any) -> None:
    page.evaluate(expression="for (let i = 0; i < 100; i++) open('about:blank'); 1")
    assert location(page) == "about:blank"
    assert page.navigate(url=CALM).data["title"] == "Calm"


def test_who_listens_on_the_browsers_port_inside_is_not_taken_for_the_browser(make_box: Any) -> None:
    box = make_box()
    box.write("/tmp/impostor.py", SERVER.replace("8001", "9222"))
    box.shell(
        "python3 /tmp/impostor.py & for i in $(seq 100); do : 2>/dev/null </dev/tcp/127.0.0.1/9222 && break; done"
    )
    assert "Chrome" in box.real.browser.get_info().data.user_agent
    assert box.real.browser_page.evaluate(expression="6 * 7").data == 42


@pytest.mark.parametrize("network", [False, True])
def test_its_devtools_are_open_to_programs_inside_and_to_none_of_the_host(make_box: Any, network: bool) -> None:
    box = make_box(SandboxSettings(network=network))
    assert "Chrome" in box.real.browser.get_info().data.user_agent
    port = box.output("tr '\\0' '\\n' </proc/$(pgrep -of headless)/cmdline | grep debugging-port")
    assert port == ("" if network else "--remote-debugging-port=9222")
