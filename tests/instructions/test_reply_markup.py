import pytest
from shipped_instructions import markup_error

from guarantee_email_agent.instructions.reply_markup import parse_templates


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        *(
            (f"<reply>{text}</reply>", 1, "a single '{' or '}' stands in the reply")
            for text in ("a { b", "a } b", "{serial_number", "serial_number}", "{{serial_number}}")
        ),
        ("<reply></reply>", 1, "<reply> is empty"),
        ('<reply>a</reply>\n<sentence id="a">b</sentence>', 2, "<sentence> stands outside of <reply>, so that nobody"),
        (
            "<reply>\na\n<b>c</b></reply>",
            3,
            "<b> cannot stand inside <reply>. What may is: text, <if>, <choose>, <optional>, <sentence>",
        ),
        ("<reply><if>a</if></reply>", 1, "<if> has no condition"),
        ('<reply><if coverage=" , ">a</if></reply>', 1, "has no value"),
        ("<reply>a\n<optional>b</optional></reply>", 2, "<optional> needs an id of up to 40 lower-case letters"),
        (f'<reply><optional id="{"x" * 41}" use="u">b</optional></reply>', 1, "<optional> needs an id"),
        ('<reply><optional id="a">b</optional></reply>', 1, 'id="a"> does not say when it fits. Add use="'),
        ('<reply>\n<optional id="a" use="u"> </optional></reply>', 2, '<optional id="a"> is empty'),
        ('<reply><optional id="a" use="u" hints="a, f*">b</optional></reply>', 1, "hint 'f*' has a '*' after fewer"),
        (
            '<reply><optional id="a" use="u">b</optional>\n<optional id="a" use="u">c</optional></reply>',
            2,
            "the id 'a' stands twice in this <reply>",
        ),
        (
            '<reply><optional id="a" use="u">\n<optional id="b" use="u">b</optional></optional></reply>',
            2,
            "<optional> cannot stand inside <optional>. What may is: text, <if>",
        ),
        ('<reply>\n<sentence id="a" hints="c">b</sentence></reply>', 2, "<sentence> has 'hints' but stands outside"),
        ('<reply><sentence id="a">b</sentence><optional id="a" use="c">d</optional></reply>', 1, "stands twice"),
        ("<reply>\n<choose>\n</choose></reply>", 2, "<choose> needs at least two <sentence>s"),
        ('<reply><choose>\n\nor <sentence id="a">b</sentence></choose></reply>', 3, "text stands in <choose> outside"),
        ("<reply><choose>\n<if coverage='full'>b</if></choose></reply>", 2, "<if> cannot stand inside <choose>"),
        ('<reply><choose coverage="full"></choose></reply>', 1, "<choose> takes no attributes"),
        (
            '<reply><choose><sentence id="a">b</sentence>\n<sentence id="b">b</sentence></choose></reply>',
            2,
            '<sentence id="b"> does not say when it fits',
        ),
    ],
)
def test_a_template_that_cannot_be_used_is_reported_with_its_line(text: str, line: int, message: str) -> None:
    error = markup_error(parse_templates, text)
    assert error.line == line
    assert message in error.message
