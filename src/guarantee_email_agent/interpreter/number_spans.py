"""Spans of words that may be a number: which words belong to one, and whether it can be a serial number.

A number may be cut into words by hyphens, dots, slashes, or blanks between equally long groups.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping
from typing import NamedTuple

from guarantee_email_agent.instructions.lexicon import LabelKind, Lexicon
from guarantee_email_agent.instructions.phrases import PhraseMatch, TokenizedText

MAX_WORDS_IN_NUMBER = 6
MAX_GROUPS = 6
MIN_DIGITS_OF_GROUPS = 5
MIN_DIGITS_OF_LAST_GROUP = 3
MAX_GROUP_LENGTH = 5
MIN_DISTINCTIVE_LENGTH = 5

HYPHENS = frozenset("-_‐‑–—−")
_JOINING_CHARACTERS = HYPHENS | frozenset("/.")
_LIST_GAP = re.compile(r"[ \t]{0,9}(?:[,;/&+]\s{0,9}|\n[ \t]{0,9}(?:[-*•][ \t]{1,9})?)")
_ADDRESS = re.compile(r"@|://|www\.")
_ASIDE = re.compile(r"[ \t]{1,9}(?:[(\[]|[-–—][ \t]{1,9})")
_CENTS = re.compile(r",[0-9]|[,.] ?[-–—]")
_BLANK = re.compile(r"\s")
_LAST_GROUP = re.compile(r"[0-9]{1,4}[A-Z]{1,2}")
_LETTER = re.compile(r"[A-Z]")
_DIGIT = re.compile(r"[0-9]")


class NumberSpan(NamedTuple):
    """words[first:end]: joined by single hyphens and the like, or equally long groups with single blanks between."""

    first: int
    end: int
    text: str


def shape(text: str) -> str:
    """The word shape: A for every letter and 9 for every digit."""
    return _LETTER.sub("A", _DIGIT.sub("9", text))


def is_distinctive(text: str) -> bool:
    """Whether a number's shape tells it from others: a bare row of digits could be anything."""
    return len(text) >= MIN_DISTINCTIVE_LENGTH and bool(_LETTER.search(text))


def have_similar_shape(first: NumberSpan, other: NumberSpan) -> bool:
    """Numbers in one list look alike: with letters or without, and about as long."""
    return first.text.isdigit() == other.text.isdigit() and abs(len(first.text) - len(other.text)) <= 3


def find_address_words(words: TokenizedText) -> set[int]:
    """Words inside a link or a mail address, where digits mean something else."""
    text, taken = words.text, set[int]()
    position = 0
    while (match := _ADDRESS.search(text, position)) is not None:
        start = max(text.rfind(blank, position, match.start()) for blank in " \t\n") + 1
        end = _BLANK.search(text, match.end())
        position = end.start() if end else len(text)
        taken.update(range(bisect_left(words.starts, start), bisect_left(words.starts, position)))
    return taken


def starts_sentence(words: TokenizedText, index: int) -> bool:
    """Whether a missing blank is all that joins word `index` to the one before: "SN12345.Thanks"."""
    word = words.text[words.starts[index] : words.ends[index]]
    return words.gap_before(index) == "." and word.isalpha() and len(word) > 1 and word.istitle()


def ends_phrase(words: TokenizedText, end: int) -> bool:
    """Whether a sentence, a line or a part of it ends behind words[:end]."""
    stop = words.ends[end - 1]
    return words.text[stop : stop + 1] in ("", "\n", ",", ".", ";", ")", "!", "?")


def is_last_group(group: NumberSpan, words: TokenizedText, lexicon: Lexicon) -> bool:
    """Whether a group of digits ends a number in groups, and counts nothing: "TS90 01234.", not "TS90 123 EUR"."""
    if not group.text.isdigit() or len(group.text) < MIN_DIGITS_OF_LAST_GROUP:
        return False
    if _CENTS.match(words.text, words.ends[group.end - 1]):
        return False
    if group.text.startswith("0") or ends_phrase(words, group.end):
        return True
    return words.folded[group.end] in lexicon.joiners or _ASIDE.fullmatch(words.gap_before(group.end)) is not None


