"""What is new, what is quoted and what is a signature, in the forms and languages that mail programs write."""

import itertools
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guarantee_email_agent.email.parsing.quoting import label_spans
from guarantee_email_agent.files.yaml import load_documents

CASES: Any = load_documents(Path(__file__).with_name("quoting_cases.yaml").read_text(encoding="utf-8"))[0]

NEW = "My drill stopped working."
OLD = "Please send us the number on the sticker."


def texts(body: str) -> dict[str, str]:
    """The text of each kind, in order of appearance."""
    found: dict[str, str] = {}
    for span in label_spans(body):
        found[span.kind] = found.get(span.kind, "") + span.text
    return found


@pytest.mark.parametrize("mark", CASES["quoted to the end"].values(), ids=CASES["quoted to the end"].keys())
def test_everything_after_the_mark_is_quoted(mark: str) -> None:
    body = f"{NEW}\n\n{mark}\n\n{OLD}\nSecond line of the old mail.\n"
    assert texts(body) == {"new": f"{NEW}\n\n", "quoted": f"{mark}\n\n{OLD}\nSecond line of the old mail.\n"}


@pytest.mark.parametrize("mark", CASES["above marked lines"])
def test_after_marked_lines_the_text_is_new_again(mark: str) -> None:
    body = f"{mark}\n> {OLD}\n\n{NEW}\n"
    assert texts(body) == {"quoted": f"{mark}\n> {OLD}\n\n", "new": f"{NEW}\n"}


@pytest.mark.parametrize("mark", CASES["proven by marked lines"])
def test_an_attribution_that_only_its_marked_lines_prove(mark: str) -> None:
    body = f"{NEW}\n\n{mark}\n> {OLD}\n"
    assert texts(body) == {"new": f"{NEW}\n\n", "quoted": f"{mark}\n> {OLD}\n"}


def test_an_attribution_above_everything_leaves_what_follows_new() -> None:
    mark = "On Mon, Jan 5, 2026 at 10:00 AM Support <support@example.com> wrote:\n\n"
    assert texts(f"{mark}{NEW}\n") == {"quoted": mark, "new": f"{NEW}\n"}


@pytest.mark.parametrize(
    ("reply", "mark"),
    [
        ("It is SN12345. ", "On Mon, Jan 5, 2026 at 10:00 AM, Support <support@example.com> wrote:"),
        ("I bought it on 5 May 2024. ", "On Mon, Jan 5, 2026 at 10:00 AM, support@example.com wrote:"),
        ("It is SN12345", "--- On Mon, Jan 5, 2026 at 10:00 AM, support@example.com wrote:"),
        ("  Ja, SN12345 ", "Am 05.01.2026 um 10:00 schrieb Support <support@example.com>:"),
        ("It is SN12345. ", "On Mon, Jan 5, 2026 at 10:00 AM, Support <\nsupport@example.com>\nwrote:"),
        ("long " * 400, "On Mon, Jan 5, 2026 at 10:00 AM, support@example.com wrote:"),
    ],
)
def test_a_reply_on_the_attributions_own_line_is_new(reply: str, mark: str) -> None:
    spans = label_spans(f"{NEW}\n{reply}{mark}\n> {OLD}\n")
    assert [(span.kind, span.text) for span in spans] == [
        ("new", f"{NEW}\n{reply}"),
        ("quoted", f"{mark}\n> {OLD}\n"),
    ]


@pytest.mark.parametrize(("length", "first_quoted"), [(40, "On Mon,"), (41, "> ")])
def test_a_marked_line_that_closes_an_attribution_is_short(length: int, first_quoted: str) -> None:
    opening = "On Mon, Jan 5, 2026 at 10:00 AM, Support <support@example.com\n"
    closing = f"> {'wrote:':>{length - 2}}"
    assert texts(f"{NEW}\n\n{opening}{closing}\n> {OLD}\n")["quoted"].startswith(first_quoted)


@pytest.mark.parametrize("body", ["See <https://example.com/a\n> for SN12345", "Look:\n>>> SN12345 <<<\nThanks"])
def test_a_bracket_at_the_start_of_a_line_marks_nothing(body: str) -> None:
    assert texts(body) == {"new": body}


def test_replies_between_quoted_lines_are_new() -> None:
    spans = label_spans("> Which model?\nBarista 300\n\n> Which number?\n> It is on the back.\nSN12345\n")
    assert [(span.kind, span.text) for span in spans] == [
        ("quoted", "> Which model?\n"),
        ("new", "Barista 300\n\n"),
        ("quoted", "> Which number?\n> It is on the back.\n"),
        ("new", "SN12345\n"),
    ]


