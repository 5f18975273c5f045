"""Phrases that a person edits, found in a text in one pass.

A phrase is one line of words. Case and accents do not count. A word that ends in `*` matches any ending. A space
stands for blanks, a hyphen, a dot or a line break, so that `serial no` finds `Serial-No.`; any other sign (the slash of
`s/n`) must stand in the text too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, NamedTuple, TypeVar

Payload = TypeVar("Payload")

_WORD = re.compile(r"[^\W_]+")
_PHRASE_WORD = re.compile(r"([^\W_]+)(\*?)")
_KEY_LENGTH = 3
_MAX_GAP = 4
_MOST_REMEMBERED = 20_000
_LETTERS_WITHOUT_DECOMPOSITION = str.maketrans({"ł": "l", "ø": "o", "đ": "d", "æ": "ae", "œ": "oe", "ı": "i"})


def fold(text: str) -> str:
    """Lower case without accents; keeps the meaning of words, not the length of the text."""
    folded = text.casefold()
    if folded.isascii():
        return folded
    return _fold_accents(folded)


@lru_cache(maxsize=4096)
def _fold_accents(folded: str) -> str:
    from unicodedata import combining, normalize

    decomposed = normalize("NFKD", folded).translate(_LETTERS_WITHOUT_DECOMPOSITION)
    return "".join(letter for letter in decomposed if not combining(letter))


@dataclass(frozen=True, slots=True)
class Words:
    """A text cut into words: `folded[i]` stands at text[starts[i]:ends[i]]."""

    text: str
    folded: Sequence[str]
    starts: Sequence[int]
    ends: Sequence[int]

    def gap_before(self, index: int) -> str:
        """What stands between word `index` and the one before it."""
        return self.text[self.ends[index - 1] if index else 0 : self.starts[index]]


def split_words(text: str) -> Words:
    """Cut `text` into runs of letters and digits."""
    spans = [match.span() for match in _WORD.finditer(text)]
    lowered = text.casefold() if text.isascii() else None
    if lowered is not None:
        folded = [lowered[start:end] for start, end in spans]
    else:
        folded = [fold(text[start:end]) for start, end in spans]
    return Words(text, folded, [start for start, _ in spans], [end for _, end in spans])


class UnusablePhraseError(ValueError):
    """A phrase that cannot be looked for. The message says why."""


class Hit(NamedTuple, Generic[Payload]):
    """A phrase found: words[first:end] carry it."""

    first: int
    end: int
    payload: Payload


@dataclass(frozen=True, slots=True)
class Phrase(Generic[Payload]):
    """A phrase as it is looked for: (word, is only the beginning of one) pairs, and the signs between them."""

    words: tuple[tuple[str, bool], ...]
    signs: tuple[str, ...]
    payload: Payload


class PhraseIndex(Generic[Payload]):
    """Looks for many phrases at once: a word meets only the phrases that begin with it."""

    def __init__(self, phrases: Iterable[Phrase[Payload]]) -> None:
        self._beginning_with: dict[str, tuple[Phrase[Payload], ...]] = {}
        self._by_key: dict[str, list[Phrase[Payload]]] = {}
        for phrase in phrases:
            self._by_key.setdefault(phrase.words[0][0][:_KEY_LENGTH], []).append(phrase)
        for candidates in self._by_key.values():
            # The longest phrase wins where several begin at one word.
            candidates.sort(key=lambda phrase: (-len(phrase.words), -sum(len(word) for word, _ in phrase.words)))

    def find(self, words: Words) -> list[Hit[Payload]]:
        """Every place where a phrase begins, longest first at each word; hits may overlap."""
        hits: list[Hit[Payload]] = []
        known = self._beginning_with
        for index, word in enumerate(words.folded):
            phrases = known.get(word)
            if phrases is None:
                phrases = self._remember(word)
            for phrase in phrases:
                if _rest_matches(phrase, words, index):
                    hits.append(Hit(index, index + len(phrase.words), phrase.payload))
                    break
        return hits

    def _remember(self, word: str) -> tuple[Phrase[Payload], ...]:
        """The phrases whose first word `word` is; kept, since mails share most of their words."""
        phrases = tuple(
            phrase
            for phrase in self._by_key.get(word[:_KEY_LENGTH], ())
            if (word.startswith(phrase.words[0][0]) if phrase.words[0][1] else word == phrase.words[0][0])
        )
        if len(self._beginning_with) >= _MOST_REMEMBERED:
            self._beginning_with.clear()
        self._beginning_with[word] = phrases
        return phrases


def parse_phrase(source: str, payload: Payload) -> Phrase[Payload]:
    """Raises UnusablePhraseError."""
    matches = list(_PHRASE_WORD.finditer(source))
    if not matches:
        raise UnusablePhraseError("has no word in it")
    words: list[tuple[str, bool]] = []
    signs: list[str] = []
    for position, match in enumerate(matches):
        word, is_prefix = fold(match[1]), bool(match[2])
        shortest = 2 if position else _KEY_LENGTH
        if is_prefix and len(word) < shortest:
            raise UnusablePhraseError(f"has a '*' after fewer than {shortest} letters and would match far too much")
        words.append((word, is_prefix))
        if position:
            signs.append(_sign(source[matches[position - 1].end() : match.start()]))
    return Phrase(tuple(words), tuple(signs), payload)


def _rest_matches(phrase: Phrase[Payload], words: Words, index: int) -> bool:
    length = len(phrase.words)
    if length == 1:
        return True
    if index + length > len(words.folded):
        return False
    for offset in range(1, length):
        expected, is_prefix = phrase.words[offset]
        word = words.folded[index + offset]
        if not (word.startswith(expected) if is_prefix else word == expected):
            return False
        gap = words.gap_before(index + offset)
        if len(gap) > _MAX_GAP or gap.count("\n") > 1 or _sign(gap) != phrase.signs[offset - 1]:
            return False
    return True


def _sign(gap: str) -> str:
    """The one sign that counts between two words."""
    return gap.strip(" \t\n-._").replace("’", "'")