class NumberSpanReader:
    """Reads the numbers of one text; `examples` holds the words at which an example begins, which is never read."""

    def __init__(self, words: TokenizedText, lexicon: Lexicon, examples: frozenset[int]) -> None:
        self._words = words
        self._lexicon = lexicon
        self._examples = examples

    def number_at(self, index: int) -> NumberSpan | None:
        """Any number that begins at word `index`."""
        span = self.span_at(index)
        return span if index not in self._examples and _DIGIT.search(span.text) else None

    def serial_number_at(self, index: int) -> NumberSpan | None:
        """A usable serial number that begins at word `index`, for a place where a label says that one stands."""
        if index in self._examples:
            return None
        span = self.span_at(index)
        if not _DIGIT.search(span.text) or self._lexicon.never.fullmatch(span.text):
            return None
        if "/" in span.text and not self._lexicon.self_labelled.fullmatch(span.text):
            short = self.span_at(index, HYPHENS)
            if self._lexicon.self_labelled.fullmatch(short.text):
                span = short  # SN111/SN222 are two
        if not self._lexicon.labelled.fullmatch(span.text):
            return None
        grouped = self._extend_over_groups(span)
        return grouped if grouped.end > span.end else self._extend_over_digits(span)

    def span_at(self, index: int, joined_by: frozenset[str] = _JOINING_CHARACTERS) -> NumberSpan:
        """The longest span of words from `index` on that a single character of `joined_by` holds together."""
        words, end = self._words, index + 1
        while end < len(words.folded) and end - index < MAX_WORDS_IN_NUMBER and words.gap_before(end) in joined_by:
            if starts_sentence(words, end):
                break
            end += 1
        return NumberSpan(index, end, words.text[words.starts[index] : words.ends[end - 1]].upper())

    def span_start(self, index: int) -> int:
        words, first = self._words, index
        while first and index - first < MAX_WORDS_IN_NUMBER and words.gap_before(first) in _JOINING_CHARACTERS:
            if starts_sentence(words, first):
                break
            first -= 1
        return first

    def spaced_serial_number_at(self, index: int) -> NumberSpan | None:
        """`FD 9804 00231`, `4C 7719 0033 X`: a few signs, then groups of digits, with single blanks between."""
        words = self._words
        prefix = words.text[words.starts[index] : words.ends[index]]
        if not (len(prefix) <= (4 if prefix.isalpha() else 2) and prefix.isalnum() and prefix == prefix.upper()):
            return None
        end, text = index + 1, prefix
        while end < len(words.folded) and words.gap_before(end) == " " and words.folded[end].isdigit():
            end, text = end + 1, text + words.folded[end]
        if end < len(words.folded) and words.gap_before(end) == " " and ends_phrase(words, end + 1):
            last = words.text[words.starts[end] : words.ends[end]]
            if _LAST_GROUP.fullmatch(last):
                end, text = end + 1, text + last
        span = self._extend_over_letters(NumberSpan(index, end, text))
        usable = len(text) - len(prefix) >= MIN_DIGITS_OF_GROUPS and self._lexicon.labelled.fullmatch(span.text)
        return span if usable else None

    def _extend_over_groups(self, span: NumberSpan) -> NumberSpan:
        """`1234 5678 9012` is one number where the groups are equally long, and `00471 KL` where nothing follows."""
        words, length = self._words, len(span.text)
        if not 3 <= length <= 5 or span.end != span.first + 1:
            return span
        groups, end = [span.text], span.end
        while end < len(words.folded) and words.gap_before(end) == " " and len(groups) < MAX_GROUPS:
            group = self.span_at(end)
            if not _DIGIT.search(group.text):
                break
            is_last = len(group.text) < length and group.text.isdigit() and len(groups) > 1
            is_last = is_last and (len(group.text) > 1 or ends_phrase(words, group.end))
            if len(group.text) != length and not is_last:
                break
            groups.append(group.text)
            end = group.end
            if is_last:
                break
        if len(groups) == 2 and self._lexicon.never.fullmatch(groups[1]):
            return span  # a number and a year
        return self._extend_over_letters(NumberSpan(span.first, end, "".join(groups)))

    def _extend_over_digits(self, span: NumberSpan) -> NumberSpan:
        """With the digits behind a blank that end the phrase: the 01234 of `TS90 01234`, no year as in `TS90 2024`."""
        words, end = self._words, span.end
        if span.text.isdigit() or end >= len(words.folded) or words.gap_before(end) != " ":
            return span
        group = self.span_at(end)
        if len(group.text) > MAX_GROUP_LENGTH:
            return span
        is_last = is_last_group(group, words, self._lexicon) and not self._lexicon.never.fullmatch(group.text)
        return NumberSpan(span.first, group.end, span.text + group.text) if is_last else span

    def _extend_over_letters(self, span: NumberSpan) -> NumberSpan:
        """With one or two capitals behind its digits that end the phrase: the X of `4C 7719 0033 X`."""
        words, end = self._words, span.end
        if end >= len(words.folded) or words.gap_before(end) != " " or not span.text[-1].isdigit():
            return span
        letters = words.text[words.starts[end] : words.ends[end]]
        if not (len(letters) <= 2 and letters.isascii() and letters.isalpha() and letters.isupper()):
            return span
        is_end = ends_phrase(words, end + 1) or words.folded[end + 1] in self._lexicon.joiners
        is_enough = len(_DIGIT.findall(span.text)) >= MIN_DIGITS_OF_GROUPS
        return NumberSpan(span.first, end + 1, span.text + letters) if is_end and is_enough else span

    def next_in_list(self, number: NumberSpan) -> NumberSpan | None:
        """The number that follows in "4711-A, 4712-B and 4713-C"."""
        words, index = self._words, number.end
        if index >= len(words.folded):
            return None
        if words.folded[index] in self._lexicon.joiners and words.gap_before(index).strip(" ,") == "":
            index += 1
            if index >= len(words.folded) or words.gap_before(index).strip():
                return None
        elif not _LIST_GAP.fullmatch(words.gap_before(index)):
            return None
        return self.serial_number_at(index) or self.spaced_serial_number_at(index)

    def ends_line(self, number: NumberSpan) -> bool:
        words = self._words
        return number.end == len(words.folded) or "\n" in words.gap_before(number.end)


class LabelledText(NamedTuple):
    """A text whose numbers are read. labels: those in it, by their first words. reader: of the numbers between them."""

    words: TokenizedText
    lexicon: Lexicon
    labels: Mapping[int, PhraseMatch[LabelKind]]
    reader: NumberSpanReader
