"""In which language a text is written, by the small words that nobody can write it without.

A word or letter counts once. One that several languages share counts for each by its share, so that Portuguese is not
taken for Spanish; where the evidence is thin, or two languages have nearly as much, there is no answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from guarantee_email_agent.instructions.markup import MarkupError, parse_elements
from guarantee_email_agent.instructions.phrases import fold, tokenize
from guarantee_email_agent.instructions.reply_markup import LANGUAGE_ATTRIBUTE, LANGUAGE_CODE

FUNCTION_WORDS_ELEMENT = "function-words"
_LETTERS_ATTRIBUTE = "letters"
_WEIGHT = 60
_LEAST = 80
"""More than one word that only one language has."""


@dataclass(frozen=True, slots=True)
class FunctionWords:
    """The folded words and the letters of each language, and in how many languages each stands."""

    by_language: Mapping[str, frozenset[str]]
    shared_by: Mapping[str, int]

    def score(self, text: str, subject: str = "") -> dict[str, int]:
        """The evidence for each language. A word that stands in the subject alone counts half."""
        written = _signs_of(text)
        in_subject = _signs_of(subject) - written
        return {
            language: sum(_WEIGHT // self.shared_by[sign] for sign in written & signs)
            + sum(_WEIGHT // self.shared_by[sign] // 2 for sign in in_subject & signs)
            for language, signs in self.by_language.items()
        }


NO_FUNCTION_WORDS = FunctionWords({}, {})


def clear_language(scores: Mapping[str, int]) -> str | None:
    """The language with clearly more evidence than any other; None for a text too short to tell, or mixed."""
    (best, most), (_, next_most) = sorted([*scores.items(), ("", 0), ("", 0)], key=lambda each: -each[1])[:2]
    return best if most >= _LEAST and 2 * most >= 3 * next_most else None


def is_too_short(scores: Mapping[str, int]) -> bool:
    """Whether no language has enough evidence; a text that is long enough and not clear is mixed."""
    return max(scores.values(), default=0) < _LEAST


@lru_cache(maxsize=8)
def parse_function_words(text: str) -> FunctionWords:
    """The `<function-words lang="…">` elements of a text; pure, hence cached. Raises MarkupError, with the line."""
    by_language: dict[str, frozenset[str]] = {}
    for element in parse_elements(text):
        language = element.attributes.get(LANGUAGE_ATTRIBUTE, "")
        if element.name != FUNCTION_WORDS_ELEMENT:
            raise _error(element.line, f"<{element.name}> is not known. What may stand here is <function-words>")
        if not LANGUAGE_CODE.fullmatch(language):
            raise _error(element.line, '<function-words> needs a language. Write its code, such as lang="de"')
        if unknown := set(element.attributes) - {LANGUAGE_ATTRIBUTE, _LETTERS_ATTRIBUTE}:
            raise _error(element.line, f"<function-words {min(unknown)}=…> is not known. It takes lang and letters")
        if language in by_language:
            raise _error(element.line, f"the words of '{language}' stand twice. Leave one of the elements")
        by_language[language] = frozenset((*_words_of(element.text, element.line), *_letters_of(element.attributes)))
        if not by_language[language]:
            raise _error(element.line, f"<function-words> of '{language}' is empty. Write some words into it")
    return FunctionWords(by_language, Counter(sign for signs in by_language.values() for sign in signs))


def _words_of(text: str, line: int) -> list[str]:
    words = []
    for offset, of_line in enumerate(text.split("\n")):
        for entry in filter(None, map(str.strip, of_line.split(","))):
            if not entry.isalpha():
                raise _error(line + offset, f"'{entry}' is not a single word. Put commas between words")
            words.append(fold(entry))
    return words


def _letters_of(attributes: Mapping[str, str]) -> list[str]:
    return attributes.get(_LETTERS_ATTRIBUTE, "").casefold().split()


def _signs_of(text: str) -> frozenset[str]:
    words = tokenize(text).folded
    return (
        frozenset(words)
        if text.isascii()
        else frozenset((*words, *(sign for sign in text.casefold() if sign > "\x7f")))
    )


def _error(line: int, message: str) -> MarkupError:
    return MarkupError(message, "instruction_language_invalid", {"line": line})
