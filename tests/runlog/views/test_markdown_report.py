"""What GitHub makes of it is tried with a parser of the same flavour: nothing of a stranger's becomes markup."""

import re
from typing import Any

import pytest
import sample_reports
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from guarantee_email_agent.runlog.views.markdown_report import (
    MAX_CHARACTERS,
    as_markdown,
    code_block,
    code_span,
    escaped,
)

GITHUB = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def tokens(markdown: str) -> list[Any]:
    """Every token, those within a line included."""
    return [each for token in GITHUB.parse(markdown) for each in (token, *(token.children or ()))]


def text(**changes: Any) -> str:
    return as_markdown(sample_reports.report(**changes)).decode()


class TestWhole:
    def test_the_headline_the_numbers_and_what_they_show(self) -> None:
        written = text()
        assert written.startswith("## ❌ Eval failed ")
        assert "**50.0%** passed: 2 of 4, 2 failed (1 invalid files)." in written
        assert "\n2 of 4 scenarios pass. If the agent" in written

    def test_failures_have_their_reasons_and_the_passed_are_folded(self) -> None:
        written = text()
        assert "response_body_contains: missing phrase 'type plate'\n  expected: 'type plate'" in written
        assert "<details><summary>Passed (2)</summary>\n\n`valid_warranty_001`, `garantie_001`\n" in written

    def test_harm_is_told_in_the_title_and_below_the_reasons(self) -> None:
        failed = sample_reports.case(passed=False, harm=("a machine was answered",))
        written = as_markdown(sample_reports.report(failed)).decode()
        assert "<summary>✗ <code>valid_warranty_001</code> failed, harmful</summary>" in written
        assert "'Hello, Thank you …'\nharmful: a machine was answered\n```" in written

    @pytest.mark.parametrize("failed", [0, 20, 10_000])
    def test_a_large_run_fits_a_comment_and_says_what_is_left_out(self, failed: int) -> None:
        written = as_markdown(sample_reports.large_report(10_000, failed=failed)).decode()
        assert len(written) <= MAX_CHARACTERS
        assert re.search(r"and [\d,]+ more", written)

    def test_a_failure_of_many_megabytes_is_cut(self) -> None:
        failed = sample_reports.Check("agent", "x" * 5_000_000)
        written = as_markdown(sample_reports.report(sample_reports.case(passed=False, checks=(failed,)))).decode()
        assert "characters more, left out here" in written
        assert len(written) < 5_000


class TestStrangers:
    def test_no_markup_of_theirs_is_read(self) -> None:
        written = as_markdown(sample_reports.report(sample_reports.hostile_case())).decode()
        html = [token.content for token in tokens(written) if token.type.startswith("html_")]
        assert all(re.fullmatch(r"(</?(details|summary)>|[^<>]|</?code>)+", each) for each in html)
        assert not [token for token in tokens(written) if token.type in ("link_open", "image")]

    def test_a_name_is_mentioned_in_code_only(self) -> None:
        written = as_markdown(sample_reports.report(sample_reports.hostile_case())).decode()
        plain = [token.content for token in tokens(written) if token.type == "text"]
        assert not [each for each in plain if re.search(r"[@#]\w", each)]

    def test_the_table_keeps_its_cells(self) -> None:
        case = sample_reports.case(category="a | b `c` \\| d\n| e |", language="|")
        written = as_markdown(
            sample_reports.report(case, sample_reports.case(2), facts=(), of_run={"suite": "", "id": ""})
        ).decode()
        table = written[written.index("| Category") : written.index("\n\n</details>")]
        rows = [token for token in tokens(table) if token.type == "tr_open"]
        cells = [token for token in tokens(table) if token.type in ("td_open", "th_open")]
        assert (len(rows), len(cells)) == (3, 12)

    @given(st.text())
    def test_escaped_text_is_text(self, text: str) -> None:
        kinds = {token.type for token in tokens(f"start {escaped(text)} end")}
        assert kinds <= {"paragraph_open", "inline", "text", "text_special", "paragraph_close"}

    @given(st.text(alphabet="`~|\\a \n<@"))
    def test_a_code_span_is_one_span(self, text: str) -> None:
        (inline,) = [token for token in GITHUB.parse(f"x {code_span(text)} y") if token.type == "inline"]
        assert [child.type for child in inline.children or ()] == ["text", "code_inline", "text"]

    @given(st.text(alphabet="`~|\\a \n<@"))
    def test_a_code_block_is_one_block(self, text: str) -> None:
        (block,) = GITHUB.parse(code_block(text))
        assert block.type == "fence"
        assert block.content.removesuffix("\n") == text
