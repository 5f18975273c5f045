from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from guarantee_email_agent.instructions.lexicon import LEXICON_ELEMENTS, Lexicon, parse_lexicon
from guarantee_email_agent.instructions.markup import MarkupError
from guarantee_email_agent.instructions.phrases import tokenize

BODY = (Path(__file__).parents[2] / "instructions" / "main.md").read_text(encoding="utf-8").split("\n---\n", 1)[1]


def read(body: str) -> Lexicon:
    return parse_lexicon(body)


def with_content(name: str, content: str) -> str:
    """The shipped body with other content in one element, and the element at the very top."""
    rest = re.sub(rf"<{name}>.*?</{name}>", "", BODY, flags=re.DOTALL)
    return f"<{name}>{content}</{name}>\n{rest}"


@pytest.fixture
def error_of() -> Callable[[str], MarkupError]:
    def error(body: str) -> MarkupError:
        with pytest.raises(MarkupError) as caught:
            read(body)
        return caught.value

    return error


Error = Callable[[str], MarkupError]


def test_the_shipped_rules_can_be_read() -> None:
    rules = read(BODY)

    assert rules.labelled.fullmatch("HT20491")
    assert rules.never.fullmatch("2024-05-17")
    assert [hit.payload for hit in rules.labels.find(tokenize("serial number"))] == ["serial"]
    assert "no" in rules.denials


@pytest.mark.parametrize("name", LEXICON_ELEMENTS)
def test_every_element_is_required(name: str, error_of: Error) -> None:
    body = re.sub(rf"<{name}>.*?</{name}>", "", BODY, flags=re.DOTALL)

    assert error_of(body).message.startswith(f"<{name}> is missing. Add the element")


@pytest.mark.parametrize("name", LEXICON_ELEMENTS)
def test_no_element_may_be_empty(name: str, error_of: Error) -> None:
    error = error_of(with_content(name, "\n \n"))

    assert (error.line, error.message) == (1, f"<{name}> is empty. Write at least one entry")


def test_an_element_inside_a_list_is_refused(error_of: Error) -> None:
    error = error_of(with_content("denials", "\nno\n<b>not</b>\n"))

    assert error.line == 3
    assert error.message.startswith("<b> inside <denials>")


@pytest.mark.parametrize(
    "line", ["warranty", ": warranty", "x: warranty", "0: warranty", "10: warranty", "-1: warranty"]
)
def test_a_line_without_a_usable_weight_is_told_with_its_line(line: str, error_of: Error) -> None:
    error = error_of(with_content("about-warranty", f"\n3: garanti*\n{line}\n"))

    assert error.line == 3
    assert "Begin the line with one from 1 to 9" in error.message
    assert error.code == "instruction_rule_invalid"


def test_a_bad_pattern_is_told_with_its_line(error_of: Error) -> None:
    error = error_of(with_content("never-serial", "\n[0-9]{4}\n[A-Z+\n"))

    assert error.line == 3
    assert error.message.startswith("pattern '[A-Z+' does not compile")


def test_a_pattern_that_may_hang_is_told_with_its_line(error_of: Error) -> None:
    error = error_of(with_content("labelled-serial", "\n\n([A-Z]{1,9}){1,9}\n"))

    assert error.line == 3
    assert "may hang" in error.message


@pytest.mark.parametrize(("name", "line"), [("serial-labels", "serial, a*"), ("about-other", "3: job, a*")])
def test_a_phrase_that_matches_too_much_is_told_with_its_line(name: str, line: str, error_of: Error) -> None:
    error = error_of(with_content(name, f"\n{line}\n"))

    assert error.line == 2
    assert error.message.startswith("phrase 'a*' has a '*'")


def test_several_words_where_single_ones_belong_are_refused(error_of: Error) -> None:
    error = error_of(with_content("denials", "\nno, not at all\n"))

    assert error.line == 2
    assert error.message == "'not at all' is not a single word. Only single words may stand in <denials>"


def test_lines_of_a_pattern_are_alternatives() -> None:
    rules = read(with_content("unlabelled-serial", "\nQ[0-9]{3}\nZ|Y[0-9]\n"))

    assert rules.unlabelled.fullmatch("Q123")
    assert rules.unlabelled.fullmatch("z")
    assert not rules.unlabelled.fullmatch("Q12")


def test_a_phrase_carries_its_topic_and_weight() -> None:
    rules = read(with_content("about-warranty", "\n7: wobbulator*\n"))
    (hit,) = rules.topics.find(tokenize("my wobbulators"))

    assert (hit.payload.topic, hit.payload.weight) == ("warranty", 7)
