import pytest
from hypothesis import given
from hypothesis import strategies as st
from shipped_instructions import markup_error

from guarantee_email_agent.instructions.markup import MAX_DEPTH, MarkupError, parse_elements


def test_gives_the_elements_between_the_prose() -> None:
    elements = parse_elements("Hello\n<a>one</a>\nmore prose\n<b>two</b>\n")
    assert [(element.name, element.text) for element in elements] == [("a", "one"), ("b", "two")]


def test_an_element_knows_its_line_and_attributes() -> None:
    (element,) = parse_elements('first\nsecond\n<reply warranty_status="valid">x</reply>')
    assert element.line == 3
    assert element.attributes == {"warranty_status": "valid"}


def test_text_holds_that_of_the_children_in_order() -> None:
    (element,) = parse_elements("<a>one <b>two</b> three</a>")
    assert element.text == "one two three"
    assert [child.name for child in element.children] == ["b"]


def test_numbered_lines_leave_out_blank_ones() -> None:
    (element,) = parse_elements("prose\n<a>\n  one \n\n two\n</a>")
    assert list(element.numbered_lines()) == [(3, "one"), (5, "two")]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("prose\n<reply>\nHello\n\nmore\n", 2, "<reply> is never closed. Add </reply>"),
        # The child, and not its parent.
        ('<reply>\nHello <if coverage="full">yes\n</reply>\n', 2, "<if> is never closed. Add </if>"),
        ("<sentense>Hello</sentence>", 1, "Add </sentense>, or correct its name"),
        ("prose\nmore</reply>\n", 2, "never opened"),
        *(
            (text, 2, "&lt;")
            for text in ("one\n1 < 2\n", "one\nyou & me\n", "one\n<a b=c>x</a>\n", "one\n<a x='1' x='2'/>\n")
        ),
        ('prose\n<!DOCTYPE a [<!ENTITY b "c">]>\n<a>&b;</a>', 2, "does not parse"),
        ("<a>" * (MAX_DEPTH + 1) + "</a>" * (MAX_DEPTH + 1), 1, "nest deeper"),
        ("a\ud800b", 1, "cannot be read as XML"),
    ],
)
def test_what_is_not_well_formed_is_reported_with_its_line_and_the_remedy(text: str, line: int, message: str) -> None:
    error = markup_error(parse_elements, text)
    assert (error.line, error.code) == (line, "instruction_markup_invalid")
    assert message in error.message


@given(st.text())
def test_any_text_parses_or_is_refused_with_a_line(text: str) -> None:
    line = 1
    try:
        parse_elements(text)
    except MarkupError as error:
        line = error.line
    assert 1 <= line <= text.count("\n") + text.count("\r") + 1
