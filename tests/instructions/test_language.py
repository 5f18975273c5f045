from __future__ import annotations

import pytest
from shipped_instructions import markup_error

from guarantee_email_agent.instructions.instruction import Instructions
from guarantee_email_agent.instructions.language import clear_language, is_too_short, parse_function_words

WORDS = """Some words on the file.

<function-words lang="en">and, the, my, is</function-words>
<function-words lang="de" letters="ß ü">und, die, mein, ist, an</function-words>
<function-words lang="nl">en, de, mijn, is, an</function-words>
"""


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("My washing machine has stopped and I do not know why.", "en"),
        ("Meine Waschmaschine schleudert nicht mehr, was kann ich tun?", "de"),
        ("Moja pralka nie wiruje, co mogę z tym zrobić?", "pl"),
        ("Mon lave-linge n'essore plus, que puis-je faire ?", "fr"),
        ("Mi lavadora ya no centrifuga, ¿qué puedo hacer?", "es"),
        ("A minha máquina não centrifuga, o que posso fazer?", "pt"),
        ("La mia lavatrice non centrifuga più, cosa posso fare?", "it"),
    ],
)
def test_a_sentence_tells_its_language(text: str, language: str, instructions: Instructions) -> None:
    assert clear_language(instructions.function_words.score(text)) == language


@pytest.mark.parametrize("text", ["", "SN48213", "ok", "SN-77120 SN-77121", "👍"])
def test_a_text_without_words_is_too_short_to_tell(text: str, instructions: Instructions) -> None:
    scores = instructions.function_words.score(text)

    assert clear_language(scores) is None
    assert is_too_short(scores)


def test_a_text_in_two_languages_is_not_clear_although_it_is_long_enough(instructions: Instructions) -> None:
    scores = instructions.function_words.score(
        "My dryer is broken and I would like to know what you can do about it. "
        "Mein Trockner ist kaputt und ich möchte wissen, was Sie für mich tun können."
    )

    assert clear_language(scores) is None
    assert not is_too_short(scores)


def test_a_word_that_languages_share_says_less_than_one_that_only_one_has() -> None:
    scores = parse_function_words(WORDS).score("is an und")

    assert scores == {"en": 30, "de": 90, "nl": 60}


def test_a_word_counts_once_however_often_it_stands_there() -> None:
    words = parse_function_words(WORDS)

    assert words.score("und und und") == words.score("und")


def test_a_word_of_the_subject_counts_half_and_not_at_all_where_the_text_has_it() -> None:
    words = parse_function_words(WORDS)

    assert words.score("", "und")["de"] == 30
    assert words.score("und", "und")["de"] == 60


def test_letters_count_as_words_and_accents_of_words_do_not_matter() -> None:
    assert parse_function_words(WORDS).score("MÜSLI, ÜND")["de"] == 120


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("\n<function-words>und</function-words>", 2, "needs a language"),
        ('<function-words lang="German">und</function-words>', 1, "needs a language"),
        ('<function-words lang="de" weight="2">und</function-words>', 1, "weight"),
        ('<function-words lang="de">und,\nim Haus</function-words>', 2, "'im Haus' is not a single word"),
        ('<function-words lang="de"> </function-words>', 1, "is empty"),
        ('<function-words lang="de">und</function-words>\n<function-words lang="de">ist</function-words>', 2, "twice"),
        ('<reply lang="de">Guten Tag</reply>', 1, "<reply> is not known"),
    ],
)
def test_words_that_cannot_be_used_are_refused_with_their_line(text: str, line: int, words: str) -> None:
    error = markup_error(parse_function_words, text)

    assert error.line == line
    assert words in error.message
