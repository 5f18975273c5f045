"""Find the serial numbers that a customer gives, by the rules of the main instruction file.

A number counts because of what stands around it: a label before it ("S/N: 4711-A", also on the line above), a label
behind it ("4711-A is my serial number"), its own prefix ("SN4711"), or, where a text labels nothing, a form that no
other number has. What carries another label ("order no. 4711") never counts.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from guarantee_email_agent.instructions.lexicon import LabelKind, Lexicon
from guarantee_email_agent.instructions.phrases import PhraseMatch, TokenizedText
from guarantee_email_agent.interpreter.numbers_in_text import (
    SIGNS_INSIDE_ONE_NUMBER,
    Number,
    NumberReader,
    are_alike,
    form,
    is_telling,
    words_in_addresses,
)

MAX_LABELS = 1000
MAX_WORDS_TO_VALUE = 25
MAX_WORDS_FROM_OTHER_LABEL = 5
MAX_WORDS_TO_DENIAL = 6
MAX_WORDS_TO_BACK_REFERENCE = 4
MAX_LINES_TO_VALUE = 3
MAX_WORDS_BEFORE_LABEL = 5
MAX_WORDS_BACK = 60
MAX_TABLE_LINE = 500
MAX_TABLE_ROWS = 50
MIN_LENGTH_BEFORE_LABEL = 5

_SENTENCE_END = re.compile(r"[?!;]|[.](?=\s)")
_DIGIT = re.compile(r"[0-9]")
_NOT_ALPHANUMERIC = re.compile(r"[^A-Z0-9]+")


@dataclass(frozen=True, slots=True)
class SerialNumbers:
    """What one text gives. `numbers` are distinct, upper case, in order of appearance.

    `labelled` tells that they carry a label of their own, or a prefix that is one.
    """

    numbers: tuple[str, ...]
    labelled: bool


_NONE = SerialNumbers((), labelled=False)


def same_device_key(serial_number: str) -> str:
    """Equal for two spellings of one number: `sn-12345`, `SN12345` and `12345`."""
    return _NOT_ALPHANUMERIC.sub("", serial_number.upper()).removeprefix("SN")


def distinct(numbers: Iterable[str]) -> tuple[str, ...]:
    """The first spelling of each number."""
    by_key: dict[str, str] = {}
    for number in numbers:
        by_key.setdefault(same_device_key(number), number)
    return tuple(by_key.values())


def find_answer(words: TokenizedText, rules: Lexicon) -> tuple[str, ...]:
    """The serial number in a text that answers the question for one: "it's 4711-A". Empty unless there is just one."""
    return _Reader(words, rules).read_answer()


def asks_for_serial_number(words: TokenizedText, rules: Lexicon) -> bool:
    """Whether a text speaks of a serial number at all."""
    return any(hit.payload == "serial" for hit in rules.labels.find(words))


def find_serial_numbers(words: TokenizedText, rules: Lexicon) -> SerialNumbers:
    """The serial numbers that a text gives; time is linear in its length."""
    return _Reader(words, rules).read() if _DIGIT.search(words.text) else _NONE


class _Reader:
    """One pass over one text.

    `_found` maps the first word of each number to it; `_taken` holds the words that count no more.
    """

    def __init__(self, words: TokenizedText, rules: Lexicon) -> None:
        self._words = words
        self._rules = rules
        # No honest mail has so many labels; a hostile one shall not buy more time with more of them.
        self._hits = {hit.first: hit for hit in islice(_outermost(rules.labels.find(words)), MAX_LABELS)}
        self._found: dict[int, Number] = {}
        self._taken = words_in_addresses(words)
        examples = (hit for hit in self._hits.values() if hit.payload == "example")
        self._after_example = frozenset(index for hit in examples for index in (hit.end, hit.end + 1))
        self._numbers = NumberReader(words, rules, self._after_example)

    def read(self) -> SerialNumbers:
        self._read_other_labels()
        self._read_self_labelled()
        self._read_labels()
        if not self._found:
            self._read_labels("weak")
        labelled = bool(self._found)
        if labelled:
            self._read_same_form()
        else:
            self._read_unlabelled()
        return SerialNumbers(distinct(self._found[first].text for first in sorted(self._found)), labelled)

    def read_answer(self) -> tuple[str, ...]:
        self._read_other_labels()
        index = 0
        while index < len(self._words.folded):
            value = self._numbers.value_at(index) if index not in self._taken else None
            if value is not None and len(value.text) >= MIN_LENGTH_BEFORE_LABEL:
                self._keep(value)
            index = self._numbers.run_at(index).end
        found = distinct(value.text for value in self._found.values())
        return found if len(found) == 1 else ()

    # What a label decides --------------------------------------------------------------------------------------

    def _read_other_labels(self) -> None:
        """Words that another label claims are out of the question."""
        for hit in self._hits.values():
            if hit.payload != "other" or hit.first in self._taken:
                continue
            value = self._value_behind(hit) or self._value_before(hit)
            while value is not None:
                # A number's own prefix says more than a word further off.
                if value.first > hit.end and self._rules.self_labelled.fullmatch(value.text):
                    break
                self._taken.update(range(value.first, value.end))
                value = self._numbers.next_in_list(value)

    def _read_self_labelled(self) -> None:
        for index, word in enumerate(self._words.folded):
            if word.startswith("sn") and self._is_free(index):
                run = self._numbers.run_at(index)
                if not self._rules.self_labelled.fullmatch(run.text):
                    run = self._numbers.run_at(index, SIGNS_INSIDE_ONE_NUMBER)
                if self._rules.self_labelled.fullmatch(run.text) and not self._rules.never.fullmatch(run.text):
                    self._keep(run)

    def _read_labels(self, kind: LabelKind = "serial") -> None:
        for hit in self._hits.values():
            if hit.payload != kind or hit.first in self._taken:
                continue
            value = self._value_behind(hit)
            if (
                value is None
                or "\n" in self._words.text[self._words.ends[hit.end - 1] : self._words.starts[value.first]]
            ):
                column = [each for each in self._values_below(hit) if each.first not in self._taken]
                if column:  # below a heading, the first number may be another column's
                    for each in column:
                        self._keep(each)
                    continue
            if value is None and self._refers_back(hit):
                for earlier in self._values_before(hit):
                    self._keep(earlier)
                continue
            if value is None and (value := self._value_before(hit)) is not None and value.first not in self._taken:
                self._keep(value)
                continue
            first = value
            while value is not None and first is not None:
                if value.first in self._found or (self._is_free(value.first) and are_alike(first, value)):
                    self._keep(value)
                else:
                    break
                value = self._numbers.next_in_list(value)

    def _read_unlabelled(self) -> None:
        for index, word in enumerate(self._words.folded):
            if not word.isdigit() and self._is_free(index):
                run = self._numbers.run_at(index)
                if (
                    self._is_free_value(run)
                    and self._rules.unlabelled.fullmatch(run.text)
                    and not self._rules.never.fullmatch(run.text)
                ):
                    self._keep(run)

    def _read_same_form(self) -> None:
        """In "serial numbers are TL-55091 and, for the other lamp, TL-55092" the second looks just like the first."""
        forms = {form(value.text) for value in self._found.values() if is_telling(value.text)}
        if not forms:
            return
        for index, word in enumerate(self._words.folded):
            if not word.isalpha() and self._is_free(index):
                # Runs begin where a word has letters, so look back over a joined word without digits.
                first = self._numbers.first_of_run(index)
                run = self._numbers.run_at(first)
                if is_telling(run.text) and form(run.text) in forms and self._is_free_value(run):
                    self._keep(run)

    # Where a value stands --------------------------------------------------------------------------------------

    def _value_behind(self, label: PhraseMatch[LabelKind]) -> Number | None:
        """The number that a label announces: "S/N 4711-A", "serial number on the back of the fan reads: 4711-A".

        Directly behind the label, also on a later line, any usable number will do. Further on in the sentence it must
        follow a colon or a word like "is", or at least not follow a word like "my": in "the serial number of my KX200
        is 4711-A" the first is a model. Words that say there is none end the search: "serial number unreadable".
        """
        words, index = self._words, label.end
        colon, denied = False, self._is_denied(label)
        is_other = label.payload == "other"
        unlinked: Number | None = None
        owned = False
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
            is_linked = is_direct or ":" in gap or "=" in gap or (self._follows_link(index) and not denied)
            if is_other:
                value = self._numbers.any_number_at(index)
            else:
                value = self._numbers.value_at(index) or (self._numbers.spaced_value_at(index) if is_linked else None)
            if value is not None:
                if is_linked or (newlines == 1 and self._numbers.is_alone_on_its_line(value)):
                    return value
                if unlinked is None and not (denied or owned or is_other) and is_telling(value.text):
                    unlinked = value
            if newlines and (colon or newlines > 1):
                break  # an empty field of a form: what follows is the next field
            hit = self._hits.get(index)
            if hit is None:
                word = words.folded[index]
                if word in self._rules.denials:
                    return None
                owned = owned or word in self._rules.owners
                index = self._numbers.run_at(index).end
            elif hit.payload == label.payload == "serial":
                index = hit.end
                label = hit
            elif self._announces_another_number(hit):
                break
            else:
                index += 1
        return unlinked

    def _follows_link(self, index: int) -> bool:
        """Whether a word like "is", or "is the", stands before word `index`."""
        folded, links = self._words.folded, self._rules.links
        return folded[index - 1] in links or (
            index > 1 and folded[index - 2] in links and folded[index - 1] in self._rules.stop_words
        )

    def _announces_another_number(self, hit: PhraseMatch[LabelKind]) -> bool:
        """Whether a label of another kind is used as one: "order no. 4711" and "phone:", but not "with my phone"."""
        words = self._words
        if hit.payload != "other" or hit.end - hit.first > 1:
            return True
        if hit.end >= len(words.folded):
            return False
        return ":" in words.gap_before(hit.end) or bool(_DIGIT.search(self._numbers.run_at(hit.end).text))

    def _is_denied(self, label: PhraseMatch[LabelKind]) -> bool:
        """Whether the sentence says before the label that there is none: "I cannot find the serial number"."""
        for index in range(label.first, max(label.first - MAX_WORDS_TO_DENIAL, 0), -1):
            gap = self._words.gap_before(index)
            if _SENTENCE_END.search(gap) or "\n\n" in gap:
                return False
            if self._words.folded[index - 1] in self._rules.denials:
                return True
        return False

    def _values_below(self, label: PhraseMatch[LabelKind]) -> list[Number]:
        """The cells below a label that heads a column: "Model | Serial number" above "KX200 | 4711-A"."""
        words, text = self._words, self._words.text
        label_start = words.starts[label.first]
        line_start = text.rfind("\n", max(0, label_start - MAX_TABLE_LINE), label_start) + 1
        line_end = text.find("\n", label_start, label_start + MAX_TABLE_LINE)
        separator = "\t" if "\t" in text[line_start:line_end] else "|"
        if line_end < 0 or separator not in text[line_start:line_end]:
            return []
        column, columns = (text.count(separator, line_start, end) for end in (label_start, line_end))
        line_above = text[
            text.rfind("\n", max(0, line_start - MAX_TABLE_LINE), max(0, line_start - 1)) + 1 : line_start
        ]
        if line_above.count(separator) == columns:
            return []  # not the first row
        values: list[Number] = []
        for _ in range(MAX_TABLE_ROWS):
            line_start, line_end = line_end + 1, text.find("\n", line_end + 1)
            cells = text[line_start : line_end if line_end >= 0 else len(text)].split(separator)
            if len(cells) != columns + 1:
                break
            cell_start = line_start + sum(len(cell) + 1 for cell in cells[:column])
            first = bisect_left(words.starts, cell_start)
            is_inside = first < len(words.starts) and words.starts[first] < cell_start + len(cells[column])
            if is_inside and (value := self._numbers.value_at(first)):
                values.append(value)
            if line_end < 0:
                break
        return values

    def _value_before(self, label: PhraseMatch[LabelKind]) -> Number | None:
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
                value = self._numbers.value_at(self._numbers.first_of_run(index))
                return value if value and len(value.text) >= MIN_LENGTH_BEFORE_LABEL else None
            linked = linked or word in self._rules.links
        return None

    def _refers_back(self, label: PhraseMatch[LabelKind]) -> bool:
        """Whether the label speaks of what was said before: "those are the serial numbers"."""
        for index in range(label.first - 1, max(label.first - 1 - MAX_WORDS_TO_BACK_REFERENCE, -1), -1):
            if self._words.folded[index] in self._rules.back_references:
                return True
            if _SENTENCE_END.search(self._words.gap_before(index)):
                return False
        return False

    def _values_before(self, label: PhraseMatch[LabelKind]) -> list[Number]:
        """All numbers before the label that look alike, the last of them first."""
        values: list[Number] = []
        index = label.first - 1
        while index >= 0 and label.first - index < MAX_WORDS_BACK:
            first = self._numbers.first_of_run(index)
            run = self._numbers.run_at(first)
            if is_telling(run.text) and self._is_free_value(run) and (value := self._numbers.value_at(first)):
                if values and form(values[0].text) != form(value.text):
                    break
                values.append(value)
            index = first - 1
        return values

    def _is_free(self, index: int) -> bool:
        return index not in self._taken and index not in self._after_example

    def _is_free_value(self, value: Number) -> bool:
        return all(self._is_free(index) for index in range(value.first, value.end))

    def _keep(self, value: Number) -> None:
        self._found[value.first] = value
        self._taken.update(range(value.first, value.end))


def _outermost(hits: Iterable[PhraseMatch[LabelKind]]) -> Iterator[PhraseMatch[LabelKind]]:
    """Labels that are no part of a longer one: the "code" of "serial code" is none."""
    end = 0
    for hit in hits:
        if hit.end > end:
            end = hit.end
            yield hit
