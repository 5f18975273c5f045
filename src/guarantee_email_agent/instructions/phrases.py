"""Find the phrases that a person edits in a text, in one pass.

A phrase is one line of words. Case and accents do not count. A word that ends in `*` matches any ending, and a single
word that begins with `*` any beginning, as in `*maschine`. A space stands for blanks, a hyphen, a dot or a line break,
so that `serial no` finds `Serial-No.`; any other sign (the slash of `s/n`) must stand in the text too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate, compress, count, repeat
from operator import contains, itemgetter
from typing import Any, Generic, NamedTuple, TypeVar

Payload = TypeVar("Payload")

_WORD = re.compile(r"([^\W_]+)")
_SENTENCE_END = re.compile(r"[?!;]|[.](?=\s)|\n[ \t]*\n")
_LETTER = "[a-z0-9ß-öø-ž]"  # small ones of the Latin scripts; folded, each is one letter or two
_PLAIN_PHRASE = re.compile(rf"{_LETTER}{{3,40}}\*?(?: (?:{_LETTER}{{2,40}}\*|{_LETTER}{{1,40}}))*")
_PLAIN_PHRASES = re.compile(rf"{_PLAIN_PHRASE.pattern}(?:, {_PLAIN_PHRASE.pattern})*")
_PHRASE_WORD = re.compile(r"([^\W_]+)(\*?)")
_IDLE_STAR = re.compile(r"(?<![^\W_])\*|\*(?=[^\W_])")
_KEY_LENGTH = 3
_NEXT_KEY_LENGTH = 2
_MIN_ENDING = 4
_MAX_GAP = 4
_MIN_WRAPPED = 50  # letters; mail programs break lines at 60 to 78
_MAX_CACHED_WORDS = 20_000
_LETTERS_WITHOUT_DECOMPOSITION = {"ł": "l", "ø": "o", "đ": "d", "æ": "ae", "œ": "oe", "ı": "i"}


def fold(text: str) -> str:
    """Lower case without accents; keeps the meaning of words, not the length of the text."""
    folded = text.casefold()
    return folded if folded.isascii() else _fold_accents(folded)


@lru_cache(maxsize=4096)
def _fold_accents(folded: str) -> str:
    from unicodedata import combining, normalize

    text = normalize("NFKD", folded)
    # Each character once: a text has some thirty different ones, and translate() takes them one by one.
    for letter in set(text):
        if letter > "\x7f" and (combining(letter) or letter in _LETTERS_WITHOUT_DECOMPOSITION):
            text = text.replace(letter, _LETTERS_WITHOUT_DECOMPOSITION.get(letter, ""))
    return text


@dataclass(frozen=True, slots=True, eq=False)
class TokenizedText:
    """A text and its words: text[starts[i]:ends[i]] is word i, `folded[i]` the same without case and accents.

    gaps: what stands before each word, behind the one before. starts_sentence: whether a sentence or a paragraph ends
    there.
    """

    text: str
    folded: Sequence[str]
    starts: Sequence[int]
    ends: Sequence[int]
    gaps: Sequence[str]
    starts_sentence: Sequence[bool]
    separators: tuple[str | None, ...]
    """What tells one gap from another within a phrase, None for one that no phrase goes across."""
    meanings: dict[MeaningMatcher, _Meanings] = field(default_factory=dict, init=False, repr=False)

    def starts_line(self, index: int) -> bool:
        """Whether word `index` begins a line that somebody began: a mail program breaks only what is long."""
        break_at = self.text.rfind("\n", self.ends[index - 1] if index else 0, self.starts[index])
        return break_at >= 0 and break_at - self.text.rfind("\n", 0, break_at) <= _MIN_WRAPPED

    def line_starts(self) -> Iterator[int]:
        """The words before which a line ends."""
        return compress(count(), map(contains, self.gaps, repeat("\n")))

    def text_of(self, first: int, end: int) -> str:
        """words[first:end] as they stand in the text."""
        return self.text[self.starts[first] : self.ends[end - 1]]

    def text_between(self, end: int, start: int) -> str:
        """The text from the end of words[:end] to the start of word `start`."""
        return self.text[self.ends[end - 1] if end else 0 : self.starts[start]]


@lru_cache(maxsize=8)
def tokenize(text: str) -> TokenizedText:
    """Cut `text` into runs of letters and digits. Pure, hence cached: several steps read the same mail."""
    pieces = _WORD.split(text)  # gaps and words in turn, a gap last
    places = list(accumulate(map(len, pieces)))
    starts, ends, gaps = places[:-1:2], places[1::2], pieces[:-1:2]
    folded = list(map(str.casefold if text.isascii() else fold, pieces[1::2]))
    starts_sentence, separators = list(map(_ends_sentence, gaps)), tuple(map(_separator_in, gaps))
    return TokenizedText(text, folded, starts, ends, gaps, starts_sentence, separators)


class InvalidPhraseError(ValueError):
    """A phrase that cannot be matched. The message says why."""


class PhraseMatch(NamedTuple, Generic[Payload]):
    """A phrase found at words[first:end]."""

    first: int
    end: int
    payload: Payload


class PhrasePattern(NamedTuple, Generic[Payload]):
    """A phrase to look for: (word, is a prefix) pairs, and the separators between them."""

    words: tuple[tuple[str, bool], ...]
    separators: tuple[str, ...]
    payload: Payload
    is_ending: bool = False
    """Whether the phrase, a single word then, may stand at the end of a longer word."""


Phrase = PhrasePattern[Payload] | tuple[str, Payload]
"""One to look for, or a plain one as `read_phrase` leaves it: folded, with what it stands for."""


class _Candidates(NamedTuple, Generic[Payload]):
    """Phrases that begin with one word, longest first: those of this word alone, and the others by their next word.

    by_next_word: all that go on with it. by_start: those that go on with any word of this start, where no other does.
    """

    single: Sequence[PhrasePattern[Payload]]
    by_next_word: Mapping[str, Sequence[PhrasePattern[Payload]]]
    by_start: Mapping[str, Sequence[PhrasePattern[Payload]]]
    is_known: bool = False
    """For a MeaningMatcher, whether the word alone is."""


class PhraseMatcher(dict[str, _Candidates[Payload] | None], Generic[Payload]):
    """Looks for many phrases at once: a word is compared with the phrases that may begin with it.

    What it holds are the candidates of the words that it met; what is missing is looked up, which fills it in.
    """

    __hash__ = object.__hash__  # type: ignore[assignment]  # one of its own, not what it holds
    __eq__ = object.__eq__

    def __init__(self, phrases: Iterable[Phrase[Payload]]) -> None:
        self._by_key: dict[str, list[Phrase[Payload]]] = {}
        self._by_ending: dict[str, list[PhrasePattern[Payload]]] = {}
        for phrase in phrases:
            if not isinstance(phrase, PhrasePattern):
                self._by_key.setdefault(phrase[0][:_KEY_LENGTH], []).append(phrase)
            elif phrase.is_ending:
                self._by_ending.setdefault(phrase.words[0][0][-_MIN_ENDING:], []).append(phrase)
            else:
                self._by_key.setdefault(phrase.words[0][0][:_KEY_LENGTH], []).append(phrase)

    def find(self, words: TokenizedText, *, shorter: bool = False) -> list[PhraseMatch[Payload]]:
        """Every place where a phrase begins, in order; matches may overlap.

        shorter: where several begin at one word, all of them and not the longest alone, longest first.
        """
        return [
            PhraseMatch(first, first + len(phrase.words), phrase.payload)
            for first, _, phrases in self._beginning(words)
            for phrase in (phrases if shorter else phrases[:1])
        ]

    def _beginning(
        self, words: TokenizedText
    ) -> Iterator[tuple[int, _Candidates[Payload], Sequence[PhrasePattern[Payload]]]]:
        """Each word that a phrase may begin with, and those that do, longest first."""
        found = list(map(self.__getitem__, words.folded))
        following = (*words.folded[1:], "")
        for first in compress(count(), found):
            candidates = found[first]
            assert candidates is not None
            phrases, by_next_word, by_start, _ = candidates
            if by_next_word or by_start:
                word = following[first]
                if fitting := by_next_word.get(word) or by_start.get(word[:_NEXT_KEY_LENGTH]):
                    phrases = [*[phrase for phrase in fitting if _rest_matches(phrase, words, first)], *phrases]
            yield first, candidates, phrases

    def __missing__(self, word: str) -> _Candidates[Payload] | None:
        """The phrases that may begin with `word`, longest first; kept, since mails share most of their words."""
        key, endings = word[:_KEY_LENGTH], self._by_ending.get(word[-_MIN_ENDING:], ())
        if len(self) >= _MAX_CACHED_WORDS:
            self.clear()
        phrases: list[PhrasePattern[Payload]] = []
        if of_key := self._by_key.get(key):
            # A plain phrase is cut when a text holds a word of its key for the first time.
            of_key[:] = cut = [each if isinstance(each, PhrasePattern) else _cut(*each) for each in of_key]
            for phrase in cut:
                text, is_prefix = phrase.words[0]
                if word == text or (is_prefix and word.startswith(text)):
                    phrases.append(phrase)
        elif not endings:
            self[word] = None
            return None
        phrases += [each for each in endings if word.endswith(each.words[0][0])]
        if len(phrases) > 1:
            phrases.sort(key=_length, reverse=True)
        longer = [phrase for phrase in phrases if len(phrase.words) > 1]
        by_next_word: dict[str, list[PhrasePattern[Payload]]] = {}
        by_start: dict[str, list[PhrasePattern[Payload]]] = {}
        for phrase in longer:
            following, is_prefix = phrase.words[1]
            if is_prefix:
                by_start.setdefault(following[:_NEXT_KEY_LENGTH], []).append(phrase)
            elif following not in by_next_word:
                by_next_word[following] = [
                    each
                    for each in longer
                    if following == each.words[1][0] or (each.words[1][1] and following.startswith(each.words[1][0]))
                ]
        self[word] = candidates = _Candidates(phrases[len(longer) :], by_next_word, by_start) if phrases else None
        return candidates


class Meaning(NamedTuple):
    """What one of a lexicon's phrases stands for. kind: None for what is known, and no more than that."""

    kind: str | None = None
    payload: Any = None
    is_known: bool = True


