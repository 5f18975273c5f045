"""The browser endpoints, with the browser of this machine and a page on the sandbox's own loopback."""

import shutil
from typing import Any

import pytest
from agent_sandbox.browser import Action_Click, Action_Hotkey, Action_Press, Action_Typing, Action_Wait
from agent_sandbox.core.api_error import ApiError
from running_sandbox import Box, MakeBox, refused

from guarantee_email_agent.sandbox.embedded import BROWSERS
from guarantee_email_agent.sandbox.inside.browser_page import MODIFIERS, key_event
from guarantee_email_agent.utils.errors import TaskError

pytestmark = pytest.mark.slow

PAGE = """<!doctype html><title>Shop</title><h1>Coffee</h1>
<form action="/two.html"><input id="q" name="q"><button id="go">Go</button></form>
<select id="size"><option value="s">Small<option value="l">Large</select><input type="checkbox" id="agree">
<a href="/two.html">More</a><a id="new" target="_blank" href="/two.html?new">New</a>
<script>setTimeout(() => document.body.insertAdjacentHTML('beforeend', '<p id=late>late</p>'), 300)</script>
<div style="height: 3000px"></div>"""
OTHER = "<!doctype html><title>Two</title><p>second page</p>"
START = (
    "cd ~/site && python3 -m http.server 8000 >/dev/null 2>&1 & "
    "for i in $(seq 100); do curl -s 127.0.0.1:8000 && break; sleep 0.05; done"
)


@pytest.fixture(scope="module")
def shop(box: Box) -> Box:
    if not any(map(shutil.which, BROWSERS)):
        pytest.skip(f"this machine has none of {', '.join(BROWSERS)}")
    box.write("/home/gem/site/index.html", PAGE)
    box.write("/home/gem/site/two.html", OTHER)
    box.shell(START)
    return box


@pytest.fixture
def page(shop: Box) -> Any:
    assert shop.real.browser_page.navigate(url="http://127.0.0.1:8000/").data["title"] == "Shop"
    return shop.real.browser_page


def test_it_tells_about_the_browser(page: Any, shop: Box) -> None:
    information = shop.real.browser.get_info().data
    assert "Chrome" in information.user_agent
    assert (information.viewport.width, information.viewport.height) == (1280, 1024)


def test_screenshots_are_pictures(page: Any, shop: Box) -> None:
    seen = b"".join(shop.real.browser.screenshot())
    whole = shop.ours.download("/v1/browser/page/screenshot", {"full_page": True}, timeout_s=30)
    assert seen.startswith(b"\x89PNG")
    assert int.from_bytes(seen[20:24], "big") == 1024 < int.from_bytes(whole[20:24], "big")


def test_a_page_is_read(page: Any) -> None:
    assert page.get_text().data.startswith("Coffee")
    assert page.get_html().data.startswith("<html>")
    assert page.evaluate(expression="[1, 2].map(n => n * 2)").data == [2, 4]
    tags = [element["tag"] for element in page.get_elements().data]
    assert tags == ["input", "button", "select", "input", "a", "a"]


def test_a_form_is_filled_in_and_sent(page: Any) -> None:
    page.fill(selector="#q", text='with "quotes"')
    page.select_option(selector="#size", value="l")
    page.click(selector="#agree")
    assert page.evaluate(expression="[q.value, size.value, agree.checked]").data == ['with "quotes"', "l", True]
    page.click(selector="#go")
    page.wait(type="function", expression="document.title === 'Two'", timeout=10000)
    assert page.evaluate(expression="document.title + location.search").data == "Two?q=with+%22quotes%22"
    assert page.back().data["title"] == "Shop"


def test_history_has_the_parts_of_a_page_too(page: Any) -> None:
    page.navigate(url="http://127.0.0.1:8000/#part")
    assert page.back().data["url"] == "http://127.0.0.1:8000/"
    assert page.forward().data["url"] == "http://127.0.0.1:8000/#part"


def test_elements_are_clicked_by_their_number(page: Any) -> None:
    numbers = {element["id"]: element["index"] for element in page.get_elements().data}
    page.click(index=numbers["agree"])
    assert page.evaluate(expression="agree.checked").data is True


def test_a_new_tab_comes_to_the_front(page: Any) -> None:
    page.click(selector="#new")
    page.wait(type="function", expression="location.search === '?new'", timeout=5000)
    assert page.evaluate(expression="document.title").data == "Two"


def test_mouse_and_keyboard_do_what_a_person_does(page: Any, shop: Box) -> None:
    place = page.evaluate(expression="(r => [r.x + r.width / 2, r.y + r.height / 2])(q.getBoundingClientRect())").data
    act = shop.real.browser.execute_action
    done = act(request=Action_Click(x=place[0], y=place[1]))
    assert (done.success, done.action_performed) == (True, "CLICK")
    act(request=Action_Typing(text="first"))
    act(request=Action_Hotkey(keys=["ctrl", "a"]))
    act(request=Action_Typing(text="second"))
    act(request=Action_Press(key="enter"))
    act(request=Action_Wait(duration=0.1))
    page.wait(type="function", expression="location.search !== ''", timeout=10000)
    assert page.evaluate(expression="location.search").data == "?q=second"


def test_scrolling_and_waiting(page: Any) -> None:
    assert page.scroll(direction="down", amount=300).data["y"] == 300
    page.wait(type="selector", selector="#late", timeout=5000)
    with refused(408):
        page.wait(type="selector", selector="#never", timeout=200)


def test_what_goes_wrong_is_said(page: Any, shop: Box) -> None:
    for call, words in (
        (lambda: page.navigate(url="http://10.0.0.1/"), "net::ERR_"),
        (lambda: page.click(selector="#nothing"), "no element matches '#nothing'"),
        (lambda: page.evaluate(expression="1 +"), "SyntaxError"),
        (lambda: shop.real.browser.execute_action(request=Action_Press(key="anykey")), "there is no key 'anykey'"),
    ):
        with pytest.raises(ApiError) as refusal:
            call()
        assert words in str(refusal.value.body)


def test_a_browser_that_was_killed_is_started_again(page: Any, shop: Box) -> None:
    shop.output("pkill -9 -f chrom[i]um")
    with refused(502):
        page.get_text()
    assert page.navigate(url="http://127.0.0.1:8000/").data["title"] == "Shop"


def test_without_a_browser_it_says_so(monkeypatch: pytest.MonkeyPatch, make_box: MakeBox) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    box = make_box()
    with pytest.raises(TaskError, match="this machine has no browser"):
        box.ours.call("GET", "/v1/browser/info", timeout_s=10)
    with refused(501) as refusal:
        box.real.browser.get_info()
    assert refusal.value.body["success"] is False


@pytest.mark.parametrize(
    ("name", "key", "number"),
    [
        ("Enter", "Enter", 13),
        ("return", "Enter", 13),
        ("ESC", "Escape", 27),
        ("left", "ArrowLeft", 37),
        ("f5", "F5", 116),
    ],
)
def test_a_key_has_many_names(name: str, key: str, number: int) -> None:
    assert (key_event(name)["key"], key_event(name)["windowsVirtualKeyCode"]) == (key, number)


def test_a_character_types_itself_unless_a_modifier_is_held() -> None:
    assert key_event("ä")["text"] == "ä"
    assert key_event("A", MODIFIERS["Shift"])["text"] == "A"
    with_control = key_event("a", MODIFIERS["Control"])
    assert (with_control.get("text"), with_control["commands"]) == (None, ["selectAll"])
