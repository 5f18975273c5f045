"""The page as a text: what it says, what it leaves out, and that nothing of a stranger's is markup."""

import base64
import hashlib
import re
from typing import Any

import pytest
import sample_reports
from lxml import etree
from sample_reports import Past
from viewed_runs import Markup

from guarantee_email_agent.runlog.views.html_report import HEIGHT, MAX_CASES_BYTES, WIDTH, HistoryChart, as_html


def page(*cases: Any, **changes: Any) -> Markup:
    return Markup(as_html(sample_reports.report(*cases, **changes)))


def test_the_headline_the_numbers_what_they_show_and_the_totals() -> None:
    text = page().text
    assert "✗ Eval failed (<99% threshold)" in text
    assert "Pass rate 50.0%" in text
    assert "2 of 4 scenarios pass." in text
    assert "missing-info de 1 of 1 0" in text


def test_harm_is_told_in_the_heading_and_in_the_body() -> None:
    text = page(sample_reports.case(passed=False, harm=("a machine was answered",)), sample_reports.case(2)).text
    assert "✗ Failed, harmful valid_warranty_001" in text
    assert "harmful: a machine was answered" in text
    assert text.count("harmful") == 2


def test_what_did_not_pass_comes_first_and_open() -> None:
    cases = [each for each in page().all("details") if "data-outcome" in each]
    assert [(each["data-outcome"], "open" in each) for each in cases] == [
        ("failed", True),
        ("invalid", True),
        ("passed", False),
        ("passed", False),
    ]


def test_a_scenario_shows_what_happened_and_what_failed() -> None:
    text = page(sample_reports.case(passed=False)).text
    parts = ["missing phrase", "Mail", "Hi, I need", "Calls (2)", "Reply", "Thank you for", "Ticket", "priority normal"]
    assert re.search(".*".join(map(re.escape, parts)), text)


def test_causes_that_many_share_link_to_their_scenarios() -> None:
    failed = [sample_reports.case(number, passed=False) for number in range(3)]
    links = [each["href"] for each in page(*failed).all("a")]
    assert links == ["#cases", "#case-1", "#case-2", "#case-3"]


def test_the_chart_has_words() -> None:
    shown = page()
    (chart,) = shown.all("svg")
    assert (chart["role"], chart["aria-labelledby"]) == ("img", "chart-title chart-text")
    assert "Pass rates of 9 runs, from 97.1 % on 2026-01-01" in shown.text


def test_nothing_runs_and_nothing_is_fetched_but_what_the_policy_names() -> None:
    content = as_html(sample_reports.report(sample_reports.hostile_case())).decode()
    policy = next(each["content"] for each in Markup(content.encode()).all("meta") if "http-equiv" in each)
    digests = [
        f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
        for tag in ("style", "script")
        for text in re.findall(rf"<{tag}>(.*?)</{tag}>", content, re.DOTALL)
    ]
    assert policy == (
        f"default-src 'none'; style-src {digests[0]}; script-src {digests[1]}; base-uri 'none'; form-action 'none'"
    )
    assert len(digests) == 2


def test_what_strangers_write_is_text() -> None:
    plain, hostile = page(sample_reports.case(passed=False)), page(sample_reports.hostile_case())
    assert {tag for tag, _ in hostile.elements} <= {tag for tag, _ in plain.elements}
    assert len(hostile.all("script")) == 1
    assert not [each for _, each in hostile.elements for name in each if name.startswith("on")]
    assert "\x1b" not in hostile.text
    assert "\u202e" not in hostile.text
    assert "{{ 7 * 7 }}" in hostile.text
    assert {each["href"] for each in hostile.all("a")} == {"#cases"}