class _Meanings(NamedTuple):
    by_kind: Mapping[str, list[PhraseMatch[Any]]]
    known: frozenset[int]
    in_phrases: frozenset[int]


class MeaningMatcher(PhraseMatcher[Meaning]):
    """Looks for phrases of several kinds in one pass over a text, however many of them are asked for."""

    def known_words(self, words: TokenizedText) -> frozenset[int]:
        """Those that belong to any phrase."""
        return self._read(words).known

    def words_of_phrases(self, words: TokenizedText) -> frozenset[int]:
        """Those that belong to one of several words: the "no" of "no problem" denies nothing."""
        return self._read(words).in_phrases

    def find_kind(self, words: TokenizedText, kind: str) -> list[PhraseMatch[Any]]:
        """As `find` does it, as if there were no other."""
        return self._read(words).by_kind.get(kind, [])

    def __missing__(self, word: str) -> _Candidates[Meaning] | None:
        if (candidates := super().__missing__(word)) is not None:
            first = {phrase.payload.kind: phrase for phrase in reversed(candidates.single)}
            is_known = any(phrase.payload.is_known for phrase in candidates.single)
            single = [
                phrase for phrase in candidates.single if phrase.payload.kind and first[phrase.payload.kind] is phrase
            ]
            self[word] = candidates = candidates._replace(single=single, is_known=is_known)
        return candidates

    def _read(self, words: TokenizedText) -> _Meanings:
        if (meanings := words.meanings.get(self)) is None:
            by_kind: dict[str, list[PhraseMatch[Any]]] = {}
            known, in_phrases = set[int](), set[int]()
            for first, candidates, phrases in self._beginning(words):
                if candidates.is_known:
                    known.add(first)
                for phrase in phrases:
                    kind, payload, is_known = phrase.payload
                    end = first + len(phrase.words)
                    if is_known and end > first + 1:
                        in_phrases.update(range(first, end))
                    if kind is not None:
                        of_kind = by_kind.setdefault(kind, [])
                        if not of_kind or of_kind[-1].first != first:
                            of_kind.append(PhraseMatch(first, end, payload))
            meanings = words.meanings[self] = _Meanings(by_kind, frozenset(known | in_phrases), frozenset(in_phrases))
        return meanings


