from __future__ import annotations

import pytest
from shipped_instructions import markup_error

from guarantee_email_agent.instructions.template import (
    MissingFactError,
    parse_templates,
    select_template,
)

FACTS = {"serial_number": "SN12345", "warranty_status": "valid", "expiration_date": "2031-02-03", "coverage": "full"}


def rendered(text: str, **facts: str | None) -> str:
    (template,) = parse_templates(f"<reply>{text}</reply>")
    return template.render({**FACTS, **facts})


IF_FULL = '<if coverage="full"> b</if>'
IF_KNOWN = '<if expiration_date="known"> b</if>'
IF_UNKNOWN = '<if expiration_date="unknown"> b</if>'
IF_BOTH = '<if coverage="full" expiration_date="known"> b</if>'
NESTED = '<if coverage="full"> b<if expiration_date="known"> c</if> d</if>'


@pytest.mark.parametrize(
    ("text", "facts", "reply"),
    [
        (
            "{serial_number} until {expiration_date}, {coverage} coverage",
            {},
            "SN12345 until 2031-02-03, full coverage\n",
        ),
        # It stays a placeholder until there is a ticket.
        ("Ticket: {ticket_number}", {}, "Ticket: {ticket_number}\n"),
        # A fact is never read as a template.
        ("{serial_number}", {"serial_number": "{expiration_date}"}, "{expiration_date}\n"),
        (f"a{IF_FULL}", {}, "a b\n"),
        (f"a{IF_FULL}", {"coverage": "parts"}, "a\n"),
        (f"a{IF_FULL}", {"coverage": "FULL"}, "a b\n"),
        ('a<if coverage="full, parts"> b</if>', {"coverage": "parts"}, "a b\n"),
        (f"a{IF_KNOWN}", {}, "a b\n"),
        (f"a{IF_KNOWN}", {"expiration_date": None}, "a\n"),
        (f"a{IF_KNOWN}", {"expiration_date": ""}, "a\n"),
        (f"a{IF_UNKNOWN}", {}, "a\n"),
        (f"a{IF_UNKNOWN}", {"expiration_date": None}, "a b\n"),
        (f"a{IF_UNKNOWN}", {"expiration_date": ""}, "a b\n"),
        (f"a{IF_BOTH}", {}, "a b\n"),
        (f"a{IF_BOTH}", {"expiration_date": None}, "a\n"),
        (f"a{NESTED} e", {}, "a b c d e\n"),
        (f"a{NESTED} e", {"expiration_date": None}, "a b d e\n"),
        (f"a{NESTED} e", {"coverage": None}, "a e\n"),
        # A placeholder that is hidden needs no fact.
        ('a<if expiration_date="known"> {expiration_date}</if>', {"expiration_date": None}, "a\n"),
        # No gap of blank lines is left, and no white space around the reply.
        ('a\n\n<if coverage="full">b</if>\n\nc', {"coverage": None}, "a\n\nc\n"),
        ("\n\n  Hello,\n\nyes.  \n\n", {}, "Hello,\n\nyes.\n"),
    ],
)
def test_what_a_template_says(text: str, facts: dict[str, str | None], reply: str) -> None:
    assert rendered(text, **facts) == reply


def test_a_placeholder_without_a_fact_is_named() -> None:
    with pytest.raises(MissingFactError, match=r"\{expiration_date\} has no value"):
        rendered("until {expiration_date}", expiration_date=None)


@pytest.mark.parametrize(
    "name", ["serial", "Serial_Number", "warranty_status", "", " serial_number ", "serial_number!r"]
)
def test_an_unknown_placeholder_is_reported_with_its_line_and_the_known_ones(name: str) -> None:
    error = markup_error(parse_templates, f"prose\n<reply>\nHello,\n\nyour {{{name}}}\n</reply>")
    assert error.line == 5
    assert error.message.startswith(f"unknown placeholder {{{name}}}. Known are: {{serial_number}}")
    assert error.code == "instruction_template_invalid"


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ('<reply>\n<if coverage="full">one\ntwo\n</if>\nthree {four}\n</reply>', 5, "unknown placeholder {four}"),
        *(
            (f"<reply>{text}</reply>", 1, "a single '{' or '}' stands in the reply")
            for text in ("a { b", "a } b", "{serial_number", "serial_number}", "{{serial_number}}")
        ),
        ("<reply></reply>", 1, "<reply> is empty"),
        ("<reply> \n </reply>", 1, "<reply> is empty"),
        ("<reply>\na\n<b>c</b></reply>", 3, "<b> is not known inside <reply>"),
        ("<reply><if>a</if></reply>", 1, "<if> has no condition"),
        ('<reply colour="red">a</reply>', 1, "unknown fact. Known are: serial_number, warranty_status"),
        ('<reply>a<if colour="red">b</if></reply>', 1, "unknown fact. Known are: serial_number, warranty_status"),
        ('<reply><if coverage=" , ">a</if></reply>', 1, "has no value"),
    ],
)
def test_a_template_that_cannot_be_used_is_reported_with_its_line(text: str, line: int, message: str) -> None:
    error = markup_error(parse_templates, text)
    assert error.line == line
    assert message in error.message


def test_the_first_template_whose_conditions_hold_is_taken() -> None:
    several = parse_templates(
        '<reply warranty_status="expired">a</reply><reply warranty_status="valid">b</reply><reply>c</reply>'
    )

    chosen = [select_template(several, {"warranty_status": status}) for status in ("expired", "valid", "other")]
    assert chosen == [*several]


def test_no_template_may_fit() -> None:
    templates = parse_templates('<reply warranty_status="expired">a</reply>')
    assert select_template(templates, {"warranty_status": "valid"}) is None


def test_literal_text_is_every_word_of_the_author() -> None:
    (template,) = parse_templates('<reply>one {serial_number} two<if coverage="full"> three</if></reply>')
    assert template.literal_text().split() == ["one", "two", "three"]


def test_placeholders_are_found_inside_conditions_too() -> None:
    (template,) = parse_templates('<reply>{serial_number}<if coverage="full"> {ticket_number}</if></reply>')
    assert template.placeholders() == {"serial_number", "ticket_number"}


def test_other_elements_are_no_templates() -> None:
    assert parse_templates("<situation>a</situation>") == ()
