import re

import pytest
from shipped_instructions import SHIPPED

from guarantee_email_agent.instructions.lexicon import (
    REQUIRED_ELEMENTS,
    Lexicon,
    load_lexicon,
    parse_lexicon,
    read_lexicon,
)
from guarantee_email_agent.instructions.phrases import tokenize
from guarantee_email_agent.reading.numbers import SERIAL_NUMBER, Tiers, read_numbers
from guarantee_email_agent.utils.errors import InstructionError

FILES = read_lexicon(SHIPPED / "lexicon")


def with_file(text: str) -> Lexicon:
    """The shipped lexicon with one file more."""
    return parse_lexicon((*FILES, ("lexicon/xx.md", text)))


def problems(*files: tuple[str, str]) -> list[str]:
    with pytest.raises(InstructionError) as caught:
        parse_lexicon(files)
    return caught.value.message.splitlines()


def without_element(name: str) -> tuple[tuple[str, str], ...]:
    return tuple((path, re.sub(rf"<{name}\b.*?</{name}>", "", text, flags=re.DOTALL)) for path, text in FILES)


def test_a_list_of_an_earlier_version_is_not_read() -> None:
    parse_lexicon((*FILES, ("lexicon/old.md", "<function-words>\nund\n</function-words>")))


@pytest.mark.slow
@pytest.mark.parametrize("name", REQUIRED_ELEMENTS)
def test_every_element_stands_in_one_file_at_least(name: str) -> None:
    folder = FILES[0][0].rpartition("/")[0]
    (problem,) = problems(*without_element(name))
    assert problem.startswith(f"{folder}: no file holds <{name}>. Add it to one; docs/instructions.md shows")


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("<denials>\n \n</denials>", 1, "<denials> is empty. Write at least one entry, or remove it"),
        ("# Elvish\n<denial>\nno\n</denial>", 2, "<denial> is unknown – did you mean 'denials'?"),
        ("<denials>\nno\n<b>not</b>\n</denials>", 3, "<b> inside <denials>"),
        ("<denials>\nno\n</denials>\n<denials>\nnot\n</denials>", 4, "<denials> stands twice in this file"),
        ('<denials topic="x">\nno\n</denials>', 1, "<denials> has a wrong attribute, or lacks one. Write <denials>"),
        ("<about>\n3: x\n</about>", 1, "<about> has a wrong attribute, or lacks one. Write <about topic="),
        *(
            (
                f'<about topic="a">\n3: garanti*\n{line}\n</about>',
                3,
                "has no weight. Begin the line with one from 1 to 9",
            )
            for line in ("warranty", ": warranty", "x: warranty", "0: warranty", "10: warranty", "-1: warranty")
        ),
        ("<never-serial>\n[0-9]{4}\n[A-Z+\n</never-serial>", 3, "pattern '[A-Z+' does not compile"),
        ("<never-serial>\n[0-9]{4}\n(?i)A\n</never-serial>", 3, "pattern '(?i)A' does not compile"),
        ("<serial-labels>\nserial, a*\n</serial-labels>", 2, "phrase 'a*' has a '*'"),
        ("<denials>\nno, not at all\n</denials>", 2, "'not at all' is not a single word. Only single words may stand"),
    ],
)
def test_what_cannot_be_used_is_reported_with_its_file_and_line(text: str, line: int, message: str) -> None:
    (problem,) = problems(*FILES, ("lexicon/xx.md", text))
    assert problem.startswith(f"lexicon/xx.md:{line}: ")
    assert message in problem


def test_lines_of_a_pattern_are_alternatives() -> None:
    lexicon = with_file("<unlabelled-serial>\nQ[0-9]{3}\nZ|Y[0-9]\n</unlabelled-serial>")
    assert lexicon.unlabelled.fullmatch("Q123")
    assert lexicon.unlabelled.fullmatch("z")
    assert not lexicon.unlabelled.fullmatch("Q12")


def test_a_phrase_of_an_added_topic_counts_before_the_same_of_a_shipped_one() -> None:
    lexicon = with_file('<about topic="spare-parts">\n7: spare part*\n</about>')
    (hit,) = lexicon.topics.find(tokenize("a spare part"))
    assert hit.payload.topic == "spare-parts"


def test_an_unchanged_lexicon_is_parsed_once() -> None:
    assert load_lexicon(SHIPPED / "lexicon") is load_lexicon(SHIPPED / "lexicon")


def test_a_number_with_the_label_of_a_look_up_is_no_serial_number() -> None:
    answer = Tiers("Wagon mark XK-48213.", "", "")
    assert read_numbers(answer, SERIAL_NUMBER, parse_lexicon(FILES), asked=True).numbers == ("XK-48213",)
    assert read_numbers(answer, SERIAL_NUMBER, parse_lexicon(FILES, ("wagon mark",)), asked=True).numbers == ()


@pytest.mark.parametrize("label", ["Sorozatszám", "Sarjanumero"])
def test_a_label_of_a_language_without_a_file_needs_no_file_of_another(label: str) -> None:
    english = parse_lexicon(tuple(each for each in FILES if each[0].endswith(("/any.md", "/en.md"))))

    assert read_numbers(Tiers(f"{label} 4711-A.", "", ""), SERIAL_NUMBER, english).numbers == ("4711-A",)