class PhrasesOfKind(NamedTuple, Generic[Payload]):
    """Those of a matcher that are of one kind."""

    matcher: MeaningMatcher
    kind: str

    def find(self, words: TokenizedText) -> list[PhraseMatch[Payload]]:
        """Every place where one begins, the longest of each."""
        return self.matcher.find_kind(words, self.kind)


def parse_phrase(source: str, payload: Payload) -> PhrasePattern[Payload]:
    """Raises InvalidPhraseError."""
    if source.isalnum():
        return PhrasePattern(((fold(source), False),), (), payload)
    if _PLAIN_PHRASE.fullmatch(source):
        return _cut(fold(source), payload)
    if source.startswith("*") and source[1:].isalnum():
        if len(ending := fold(source[1:])) < _MIN_ENDING:
            raise InvalidPhraseError(f"has a '*' before fewer than {_MIN_ENDING} letters and would match far too much")
        return PhrasePattern(((ending, False),), (), payload, is_ending=True)
    return _parse_any_phrase(source, payload)


def read_phrase(source: str, payload: Payload) -> Phrase[Payload]:
    """As `parse_phrase`, but a plain phrase is cut into words only when a text holds one that it may begin with.

    Thousands are read at the start, and a mail's words begin with the letters of a tenth of them. Raises
    InvalidPhraseError.
    """
    if not _PLAIN_PHRASE.fullmatch(source):
        return parse_phrase(source, payload)
    return (source if source.isascii() and source.islower() else fold(source)), payload


