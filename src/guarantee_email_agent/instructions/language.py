"""In which language a text is written, by the small words that nobody can write it without.

A word or letter counts once. One that several languages share counts for each by its share, so that Portuguese is not
taken for Spanish; where the evidence is thin, or two languages have nearly as much, there is no answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from guarantee_email_agent.instructions.phrases import tokenize

_WEIGHT = 60
_LEAST = 80
"""More than one word that only one language has."""


@dataclass(frozen=True, slots=True)
class FunctionWords:
    """The folded words and the letters of each language, and in how many languages each stands."""

    by_language: Mapping[str, frozenset[str]]
    shared_by: Mapping[str, int]

    @classmethod
    def of(cls, by_language: Mapping[str, frozenset[str]]) -> Self:
        """by_language: the folded words and the letters in lower case."""
        return cls(by_language, Counter(sign for signs in by_language.values() for sign in signs))

    def score(self, text: str, subject: str = "") -> dict[str, int]:
        """The evidence for each language. A word that stands in the subject alone counts half."""
        written = _signs_of(text)
        in_subject = _signs_of(subject) - written
        return {
            language: sum(_WEIGHT // self.shared_by[sign] for sign in written & signs)
            + sum(_WEIGHT // self.shared_by[sign] // 2 for sign in in_subject & signs)
            for language, signs in self.by_language.items()
        }

    def evidence(self, language: str, text: str, subject: str = "") -> list[str]:
        """The words and letters of a text that speak for a language, those of the fewest languages first."""
        signs = (_signs_of(text) | _signs_of(subject)) & self.by_language.get(language, frozenset())
        return sorted(signs, key=lambda sign: (self.shared_by[sign], sign))


def clear_language(scores: Mapping[str, int]) -> str | None:
    """The language with clearly more evidence than any other; None for a text too short to tell, or mixed."""
    (best, most), (_, next_most) = sorted([*scores.items(), ("", 0), ("", 0)], key=lambda each: -each[1])[:2]
    return best if most >= _LEAST and 2 * most >= 3 * next_most else None


def is_too_short(scores: Mapping[str, int]) -> bool:
    """Whether no language has enough evidence; a text that is long enough and not clear is mixed."""
    return max(scores.values(), default=0) < _LEAST


def _signs_of(text: str) -> frozenset[str]:
    words = tokenize(text).folded
    return (
        frozenset(words) if text.isascii() else frozenset((*words, *(sign for sign in text.lower() if sign > "\x7f")))
    )
