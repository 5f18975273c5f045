from __future__ import annotations

import re

import pytest
from shipped_instructions import SHIPPED, markup_error

from guarantee_email_agent.instructions.lexicon import LEXICON_ELEMENTS, parse_lexicon
from guarantee_email_agent.instructions.phrases import tokenize

BODY = (SHIPPED / "main.md").read_text(encoding="utf-8").split("\n---\n", 1)[1]


def with_content(name: str, content: str) -> str:
    """The shipped body with other content in one element, and the element at the very top."""
    rest = re.sub(rf"<{name}>.*?</{name}>", "", BODY, flags=re.DOTALL)
    return f"<{name}>{content}</{name}>\n{rest}"


def test_the_shipped_lexicon_can_be_read() -> None:
    lexicon = parse_lexicon(BODY)

    assert lexicon.labelled.fullmatch("HT20491")
    assert lexicon.never.fullmatch("2024-05-17")
    assert [hit.payload for hit in lexicon.labels.find(tokenize("serial number"))] == ["serial"]
    assert "no" in lexicon.denials


@pytest.mark.parametrize("name", LEXICON_ELEMENTS)
def test_every_element_is_required(name: str) -> None:
    body = re.sub(rf"<{name}>.*?</{name}>", "", BODY, flags=re.DOTALL)
    assert markup_error(parse_lexicon, body).message.startswith(f"<{name}> is missing. Add the element")


@pytest.mark.parametrize("name", LEXICON_ELEMENTS)
def test_no_element_may_be_empty(name: str) -> None:
    error = markup_error(parse_lexicon, with_content(name, "\n \n"))
    assert (error.line, error.message) == (1, f"<{name}> is empty. Write at least one entry")


@pytest.mark.parametrize(
    ("name", "content", "line", "message"),
    [
        ("denials", "\nno\n<b>not</b>\n", 3, "<b> inside <denials>"),
        *(
            ("about-warranty", f"\n3: garanti*\n{line}\n", 3, "has no weight. Begin the line with one from 1 to 9")
            for line in ("warranty", ": warranty", "x: warranty", "0: warranty", "10: warranty", "-1: warranty")
        ),
        ("never-serial", "\n[0-9]{4}\n[A-Z+\n", 3, "pattern '[A-Z+' does not compile"),
        ("labelled-serial", "\n\n([A-Z]{1,9}){1,9}\n", 3, "may hang"),
        ("serial-labels", "\nserial, a*\n", 2, "phrase 'a*' has a '*'"),
        ("about-other", "\n3: job, a*\n", 2, "phrase 'a*' has a '*'"),
        (
            "denials",
            "\nno, not at all\n",
            2,
            "'not at all' is not a single word. Only single words may stand in <denials>",
        ),
    ],
)
def test_what_cannot_be_used_is_reported_with_its_line(name: str, content: str, line: int, message: str) -> None:
    error = markup_error(parse_lexicon, with_content(name, content))
    assert (error.line, error.code) == (line, "instruction_rule_invalid")
    assert message in error.message


def test_lines_of_a_pattern_are_alternatives() -> None:
    lexicon = parse_lexicon(with_content("unlabelled-serial", "\nQ[0-9]{3}\nZ|Y[0-9]\n"))
    assert lexicon.unlabelled.fullmatch("Q123")
    assert lexicon.unlabelled.fullmatch("z")
    assert not lexicon.unlabelled.fullmatch("Q12")


def test_a_phrase_carries_its_topic_and_weight() -> None:
    lexicon = parse_lexicon(with_content("about-warranty", "\n7: wobbulator*\n"))
    (hit,) = lexicon.topics.find(tokenize("my wobbulators"))
    assert (hit.payload.topic, hit.payload.weight) == ("warranty", 7)
