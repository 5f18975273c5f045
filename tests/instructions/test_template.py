from __future__ import annotations

import pytest

from guarantee_email_agent.instructions.markup import MarkupError
from guarantee_email_agent.instructions.template import (
    MissingFactError,
    ReplyTemplate,
    parse_templates,
    select_template,
)

FACTS = {
    "serial_number": "SN12345",
    "warranty_status": "valid",
    "expiration_date": "2031-02-03",
    "coverage": "full",
}


def templates(text: str) -> tuple[ReplyTemplate, ...]:
    return parse_templates(text)


def rendered(text: str, **facts: str | None) -> str:
    (template,) = templates(f"<reply>{text}</reply>")
    return template.render({**FACTS, **facts})


def error_of(text: str) -> MarkupError:
    with pytest.raises(MarkupError) as caught:
        templates(text)
    return caught.value


def test_placeholders_become_the_facts() -> None:
    text = "{serial_number} until {expiration_date}, {coverage} coverage"

    assert rendered(text) == "SN12345 until 2031-02-03, full coverage\n"


def test_the_ticket_number_stays_a_placeholder_until_there_is_a_ticket() -> None:
    assert rendered("Ticket: {ticket_number}") == "Ticket: {ticket_number}\n"


def test_a_fact_is_never_read_as_a_template() -> None:
    assert rendered("{serial_number}", serial_number="{expiration_date}") == "{expiration_date}\n"


def test_a_placeholder_without_a_fact_is_named() -> None:
    with pytest.raises(MissingFactError, match=r"\{expiration_date\} has no value"):
        rendered("until {expiration_date}", expiration_date=None)


@pytest.mark.parametrize(
    "name", ["serial", "Serial_Number", "warranty_status", "", " serial_number ", "serial_number!r"]
)
def test_an_unknown_placeholder_is_told_with_its_line_and_the_known_ones(name: str) -> None:
    error = error_of(f"prose\n<reply>\nHello,\n\nyour {{{name}}}\n</reply>")

    assert error.line == 5
    assert error.message.startswith(f"unknown placeholder {{{name}}}. Known are: {{serial_number}}")
    assert error.code == "instruction_template_invalid"


def test_an_unknown_placeholder_behind_a_condition_has_the_right_line() -> None:
    error = error_of('<reply>\n<if coverage="full">one\ntwo\n</if>\nthree {four}\n</reply>')

    assert error.line == 5


def test_a_condition_that_holds_shows_its_text() -> None:
    assert rendered('a<if coverage="full"> b</if>') == "a b\n"


def test_a_condition_that_does_not_hold_hides_its_text() -> None:
    assert rendered('a<if coverage="full"> b</if>', coverage="parts") == "a\n"


def test_a_condition_compares_without_case() -> None:
    assert rendered('a<if coverage="full"> b</if>', coverage="FULL") == "a b\n"


def test_a_condition_may_name_several_values() -> None:
    assert rendered('a<if coverage="full, parts"> b</if>', coverage="parts") == "a b\n"


@pytest.mark.parametrize(("value", "shown"), [("2031-02-03", "a b\n"), (None, "a\n"), ("", "a\n")])
def test_known_is_any_value(value: str | None, shown: str) -> None:
    assert rendered('a<if expiration_date="known"> b</if>', expiration_date=value) == shown


@pytest.mark.parametrize(("value", "shown"), [("2031-02-03", "a\n"), (None, "a b\n"), ("", "a b\n")])
def test_unknown_is_no_value(value: str | None, shown: str) -> None:
    assert rendered('a<if expiration_date="unknown"> b</if>', expiration_date=value) == shown


def test_all_conditions_of_an_element_must_hold() -> None:
    text = 'a<if coverage="full" expiration_date="known"> b</if>'

    assert rendered(text) == "a b\n"
    assert rendered(text, expiration_date=None) == "a\n"


def test_conditions_nest() -> None:
    text = 'a<if coverage="full"> b<if expiration_date="known"> c</if> d</if> e'

    assert rendered(text) == "a b c d e\n"
    assert rendered(text, expiration_date=None) == "a b d e\n"
    assert rendered(text, coverage=None) == "a e\n"


def test_a_placeholder_in_a_hidden_part_needs_no_fact() -> None:
    assert rendered('a<if expiration_date="known"> {expiration_date}</if>', expiration_date=None) == "a\n"


def test_hidden_parts_leave_no_gap_of_blank_lines() -> None:
    assert rendered('a\n\n<if coverage="full">b</if>\n\nc', coverage=None) == "a\n\nc\n"


def test_white_space_around_the_reply_goes() -> None:
    assert rendered("\n\n  Hello,\n\nyes.  \n\n") == "Hello,\n\nyes.\n"


@pytest.mark.parametrize("text", ["a { b", "a } b", "{serial_number", "serial_number}", "{{serial_number}}"])
def test_a_single_brace_is_told(text: str) -> None:
    error = error_of(f"<reply>{text}</reply>")

    assert error.line == 1
    assert "'{' or '}'" in error.message


@pytest.mark.parametrize("text", ["<reply></reply>", "<reply> \n </reply>"])
def test_an_empty_reply_is_told(text: str) -> None:
    assert error_of(text).message.startswith("<reply> is empty")


def test_another_element_inside_a_reply_is_told() -> None:
    error = error_of("<reply>\na\n<b>c</b></reply>")

    assert (error.line, error.message.partition(".")[0]) == (3, "<b> is not known inside <reply>")


def test_a_condition_without_a_fact_is_told() -> None:
    assert "<if> has no condition" in error_of("<reply><if>a</if></reply>").message


@pytest.mark.parametrize("element", ['<reply colour="red">a</reply>', '<reply>a<if colour="red">b</if></reply>'])
def test_an_unknown_fact_is_told_with_the_known_ones(element: str) -> None:
    assert "unknown fact. Known are: serial_number, warranty_status" in error_of(element).message


def test_a_condition_without_a_value_is_told() -> None:
    assert "has no value" in error_of('<reply><if coverage=" , ">a</if></reply>').message


def test_the_first_template_whose_conditions_hold_is_taken() -> None:
    several = templates(
        '<reply warranty_status="expired">a</reply><reply warranty_status="valid">b</reply><reply>c</reply>'
    )

    assert [select_template(several, {"warranty_status": status}) for status in ("expired", "valid", "other")] == [
        *several
    ]


def test_no_template_may_fit() -> None:
    assert (
        select_template(templates('<reply warranty_status="expired">a</reply>'), {"warranty_status": "valid"}) is None
    )


def test_literal_text_is_every_word_of_the_author() -> None:
    (template,) = templates('<reply>one {serial_number} two<if coverage="full"> three</if></reply>')

    assert template.literal_text().split() == ["one", "two", "three"]


def test_placeholders_are_found_inside_conditions_too() -> None:
    (template,) = templates('<reply>{serial_number}<if coverage="full"> {ticket_number}</if></reply>')

    assert template.placeholders() == {"serial_number", "ticket_number"}


def test_other_elements_are_no_templates() -> None:
    assert templates("<situation>a</situation>") == ()
