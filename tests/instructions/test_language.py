from __future__ import annotations

import pytest

from guarantee_email_agent.instructions.instruction import Instructions
from guarantee_email_agent.instructions.language import FunctionWords, clear_language, is_too_short

WORDS = FunctionWords.of(
    {
        "en": frozenset({"and", "the", "my", "is"}),
        "de": frozenset({"und", "die", "mein", "ist", "an", "ß", "ü"}),
        "nl": frozenset({"en", "de", "mijn", "is", "an"}),
    }
)


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
    assert clear_language(instructions.lexicon.function_words.score(text)) == language


@pytest.mark.parametrize("text", ["", "SN48213", "ok", "SN-77120 SN-77121", "👍"])
def test_a_text_without_words_is_too_short_to_tell(text: str, instructions: Instructions) -> None:
    scores = instructions.lexicon.function_words.score(text)

    assert clear_language(scores) is None
    assert is_too_short(scores)


def test_a_text_in_two_languages_is_not_clear_although_it_is_long_enough(instructions: Instructions) -> None:
    scores = instructions.lexicon.function_words.score(
        "My dryer is broken and I would like to know what you can do about it. "
        "Mein Trockner ist kaputt und ich möchte wissen, was Sie für mich tun können."
    )

    assert clear_language(scores) is None
    assert not is_too_short(scores)


def test_a_word_of_the_subject_counts_half_and_not_at_all_where_the_text_has_it() -> None:
    assert WORDS.score("", "und")["de"] == 30
    assert WORDS.score("und", "und")["de"] == 60


def test_letters_count_as_words_and_accents_of_words_do_not_matter() -> None:
    assert WORDS.score("MÜSLI, ÜND")["de"] == 120


def test_the_words_that_speak_for_a_language_are_told_the_most_telling_first() -> None:
    assert WORDS.evidence("de", "Ist es mein Föhn, an dem es liegt? Füße", "Und?") == [
        "ist",
        "mein",
        "und",
        "ß",
        "ü",
        "an",
    ]
    assert WORDS.evidence("xx", "und") == []
