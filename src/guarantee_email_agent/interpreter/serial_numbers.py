"""Extract the serial numbers that a customer gives, by the lexicon.

A number counts because of what stands around it: a label before it ("S/N: 4711-A", also on the line above), a label
behind it ("4711-A is my serial number"), its own prefix ("SN4711"), or, where a text labels nothing, a shape that no
other number has. What carries another label ("order no. 4711") never counts.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice, pairwise

from guarantee_email_agent.instructions.lexicon import LabelKind, Lexicon
from guarantee_email_agent.instructions.phrases import PhraseMatch, TokenizedText, fold
from guarantee_email_agent.interpreter.corrections import CorrectionReader
from guarantee_email_agent.interpreter.number_spans import (
    HYPHENS,
    NumberSpan,
    NumberSpanReader,
    find_address_words,
    have_similar_shape,
    is_distinctive,
    shape,
)

MAX_LABELS = 1000
MAX_WORDS_TO_VALUE = 25
MAX_WORDS_FROM_OTHER_LABEL = 5
MAX_WORDS_TO_DENIAL = 6
MAX_WORDS_TO_BACK_REFERENCE = 4
MAX_LINES_TO_VALUE = 3
MAX_WORDS_BEFORE_LABEL = 5
MAX_WORDS_BACK = 60
MAX_BRACKETS = 60
MAX_TABLE_LINE = 500
MAX_TABLE_ROWS = 50
MIN_LENGTH_BEFORE_LABEL = 5
MAX_NUMBERS_OF_COMBINED = 4

_SENTENCE_END = re.compile(r"[?!;]|[.](?=\s)")
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
        self._corrections = CorrectionReader(words, lexicon, self._labels, self._reader)
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
            if column := self._numbers_in_column(label):
                self._taken.update(index for cell in column for index in range(cell.first, cell.end))
                continue
            number = self._number_after(label) or self._number_before(label)
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
        number = self._number_after(label)
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
        number = self._number_after(label)
        # Below a heading, the first number may be another column's.
        if number is None or "\n" in self._words.text_between(label.end, number.first):
            column = [cell for cell in self._numbers_in_column(label) if cell.first not in self._taken]
            if column:
                return column
        if number is None:
            if self._is_back_reference(label):
                return self._numbers_referred_to(label)
            number = self._number_before(label)
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

    def _number_after(self, label: PhraseMatch[LabelKind]) -> NumberSpan | None:
        """The number that a label announces: "S/N 4711-A", "serial number on the back of the fan reads: 4711-A".

        Directly behind the label, also on a later line, any usable number will do. Further on in the sentence it must
        follow a colon or a word like "is", or at least not follow a word like "my": in "the serial number of my KX200
        is 4711-A" the first is a model. Words that say there is none end the search: "serial number unreadable".
        """
        words, index = self._words, label.end
        colon, owned, negated = False, False, self._is_negated(label)
        is_other = label.payload == "other"
        unlinked: NumberSpan | None = None
        for _ in range(MAX_WORDS_FROM_OTHER_LABEL if is_other else MAX_WORDS_TO_VALUE):
            if index >= len(words.folded):
                break
            gap = words.gap_before(index)
            is_direct = index == label.end
            newlines = gap.count("\n")
            if newlines > MAX_LINES_TO_VALUE or (not is_direct and _SENTENCE_END.search(gap)):
                # A question about the number of some model gives none.
                unlinked = None if "?" in gap else unlinked
                break
            if is_other and "," in gap:
                break
            colon = colon or ":" in gap or "|" in gap or "\t" in gap
            is_linked = is_direct or ":" in gap or "=" in gap or (self._follows_link_word(index) and not negated)
            number = self._reader.number_at(index) if is_other else self._reader.serial_number_at(index)
            if number is None and is_linked and not is_other:
                number = self._reader.spaced_serial_number_at(index)
            if number is not None:
                if is_linked or (newlines == 1 and self._reader.ends_line(number)):
                    return number
                if unlinked is None and not (negated or owned or is_other) and is_distinctive(number.text):
                    unlinked = number
            if newlines and (colon or newlines > 1):
                break  # an empty field of a form: what follows is the next field
            following = self._labels.get(index)
            if following is None:
                word = words.folded[index]
                if word in self._lexicon.denials:
                    return None
                owned = owned or word in self._lexicon.owners
                index = self._reader.span_at(index).end
            elif following.payload == label.payload == "serial":
                index, label = following.end, following
            elif following.payload == "example" and (behind := self._end_of_brackets(following)):
                index = behind
            elif self._starts_other_label(following):
                break
            else:
                index += 1
        return unlinked

    def _end_of_brackets(self, label: PhraseMatch[LabelKind]) -> int | None:
        """The word behind the brackets that `label` begins in, as in "Serial number (e.g. SN12345): 4711-A"."""
        words, start = self._words, self._words.starts[label.first]
        if "(" not in words.gap_before(label.first):
            return None
        end = words.text.find(")", start, start + MAX_BRACKETS)
        return bisect_left(words.starts, end) if end >= 0 else None

    def _follows_link_word(self, index: int) -> bool:
        """Whether a word like "is", or "is the", stands before word `index`."""
        folded, links = self._words.folded, self._lexicon.links
        return folded[index - 1] in links or (
            index > 1 and folded[index - 2] in links and folded[index - 1] in self._lexicon.stop_words
        )

    def _starts_other_label(self, label: PhraseMatch[LabelKind]) -> bool:
        """Whether a label of another kind is used as one: "order no. 4711" and "phone:", but not "with my phone"."""
        words = self._words
        if label.payload != "other" or label.end - label.first > 1:
            return True
        if label.end >= len(words.folded):
            return False
        return ":" in words.gap_before(label.end) or bool(_DIGIT.search(self._reader.span_at(label.end).text))

    def _is_negated(self, label: PhraseMatch[LabelKind]) -> bool:
        """Whether the sentence says before the label that there is none: "I cannot find the serial number"."""
        for index in range(label.first, max(label.first - MAX_WORDS_TO_DENIAL, 0), -1):
            gap = self._words.gap_before(index)
            if _SENTENCE_END.search(gap) or "\n\n" in gap:
                return False
            if self._words.folded[index - 1] in self._lexicon.denials:
                return True
        return False

    def _numbers_in_column(self, label: PhraseMatch[LabelKind]) -> list[NumberSpan]:
        """The cells below a label that heads a column: "Model | Serial number" above "KX200 | 4711-A"."""
        words, text = self._words, self._words.text
        label_start = words.starts[label.first]
        line_start = text.rfind("\n", max(0, label_start - MAX_TABLE_LINE), label_start) + 1
        line_end = text.find("\n", label_start, label_start + MAX_TABLE_LINE)
        separator = "\t" if "\t" in text[line_start:line_end] else "|"
        if line_end < 0 or separator not in text[line_start:line_end]:
            return []
        column, columns = (text.count(separator, line_start, end) for end in (label_start, line_end))
        above_start = text.rfind("\n", max(0, line_start - MAX_TABLE_LINE), max(0, line_start - 1)) + 1
        if text.count(separator, above_start, line_start) == columns:
            return []  # not the first row
        numbers: list[NumberSpan] = []
        for _ in range(MAX_TABLE_ROWS):
            line_start, line_end = line_end + 1, text.find("\n", line_end + 1)
            cells = text[line_start : line_end if line_end >= 0 else len(text)].split(separator)
            if len(cells) != columns + 1:
                break
            cell_start = line_start + sum(len(cell) + 1 for cell in cells[:column])
            first = bisect_left(words.starts, cell_start)
            is_inside = first < len(words.starts) and words.starts[first] < cell_start + len(cells[column])
            if is_inside and (number := self._reader.serial_number_at(first)):
                numbers.append(number)
            if line_end < 0:
                break
        return numbers

    def _number_before(self, label: PhraseMatch[LabelKind]) -> NumberSpan | None:
        """The number in "4711-A is my serial number" or "4711-A (serial number)"."""
        words, index, linked = self._words, label.first, False
        for _ in range(MAX_WORDS_BEFORE_LABEL):
            gap = words.gap_before(index)
            if index == 0 or "\n" in gap or _SENTENCE_END.search(gap):
                return None
            linked = linked or "(" in gap or "=" in gap
            index -= 1
            word = words.folded[index]
            if linked and _DIGIT.search(word):
                number = self._reader.serial_number_at(self._reader.span_start(index))
                return number if number and len(number.text) >= MIN_LENGTH_BEFORE_LABEL else None
            linked = linked or word in self._lexicon.links
        return None

    def _is_back_reference(self, label: PhraseMatch[LabelKind]) -> bool:
        """Whether the label speaks of what was said before: "that is the serial number", not "that serial number"."""
        for index in range(label.first - 2, max(label.first - 1 - MAX_WORDS_TO_BACK_REFERENCE, -1), -1):
            if self._words.folded[index] in self._lexicon.back_references:
                return True
            if _SENTENCE_END.search(self._words.gap_before(index)):
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
