"""Extract the serial numbers that a customer gives, by the lexicon.

A number counts because of what stands around it: a label before it ("S/N: 4711-A", also on the line above), a label
behind it ("4711-A is my serial number"), its own prefix ("SN4711"), or, where a text labels nothing, a shape that no
other number has. What carries another label ("order no. 4711") never counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice, pairwise

from guarantee_email_agent.instructions.lexicon import LabelKind, Lexicon
from guarantee_email_agent.instructions.phrases import PhraseMatch, TokenizedText, fold
from guarantee_email_agent.interpreter.corrections import CorrectionReader
from guarantee_email_agent.interpreter.label_numbers import MIN_LENGTH_BEFORE_LABEL, SENTENCE_END, LabelReader
from guarantee_email_agent.interpreter.number_spans import (
    HYPHENS,
    LabelledText,
    NumberSpan,
    NumberSpanReader,
    find_address_words,
    have_similar_shape,
    is_distinctive,
    shape,
)

MAX_LABELS = 1000
MAX_WORDS_TO_BACK_REFERENCE = 4
MAX_WORDS_BACK = 60
MAX_NUMBERS_OF_COMBINED = 4

_DIGIT = re.compile(r"[0-9]")
_NOT_ALPHANUMERIC = re.compile(r"[^A-Z0-9]+")


@dataclass(frozen=True, slots=True)
class ExtractedNumbers:
    """What one text gives. `numbers` are distinct, upper case, in order of appearance.

    labelled: they carry a label of their own, or a prefix that is one. other_words: those that another label, a link or
    an example claims; no serial number stands there.
    """

    numbers: tuple[str, ...]
    labelled: bool
    other_words: frozenset[int] = frozenset()


def canonical_serial_number(serial_number: str) -> str:
    """Equal for two spellings of one number: `sn-12345`, `SN12345` and `12345`."""
    return _NOT_ALPHANUMERIC.sub("", serial_number.upper()).removeprefix("SN")


def deduplicate(numbers: Iterable[str]) -> tuple[str, ...]:
    """The first spelling of each number."""
    by_key: dict[str, str] = {}
    for number in numbers:
        by_key.setdefault(canonical_serial_number(number), number)
    return tuple(by_key.values())


def extract_answer(words: TokenizedText, lexicon: Lexicon) -> tuple[str, ...]:
    """The serial number in a text that answers the question for one: "it's 4711-A". Empty unless there is just one."""
    return _Extractor(words, lexicon).extract_answer()


def mentions_serial_number(words: TokenizedText, lexicon: Lexicon) -> bool:
    """Whether a text speaks of a serial number at all."""
    return any(label.payload == "serial" for label in lexicon.labels.find(words))


def extract_serial_numbers(words: TokenizedText, lexicon: Lexicon) -> ExtractedNumbers:
    """The serial numbers that a text gives; time is linear in its length."""
    if not _DIGIT.search(words.text):
        return ExtractedNumbers((), labelled=False)
    return _Extractor(words, lexicon).extract()


class _Extractor:
    """One pass over one text.

    `_found` maps the first word of each number to it; `_taken` holds the words that count no more.
    """

    def __init__(self, words: TokenizedText, lexicon: Lexicon) -> None:
        self._words = words
        self._lexicon = lexicon
        # No honest mail has so many labels; a hostile one shall not buy more time with more of them.
        self._labels = {label.first: label for label in islice(_outermost(lexicon.labels.find(words)), MAX_LABELS)}
        self._found: dict[int, NumberSpan] = {}
        self._taken = find_address_words(words)
        examples = (label for label in self._labels.values() if label.payload == "example")
        self._after_example = frozenset(index for label in examples for index in _words_of_example(words, label.end))
        self._reader = NumberSpanReader(words, lexicon, self._after_example)
        text = LabelledText(words, lexicon, self._labels, self._reader)
        self._label_reader = LabelReader(text)
        self._corrections = CorrectionReader(text)
        self._combined = dict(self._find_combined_labels())

    def extract(self) -> ExtractedNumbers:
        self._exclude_other_numbers()
        other_words = self._after_example | self._taken
        self._extract_prefixed()
        self._extract_labelled()
        if not self._found:
            self._extract_labelled("weak")
        labelled = bool(self._found)
        if labelled:
            self._extract_same_shape()
        else:
            self._extract_unlabelled()
        found = self._corrections.apply(self._found)
        numbers = deduplicate(found[first].text for first in sorted(found))
        return ExtractedNumbers(numbers, labelled or not self._found, other_words)

    def extract_answer(self) -> tuple[str, ...]:
        self._exclude_other_numbers()
        index = 0
        while index < len(self._words.folded):
            number = self._reader.serial_number_at(index) if index not in self._taken else None
            if number is not None and len(number.text) >= MIN_LENGTH_BEFORE_LABEL:
                self._add(number)
            index = self._reader.span_at(index).end
        found = deduplicate(number.text for number in self._found.values())
        return found if len(found) == 1 else ()

    def _exclude_other_numbers(self) -> None:
        """Words that another label claims are out of the question."""
        combined = {index for both in self._combined.values() for index in range(both.first, both.end)}
        for label in self._labels.values():
            if label.payload != "other" or label.first in self._taken or label.first in combined:
                continue
            if column := self._label_reader.numbers_in_column(label):
                self._taken.update(index for cell in column for index in range(cell.first, cell.end))
                continue
            number = self._label_reader.number_after(label) or self._label_reader.number_before(label)
            while number is not None:
                # A number's own prefix says more than a word further off.
                if number.first > label.end and self._lexicon.self_labelled.fullmatch(number.text):
                    break
                self._taken.update(range(number.first, number.end))
                number = self._reader.next_in_list(number)

    def _extract_prefixed(self) -> None:
        for index, word in enumerate(self._words.folded):
            if word.startswith("sn") and self._is_free(index):
                span = self._reader.span_at(index)
                if not self._lexicon.self_labelled.fullmatch(span.text):
                    span = self._reader.span_at(index, HYPHENS)
                if self._lexicon.self_labelled.fullmatch(span.text) and not self._lexicon.never.fullmatch(span.text):
                    self._add(span)

    def _extract_labelled(self, kind: LabelKind = "serial") -> None:
        for label in self._labels.values():
            if label.payload == kind and label.first not in self._taken:
                for number in self._numbers_of(label):
                    self._add(number)

    def _find_combined_labels(self) -> Iterator[tuple[int, PhraseMatch[LabelKind]]]:
        """Labels of two numbers at once, as in "Mod./Ser. no.", by the first word of the one for the serial number."""
        words = self._words
        for label, following in pairwise(self._labels.values()):
            if {label.payload, following.payload} == {"serial", "other"}:
                between = words.text_between(label.end, following.first).strip(" .\t")
                if between in ("/", "&") or fold(between) in self._lexicon.joiners:
                    serial = label if label.payload == "serial" else following
                    yield serial.first, PhraseMatch(label.first, following.end, "serial")

    def _numbers_of_combined(self, label: PhraseMatch[LabelKind]) -> list[NumberSpan]:
        """Both numbers, since it is open which is which. One alone counts where its own prefix tells."""
        number = self._label_reader.number_after(label)
        listed = list[NumberSpan]()
        while number is not None and len(listed) < MAX_NUMBERS_OF_COMBINED:
            index = number.first
            while index < number.end:
                listed.append(span := self._reader.span_at(index, HYPHENS))
                index = span.end
            number = self._reader.next_in_list(number)
        if len(listed) > 1 or (listed and self._lexicon.self_labelled.fullmatch(listed[0].text)):
            return listed
        self._taken.update(index for span in listed for index in range(span.first, span.end))
        return []

    def _numbers_of(self, label: PhraseMatch[LabelKind]) -> list[NumberSpan]:
        if label.first in self._combined:
            return self._numbers_of_combined(self._combined[label.first])
        number = self._label_reader.number_after(label)
        # Below a heading, the first number may be another column's.
        if number is None or "\n" in self._words.text_between(label.end, number.first):
            column = [cell for cell in self._label_reader.numbers_in_column(label) if cell.first not in self._taken]
            if column:
                return column
        if number is None:
            if self._is_back_reference(label):
                return self._numbers_referred_to(label)
            number = self._label_reader.number_before(label)
            if number is not None and number.first not in self._taken:
                return [number]
        first, listed = number, list[NumberSpan]()
        while number is not None and first is not None:
            if not (number.first in self._found or (self._is_free(number.first) and have_similar_shape(first, number))):
                break
            listed.append(number)
            number = self._reader.next_in_list(number)
        return listed

    def _extract_unlabelled(self) -> None:
        unlabelled, never = self._lexicon.unlabelled, self._lexicon.never
        for index, word in enumerate(self._words.folded):
            if not word.isdigit() and self._is_free(index):
                span = self._reader.span_at(index)
                if self._is_free_span(span) and unlabelled.fullmatch(span.text) and not never.fullmatch(span.text):
                    self._add(span)

    def _extract_same_shape(self) -> None:
        """In "serial numbers are TL-55091 and, for the other lamp, TL-55092" the second has the shape of the first."""
        shapes = {shape(number.text) for number in self._found.values() if is_distinctive(number.text)}
        if not shapes:
            return
        for index, word in enumerate(self._words.folded):
            if not word.isalpha() and self._is_free(index):
                # The word may be the middle of a span whose first word has no digit.
                first = self._reader.span_start(index)
                span = self._reader.span_at(first)
                if is_distinctive(span.text) and shape(span.text) in shapes and self._is_free_span(span):
                    self._add(span)

    def _is_back_reference(self, label: PhraseMatch[LabelKind]) -> bool:
        """Whether the label speaks of what was said before: "that is the serial number", not "that serial number"."""
        for index in range(label.first - 2, max(label.first - 1 - MAX_WORDS_TO_BACK_REFERENCE, -1), -1):
            if self._words.folded[index] in self._lexicon.back_references:
                return True
            if SENTENCE_END.search(self._words.gap_before(index)):
                return False
        return False

    def _numbers_referred_to(self, label: PhraseMatch[LabelKind]) -> list[NumberSpan]:
        """All numbers before the label that look alike, the last of them first."""
        numbers: list[NumberSpan] = []
        index = label.first - 1
        while index >= 0 and label.first - index < MAX_WORDS_BACK:
            first = self._reader.span_start(index)
            span = self._reader.span_at(first)
            is_candidate = is_distinctive(span.text) and self._is_free_span(span)
            if is_candidate and (number := self._reader.serial_number_at(first)):
                if numbers and shape(numbers[0].text) != shape(number.text):
                    break
                numbers.append(number)
            index = first - 1
        return numbers

    def _is_free(self, index: int) -> bool:
        return index not in self._taken and index not in self._after_example

    def _is_free_span(self, number: NumberSpan) -> bool:
        return all(self._is_free(index) for index in range(number.first, number.end))

    def _add(self, number: NumberSpan) -> None:
        self._found[number.first] = number
        self._taken.update(range(number.first, number.end))


def _words_of_example(words: TokenizedText, first: int) -> tuple[int, ...]:
    """The word behind a word like "e.g.", and the next, unless a bracket closes between them."""
    is_closed = first + 1 < len(words.folded) and ")" in words.gap_before(first + 1)
    return (first,) if is_closed else (first, first + 1)


def _outermost(labels: Iterable[PhraseMatch[LabelKind]]) -> Iterator[PhraseMatch[LabelKind]]:
    """Labels that are no part of a longer one: the "code" of "serial code" is none."""
    end = 0
    for label in labels:
        if label.end > end:
            end = label.end
            yield label