@pytest.mark.parametrize("signature", CASES["signatures"])
def test_a_signature_runs_to_the_end(signature: str) -> None:
    assert texts(f"{NEW}\n\n{signature}\n") == {"new": f"{NEW}\n\n", "signature": f"{signature}\n"}


def test_a_signature_ends_at_the_next_quotation() -> None:
    body = (
        f"{NEW}\n\nSent from my iPhone\n\nOn Mon, Jan 5, 2026 at 10:00, Support <support@example.com> wrote:\n> {OLD}\n"
    )
    assert [span.kind for span in label_spans(body)] == ["new", "signature", "quoted"]


def test_a_paragraph_below_the_phones_line_is_new() -> None:
    body = f"{NEW}\n\nSent from my iPhone\nGet Outlook for iOS\n\nPS: it is SN12345\n"
    assert [span.kind for span in label_spans(body)] == ["new", "signature", "new"]


@pytest.mark.parametrize(
    "line", ["Sent from my house, serial SN12345", "Sent from my desk, is much easier than from my phone."]
)
def test_a_sentence_that_starts_like_a_phones_line_is_new(line: str) -> None:
    body = f"{NEW}\n\n{line}\n"
    assert texts(body) == {"new": body}


def test_text_below_the_phones_line_is_new_when_nothing_stands_above_it() -> None:
    assert texts(f"Sent from my iPhone\n\n{NEW}") == {"new": f"Sent from my iPhone\n\n{NEW}"}


def test_a_quotation_at_the_top_is_no_new_text_for_a_signature_to_follow() -> None:
    quoted = "On Mon, 5 Jan 2026 at 10:00\nSupport <support@example.com> wrote:\n> Which number?\n"
    assert texts(f"{quoted}Sent from my iPhone\nSN12345") == {"quoted": quoted, "new": "Sent from my iPhone\nSN12345"}


def test_two_dashes_above_a_long_text_are_a_rule_and_no_signature() -> None:
    body = f"{NEW}\n--\n" + "One more thing.\n" * 20
    assert texts(body) == {"new": body}


@pytest.mark.parametrize("prose", CASES["prose"])
def test_prose_that_looks_like_a_mark_stays_new(prose: str) -> None:
    assert texts(prose) == {"new": prose}


LINES = st.sampled_from(
    [
        "",
        " ",
        "text",
        "> quoted",
        "-- ",
        "--",
        "-",
        "_____",
        "Details:",
        "wrote:",
        "From: a",
        "Sent: b",
        "To: c",
        "é:",
        "On 5 Jan 2026 at 10:00 a@example.com",
        "On 5 Jan 2026 10:00 <a@example.com> wrote:",
        "Sent from my iPhone",
        "-----Original Message-----",
        "Begin forwarded message:",
        "x <a@example.com> 2026:",
        "new On 5 Jan 2026 10:00 a@example.com wrote:",
        "  yes--- On 5 Jan 2026 10:00 a@example.com wrote:",
        "> wrote:",
        "x <https://example.com",
        "---- On 5 Jan 2026 10:00 X wrote ----",
        "On 5 Jan 2026 10:00 a@example.com wrote",
        "Date: 5 Jan 2026 10:00",
        ":",
        "@",
        "@:",
    ]
)


@settings(max_examples=200)
@given(st.lists(LINES, max_size=30).map("\n".join) | st.text(max_size=300))
def test_the_spans_are_the_body_and_neighbours_differ(body: str) -> None:
    spans = label_spans(body)
    assert "".join(span.text for span in spans) == body
    assert all(one.kind != other.kind for one, other in itertools.pairwise(spans))


@settings(max_examples=200)
@given(st.lists(LINES, max_size=30))
def test_what_stands_above_every_mark_is_new(lines: list[str]) -> None:
    body = "\n".join(["The number is SN12345", "", *lines])
    first = label_spans(body)[0]
    assert (first.kind, first.text.partition("\n")[0]) == ("new", "The number is SN12345")


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    [
        "On :",
        "@:",
        "wrote:",
        "> wrote:",
        "On 5 May 2026 at 10:00 x <a@example.com> wrot:",
        " on 5" * 19 + ":",
        " on 5" * 200 + " wrote:",
        "On @ wrote :",
        "From: a",
        "Date: 2026 10:00",
        "<",
        "> (https://example.com",
        "-----",
        "---- X wrote ----x",
        "Sent from my <https://example.com",
    ],
)
def test_two_hundred_kilobytes_of_starts_are_labelled_line_by_line(line: str) -> None:
    body = f"{line}\n" * (200_000 // len(line))
    assert "".join(span.text for span in label_spans(body)) == body
