"""Which number a label announces: "S/N 4711-A", "4711-A (serial number)", or the cell below a column's heading."""

from __future__ import annotations

import re
from bisect import bisect_left

from guarantee_email_agent.instructions.lexicon import LabelKind
from guarantee_email_agent.instructions.phrases import PhraseMatch
from guarantee_email_agent.interpreter.number_spans import LabelledText, NumberSpan, is_distinctive

MAX_WORDS_TO_VALUE = 25
MAX_WORDS_FROM_OTHER_LABEL = 5
MAX_WORDS_TO_DENIAL = 6
MAX_LINES_TO_VALUE = 3
MAX_WORDS_BEFORE_LABEL = 5
MAX_BRACKETS = 60
MAX_TABLE_LINE = 500
MAX_TABLE_ROWS = 50
MIN_LENGTH_BEFORE_LABEL = 5

SENTENCE_END = re.compile(r"[?!;]|[.](?=\s)")
_DIGIT = re.compile(r"[0-9]")


class LabelReader:
    """Reads the numbers of the labels of one text."""

    def __init__(self, text: LabelledText) -> None:
        self._words, self._lexicon, self._labels, self._reader = text

    def number_after(self, label: PhraseMatch[LabelKind]) -> NumberSpan | None:
        """The number that a label announces: "S/N 4711-A", "serial number on the back of the fan reads: 4711-A".

        Directly behind the label, also on a later line, any usable number will do. Further on in the sentence it must
        follow a colon or a word like "is", or at least not follow a word like "my": in "the serial number of my KX200
        is 4711-A" the first is a model, and so it may be in "Serial number? The KX200 hums". Words that say there is
        none end the search: "serial number unreadable".
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
            if newlines > MAX_LINES_TO_VALUE or (not is_direct and SENTENCE_END.search(gap)):
                # A question about the number of some model gives none.
                unlinked = None if "?" in gap else unlinked
                break
            if is_other and "," in gap:
                break
            owned = owned or (is_direct and "?" in gap)
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
            if SENTENCE_END.search(gap) or "\n\n" in gap:
                return False
            if self._words.folded[index - 1] in self._lexicon.denials:
                return True
        return False

    def numbers_in_column(self, label: PhraseMatch[LabelKind]) -> list[NumberSpan]:
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

    def number_before(self, label: PhraseMatch[LabelKind]) -> NumberSpan | None:
        """The number in "4711-A is my serial number" or "4711-A (serial number)"."""
        words, index, linked = self._words, label.first, False
        for _ in range(MAX_WORDS_BEFORE_LABEL):
            gap = words.gap_before(index)
            if index == 0 or "\n" in gap or SENTENCE_END.search(gap):
                return None
            linked = linked or "(" in gap or "=" in gap
            index -= 1
            word = words.folded[index]
            if linked and _DIGIT.search(word):
                number = self._reader.serial_number_at(self._reader.span_start(index))
                return number if number and len(number.text) >= MIN_LENGTH_BEFORE_LABEL else None
            linked = linked or word in self._lexicon.links
        return None