def read_phrases(text: str, payload: Payload) -> list[Phrase[Payload]]:
    """Those between the commas of `text`, each as `read_phrase` does it; the message of the error names the phrase."""
    if _PLAIN_PHRASES.fullmatch(text):
        return [(phrase, payload) for phrase in fold(text).split(", ")]
    phrases = []
    for entry in text.split(","):
        if source := entry.strip():
            try:
                phrases.append(read_phrase(source, payload))
            except InvalidPhraseError as error:
                raise InvalidPhraseError(f"phrase '{source}' {error}") from None
    return phrases


def _cut(folded: str, payload: Payload) -> PhrasePattern[Payload]:
    parts = folded.split(" ")
    words = tuple([(part[:-1], True) if part[-1] == "*" else (part, False) for part in parts])
    return PhrasePattern(words, ("",) * (len(words) - 1), payload)


def _parse_any_phrase(source: str, payload: Payload) -> PhrasePattern[Payload]:
    for sign in "|;":
        if sign in source:
            raise InvalidPhraseError(f"has a '{sign}', which no mail would have there. Put a comma between phrases")
    matches = list(_PHRASE_WORD.finditer(source))
    if not matches:
        raise InvalidPhraseError("has no word in it")
    if _IDLE_STAR.search(source):
        raise InvalidPhraseError("has a '*' that is not read. Put one at the end of a word, or before an only word")
    words: list[tuple[str, bool]] = []
    separators: list[str] = []
    for position, match in enumerate(matches):
        word, is_prefix = fold(match[1]), bool(match[2])
        shortest = _NEXT_KEY_LENGTH if position else _KEY_LENGTH
        if is_prefix and len(word) < shortest:
            raise InvalidPhraseError(f"has a '*' after fewer than {shortest} letters and would match far too much")
        words.append((word, is_prefix))
        if position:
            separators.append(_separator(source[matches[position - 1].end() : match.start()]))
    return PhrasePattern(tuple(words), tuple(separators), payload)


def _length(phrase: PhrasePattern[Payload]) -> tuple[int, int]:
    return len(phrase.words), sum(map(len, map(itemgetter(0), phrase.words)))


def _rest_matches(phrase: PhrasePattern[Payload], words: TokenizedText, first: int) -> bool:
    """Whether a phrase stands at word `first`, as its first word does."""
    end = first + len(phrase.words)
    if words.separators[first + 1 : end] != phrase.separators:
        return False
    for (text, is_prefix), word in zip(phrase.words[1:], words.folded[first + 1 : end], strict=True):
        if not (word == text or (is_prefix and word.startswith(text))):
            return False
    return True


def _separator(gap: str) -> str:
    """What distinguishes one gap between two words from another."""
    return gap.strip(" \t\n-._").replace("’", "'")


@lru_cache(maxsize=1024)  # mails share nearly all of them
def _ends_sentence(gap: str) -> bool:
    return _SENTENCE_END.search(gap) is not None


@lru_cache(maxsize=1024)
def _separator_in(gap: str) -> str | None:
    """That of a gap in a text, None where no phrase goes on across it."""
    return None if len(gap) > _MAX_GAP or gap.count("\n") > 1 else _separator(gap)
