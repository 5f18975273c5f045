"""The page in a real browser, opened from disk."""

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest
import sample_reports
from browser_pages import Browser, accessibility_violations, browser_program

from guarantee_email_agent.runlog.views.html_report import as_board, as_html

pytestmark = pytest.mark.skipif(browser_program() is None, reason="this machine has no Chromium")


@pytest.fixture
def page(browser: Browser, tmp_path: Path) -> Any:
    """Opens a report."""

    def open_(report: Any = None, **how: Any) -> Browser:
        (tmp_path / "report.html").write_bytes(as_html(report or sample_reports.report()))
        browser.open(tmp_path / "report.html", **how)
        return browser

    return open_


def shown(browser: Browser) -> list[str]:
    """Names of the cases that are not filtered away."""
    return browser.evaluate(
        "Array.from(document.querySelectorAll('.case:not([hidden]) .name'), each => each.textContent)"
    )


def choose(browser: Browser, field: str, value: str) -> None:
    browser.evaluate(
        f"{{ const field = document.getElementById('{field}'); field.value = {json.dumps(value)};"
        "field.dispatchEvent(new Event('input', {bubbles: true})) }"
    )


def test_it_loads_nothing_and_the_browser_has_no_complaint(page: Any) -> None:
    browser = page(sample_reports.report(sample_reports.hostile_case(), sample_reports.case(2)))
    assert (browser.requests[1:], browser.complaints) == ([], [])
    assert "owned" not in browser.evaluate("document.title")


@pytest.mark.parametrize("width", [360, 1280])
def test_it_is_as_wide_as_the_screen(page: Any, width: int) -> None:
    browser = page(sample_reports.report(sample_reports.hostile_case(), sample_reports.case(2)), width=width)
    assert browser.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_it_is_accessible(page: Any, width: int, dark: bool) -> None:
    browser = page(width=width, dark=dark)
    browser.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    assert accessibility_violations(browser) == []


def test_cases_are_filtered(page: Any) -> None:
    browser = page()
    choose(browser, "outcome", "-passed")
    assert shown(browser) == ["valid_warranty_002", "missing_info_003"]
    assert browser.evaluate("document.getElementById('shown').textContent") == "2 of 4 shown"
    choose(browser, "group", "missing-info")
    assert shown(browser) == ["missing_info_003"]
    choose(browser, "outcome", "")
    choose(browser, "language", "de")
    assert shown(browser) == ["garantie_001"]
    choose(browser, "language", "")
    choose(browser, "group", "")
    choose(browser, "words", "STATUS valid_")
    assert shown(browser) == ["valid_warranty_002", "valid_warranty_001"]


def test_without_scripts_it_can_be_read_and_has_no_filter(page: Any) -> None:
    browser = page(scripts=False)
    assert len(shown(browser)) == 4
    assert browser.evaluate("document.getElementById('filter').checkVisibility()") is False


def test_a_link_to_a_case_opens_it(page: Any) -> None:
    browser = page()
    browser.evaluate("new Promise(done => { addEventListener('hashchange', done); location.hash = 'case-3' })")
    assert browser.evaluate("document.getElementById('case-3').open") is True


def test_the_first_stop_of_the_keyboard_leads_to_the_cases(page: Any) -> None:
    browser = page()
    for kind in ("keyDown", "keyUp"):
        browser.call("Input.dispatchKeyEvent", type=kind, key="Tab", windowsVirtualKeyCode=9)
    assert browser.evaluate("document.activeElement.textContent") == "Skip to the scenarios"
    assert browser.evaluate("document.activeElement.getBoundingClientRect().left") >= 0


def test_print_has_no_filter(page: Any) -> None:
    browser = page()
    browser.call("Emulation.setEmulatedMedia", media="print")
    assert browser.evaluate("document.getElementById('filter').checkVisibility()") is False
    browser.call("Emulation.setEmulatedMedia", media="")


def test_the_page_for_the_board_is_two_printed_pages_and_as_wide_as_any_screen(
    browser: Browser, tmp_path: Path
) -> None:
    mail = {"body": "Words of a long mail. " * 40}
    reply = {"email_sent": True, "response_body": "A line of a long reply, of which not all is shown.\n\n" * 40}
    cases = [
        sample_reports.case(
            number, trace={"read": {}}, request=mail, response={**reply, "scenario_used": f"kind-{number}"}
        )
        for number in range(1, 12)
    ]
    (tmp_path / "board.html").write_bytes(as_board(sample_reports.report(*cases)))
    for width in (360, 1280):
        browser.open(tmp_path / "board.html", width=width)
        assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert (browser.requests[1:], browser.complaints) == ([], [])
    printed = base64.b64decode(browser.call("Page.printToPDF", preferCSSPageSize=True)["data"])
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) == 2