@pytest.mark.slow
@pytest.mark.parametrize(("count", "failed"), [(10_000, 10), (10_000, 10_000), (100_000, 100)])
def test_a_large_run_stays_a_page_and_says_what_it_leaves_out(count: int, failed: int) -> None:
    content = as_html(sample_reports.large_report(count, failed=failed))
    assert len(content) < MAX_CASES_BYTES + 100_000
    assert b"This page would be too large for a browser with everything on it." in content
    listed = content.count(b'<bdi class="name">')
    assert listed == count or f"{count - listed:,} scenarios are left out".encode() in content


def test_the_language_of_a_reply_is_named_where_it_is_one() -> None:
    german = page(sample_reports.case(language="de"))
    assert [each["lang"] for each in german.all("div") if "lang" in each] == ["de"]
    assert not [each for each in page(sample_reports.case(language='de" x="')).all("div") if "lang" in each]


@pytest.mark.parametrize("body", ["word " * 3_000, "x" * 15_000, "a line of a mail\n" * 900, "\n" * 15_000])
def test_of_a_long_text_the_rest_is_folded_and_nothing_is_lost(body: str) -> None:
    case = sample_reports.case(request={"body": body})
    page = etree.HTML(as_html(sample_reports.report(case)).decode())
    (mail,) = page.xpath("//section[@class='part mail']")
    head, rest = mail.xpath(".//div[@class='lines']")
    assert rest.getparent().get("class") == "rest"
    assert len(head.text or "") <= 2_000
    assert "".join(f"{head.text or ''}{rest.text or ''}".split()) == "".join(body.split())


def test_of_many_groups_those_with_failures_stand_outside_the_fold() -> None:
    languages = ["de", "en", "es", "fr", "it", "pl", "pt", "nl", "sv", "da", "cs", "fi", "hu"]
    cases = [sample_reports.case(number, language=each) for number, each in enumerate(languages, 1)]
    failed = sample_reports.case(99, passed=False, language="de")
    page = etree.HTML(as_html(sample_reports.report(*cases, failed)).decode())
    outside = page.xpath("//section[@aria-labelledby='groups']/div//tbody/tr")
    inside = page.xpath("//section[@aria-labelledby='groups']/details//tbody/tr")
    assert (len(outside), len(inside)) == (1, 13)
    assert page.xpath("string(//section[@aria-labelledby='groups']/details/summary)") == "All 13 categories by language"
    clean = etree.HTML(as_html(sample_reports.report(*cases)).decode())
    assert clean.xpath("count(//section[@aria-labelledby='groups']/div)") == 0
    assert clean.xpath("string(//section[@aria-labelledby='groups']/details/summary)") == (
        "Every scenario passed in all 13 categories by language"
    )


def chart(*runs: Past, threshold: float | None = 99) -> HistoryChart:
    drawn = HistoryChart.of(runs, threshold)
    assert drawn is not None
    return drawn


def test_one_run_is_no_history() -> None:
    assert HistoryChart.of([Past(1, 1)], 99) is None
    assert HistoryChart.of([Past(1, 1), Past(0, 0)], 99) is None


def test_everything_stands_within_the_drawing() -> None:
    drawn = chart(*(Past(passed, 35) for passed in range(36)))
    numbers = [float(each) for each in drawn.line.strip("M").replace("L", " ").split()]
    assert all(0 <= x <= WIDTH for x in numbers[::2])
    assert all(0 <= y <= HEIGHT for y in numbers[1::2])
    assert drawn.floor == 0


def test_the_scale_holds_the_threshold() -> None:
    drawn = chart(Past(10_000, 10_000), Past(10_000, 10_000), threshold=50)
    assert (drawn.floor, drawn.threshold_y) == (50, HEIGHT)


def test_the_drawing_in_words() -> None:
    assert chart(Past(34, 35, started="2026-01-01T10:00:00Z"), Past(35, 35)).text == (
        "Pass rates of 2 runs, from 97.1 % on 2026-01-01 to 100 % on 2026-01-18; lowest 97.1 %, highest 100 %."
    )


def test_a_rate_just_below_a_hundred_does_not_read_as_such() -> None:
    assert "to 99.9 %" in chart(Past(1, 1), Past(9_999, 10_000)).text
