from __future__ import annotations

import pytest

from guarantee_email_agent.instructions.reply_languages import language_problems
from guarantee_email_agent.instructions.reply_markup import parse_templates

ENGLISH = """<reply lang="en">
Hello,
<choose>
<sentence id="thanks">Thank you.</sentence>
<sentence id="sorry" use="a fault">We are sorry.</sentence>
</choose>
<if coverage="full">Your device is fully covered until {expiration_date}.</if>
Ticket: {ticket_number}
<optional id="keep" use="asks where to send it">Please keep it.</optional>
</reply>
"""
GERMAN = """<reply lang="de">
Guten Tag,
<choose>
<sentence id="thanks">vielen Dank.</sentence>
<sentence id="sorry" use="a fault">es tut uns leid.</sentence>
</choose>
<if coverage="full">Ihr Gerät ist bis {expiration_date} vollständig abgedeckt.</if>
Ticket: {ticket_number}
<optional id="keep" use="asks where to send it">Bitte behalten Sie es.</optional>
</reply>
"""


def problems(german: str, english: str = ENGLISH) -> list[tuple[int, str]]:
    return list(language_problems(parse_templates(english), parse_templates(german)))


def test_replies_that_hold_the_same_are_equal_whatever_their_words_and_order() -> None:
    moved = GERMAN.replace("Ticket: {ticket_number}\n", "").replace("Guten Tag,", "Guten Tag, Ticket {ticket_number}:")

    assert problems(GERMAN) == []
    assert problems(moved) == []


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("Ticket: {ticket_number}\n", "", 1, "the reply in 'de' lacks {ticket_number}, which 'en' has"),
        ('<if coverage="full">', '<if coverage="known">', 1, 'lacks <if coverage="full">'),
        (" bis {expiration_date}", "", 1, 'lacks {expiration_date} in <if coverage="full">'),
        ('id="keep"', 'id="behalten"', 1, "lacks the <optional> 'keep'"),
        ('id="sorry"', 'id="leid"', 1, "lacks the <sentence> 'sorry' beside 'thanks'"),
        ('id="keep" use', 'id="keep" coverage="full" use', 1, "lacks the <optional> 'keep'"),
    ],
)
def test_what_a_language_lacks_is_named(old: str, new: str, line: int, words: str) -> None:
    assert GERMAN.count(old) == 1
    found = problems(GERMAN.replace(old, new))

    assert found[0][0] == line
    assert words in found[0][1]


def test_what_only_the_translation_has_is_named_with_its_line() -> None:
    found = problems(GERMAN.replace("Guten Tag,", "Guten Tag,\nNummer {serial_number}"))

    assert found == [(3, "the reply in 'de' has {serial_number}, which 'en' lacks. Add it there, or remove it here")]


def test_a_reply_for_a_status_that_one_language_lacks_is_named() -> None:
    english = '<reply lang="en" warranty_status="expired">A</reply>\n<reply lang="en" warranty_status="valid">B</reply>'
    german = '<reply lang="de" warranty_status="valid">B</reply>\n<reply lang="de" warranty_status="known">C</reply>'

    assert problems(german, english) == [
        (1, "has no <reply warranty_status=\"expired\"> in 'de', which there is in 'en'. Add it"),
        (2, "has <reply warranty_status=\"known\"> in 'de' but not in 'en'. Add it there, or remove it here"),
    ]
