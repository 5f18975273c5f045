"""Which number a label announces: "S/N 4711-A", "4711-A (serial number)", or the cell below a column's heading.

And which numbers say by themselves what they are: phone numbers, cards, accounts, articles, papers, parcels, standards.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from itertools import zip_longest
from typing import Final, Literal, NamedTuple

from guarantee_email_agent.instructions.lexicon import LabelKind, Lexicon
from guarantee_email_agent.instructions.look_up import WARRANTY
from guarantee_email_agent.instructions.phrases import PhraseMatch, TokenizedText
from guarantee_email_agent.reading.number_tokens import (
    NumberToken,
    ends_phrase,
    extend_number,
    is_prefix_word,
    is_shouted,
)

MAX_LABELS: Final = 1000  # no honest mail has so many; a hostile one shall not buy more time with more of them
MAX_WORDS_TO_PLATE: Final = 7
MAX_WORDS_TO_OWNER_OF_PLATE: Final = 3
MAX_WORDS_OF_SAYING: Final = 6
MAX_WORDS_TO_CLAIM: Final = 15
WEIGHT_OF_DEVICE: Final = 1
"""That of the devices' names among what speaks for a warranty."""
MAX_WORDS_TO_VALUE: Final = 25
MAX_WORDS_FROM_OTHER_LABEL: Final = 5
MAX_WORDS_TO_DENIAL: Final = 6
MAX_LINES_TO_VALUE: Final = 3
MAX_WORDS_BEFORE_LABEL: Final = 5
MAX_BRACKETS: Final = 60
MAX_TABLE_LINE: Final = 500
MAX_TABLE_ROWS: Final = 50
MIN_LENGTH_BEFORE_LABEL: Final = 5
MIN_LENGTH: Final = 5
"""Letters and digits of a number that a label announces: fewer are a part of one, but for one that ends a phrase."""
MAX_CAPITALS: Final = 4
_BEHIND_BARE_LABEL: Final = " \t\n.,:°#("
_DASHES: Final = ("-", "–", "—", "->", "=>")
MAX_LENGTH_DIFFERENCE: Final = 3

BARE_NUMBER: Final = re.compile(r"(?:[A-Z]{1,5}[-/. ]?[0-9]|[0-9]{1,5}[-/. ]?[A-Z])(?:[-/. ]?[A-Z0-9]){4,}")
"""What a bare "no." makes a serial number, and what two devices have: more letters and digits than a model has."""

_DIGIT: Final = re.compile(r"[0-9]")
_ASKED: Final = re.compile(r"\s*\?")
_LETTER: Final = re.compile(r"[A-Z]")
_ALPHANUMERIC: Final = re.compile(r"[A-Z0-9]")
_LIST_GAP: Final = re.compile(r"[ \t]{0,9}(?:[,;/&+]\s{0,9}|\n[ \t]{0,9}(?:[-*•][ \t]{1,9})?)")
_CLAUSE_END: Final = re.compile(r"[,.;:!?()\n]")
_PUNCTUATION: Final = re.compile(r"[ \t,]*")
Claim = Literal["own", "weak", "other", "example"]
"""What a label says of its number: that it is the kind looked for, may be, is another, or is nobody's."""


class Label(NamedTuple):
    """words[first:end]."""

    first: int
    end: int
    claim: Claim


class NumberText(NamedTuple):
    """A text with its numbers, by their first words and by all of their words, and its labels by their first words."""

    words: TokenizedText
    lexicon: Lexicon
    labels: Mapping[int, Label]
    numbers: Mapping[int, NumberToken]
    number_of: Mapping[int, NumberToken]

    def next_in_list(self, number: NumberToken) -> NumberToken | None:
        """The number that follows in "4711-A, 4712-B and 4713-C"."""
        words, index = self.words, number.end
        if index >= len(words.folded):
            return None
        if words.folded[index] in self.lexicon.joiners and _PUNCTUATION.fullmatch(words.gaps[index]):
            index += 1
            if index >= len(words.folded) or words.gaps[index].strip():
                return None
        elif not _LIST_GAP.fullmatch(words.gaps[index]):
            return None
        return self.numbers.get(index)

    def extend(self, number: NumberToken) -> NumberToken:
        """The number with all its groups, where a label or a question announces it."""
        return extend_number(number, self.words, self.lexicon, self.numbers)


def have_similar_shape(first: NumberToken, other: NumberToken) -> bool:
    """Numbers in one list look alike: with letters or without, and about as long."""
    are_alike = first.text.isdigit() == other.text.isdigit()
    return are_alike and abs(len(first.text) - len(other.text)) <= MAX_LENGTH_DIFFERENCE


def is_completed_by(first: NumberToken, other: NumberToken) -> bool:
    """Whether a number begins with another: YM-0418-22 with YM 0418."""
    beginning, whole = (_NOT_ALPHANUMERIC.sub("", number.text) for number in (first, other))
    return whole.startswith(beginning)


class LabelReader:
    """Reads the numbers of the labels of one text.

    may_be_ours: whether a number may stand behind a label of ours. tells: whether its form says that it is one, so that
    it may stand further off.
    """

    def __init__(
        self,
        text: NumberText,
        may_be_ours: Callable[[NumberToken], bool],
        tells: Callable[[NumberToken], bool],
    ) -> None:
        self._text = text
        self._words, self._lexicon, self._labels, self._numbers, self._number_of = text
        self._denials = self._lexicon.denials_in(self._words)
        numbers = (match for match in self._lexicon.labels.find(self._words) if match.payload == "number")
        self.number_words = {index for match in numbers for index in range(match.first, match.end)}
        self._may_be_ours = may_be_ours
        self._tells = tells

    def number_after(self, label: Label) -> NumberToken | None:
        """The number that a label announces: "S/N 4711-A", "serial number on the back of the fan reads: 4711-A".

        Directly behind the label, also on a later line, any usable number will do. Further on in the sentence it must
        follow a colon or a word like "is", or at least not follow a word like "my": in "the serial number of my KX200
        is 4711-A" the first is a model, and so it may be in "Serial number? The KX200 hums". Words that say there is
        none end the search: "serial number unreadable".
        """
        words, index = self._words, label.end
        colon, owned, negated = False, False, self.is_negated(label)
        is_other = label.claim == "other"
        unlinked: NumberToken | None = None
        for _ in range(MAX_WORDS_FROM_OTHER_LABEL if is_other else MAX_WORDS_TO_VALUE):
            if index >= len(words.folded):
                break
            gap = words.gaps[index]
            is_direct = index == label.end
            newlines = gap.count("\n")
            # "the number is below:", "the number is", and it stands in the next paragraph
            is_announced = ":" in gap or words.folded[index - 1] in self._lexicon.links
            is_new = words.starts_sentence[index] and not (is_announced and "." not in gap)
            if newlines > MAX_LINES_TO_VALUE or (not is_direct and is_new):
                # A question about the number of some model gives none.
                unlinked = None if "?" in gap else unlinked
                break
            if is_other and "," in gap and not (is_direct and index in self._numbers):
                break
            owned = owned or (is_direct and "?" in gap)
            colon = colon or ":" in gap or "|" in gap or "\t" in gap
            is_linked = (
                (is_direct and not (negated and "," in gap)) or ":" in gap or "=" in gap or gap.strip() in _DASHES
            )
            is_linked = is_linked or (self.follows_link_word(index) and not negated)
            is_linked = is_linked or (is_other and self._follows_stop_words(label, index))
            number = self._claimed_at(index) if is_other else self._number_at(index, is_linked=is_linked)
            if number is not None:
                if is_linked or (newlines == 1 and self._ends_line(number)):
                    return number
                # The XX of "S/N XX KT-77120-9" may belong to it.
                is_cut = index == label.end + 1 and self._has_capitals_before(number)
                if unlinked is None and not (negated or owned or is_other or is_cut) and self._tells(number):
                    unlinked = number
            if newlines and (colon or newlines > 1):
                break  # an empty field of a form: what follows is the next field
            following = self._labels.get(index)
            if is_direct and "(" in gap and (behind := self._end_of_brackets(index)):
                # "(on the back)" says nothing of the number behind it
                index = behind
                label = label._replace(end=behind)
            elif following is None:
                word = words.folded[index]
                if index in self._denials:
                    return None
                owned = owned or word in self._lexicon.owners
                inside = self._number_of.get(index)
                index = inside.end if inside else index + 1
            elif following.claim == label.claim == "own":
                index, label = following.end, following
            elif following.claim == "example" and (behind := self._end_of_brackets(following.first)):
                index = behind
            elif self._starts_other_label(following):
                break
            else:
                index += 1
        return unlinked

    def _claimed_at(self, index: int) -> NumberToken | None:
        """The number that another label takes, also behind its letters: "type RX 4400"."""
        return self._numbers.get(index) or (self._numbers.get(index + 1) if self._prefixed(index) else None)

    def _follows_stop_words(self, label: Label, index: int) -> bool:
        """Whether nothing else stands between a label and word `index`: "the barcode with 376"."""
        between = self._words.folded[label.end : index]
        return all(word in self._lexicon.stop_words or word in self._lexicon.links for word in between)

    def _number_at(self, index: int, *, is_linked: bool) -> NumberToken | None:
        """A number that may be ours; all its groups count where it is announced."""
        number = self._numbers.get(index)
        if is_linked and (number := number or self._prefixed(index)):
            number = self._text.extend(number)
            if self._has_capitals_before(number) or self._is_joined_before(number):
                number = number._replace(is_whole=False)  # the LA of "SERIAL NUMBER LA 77 10 40"
            if self._is_short(number):
                number = number._replace(is_read=False)  # the EX-5 of "EX-5 and then it is torn"
        return number if number and self._may_be_ours(number) else None

    def _is_short(self, number: NumberToken) -> bool:
        length = len(_ALPHANUMERIC.findall(number.text))
        is_known = self._tells(number) or self._lexicon.self_labelled.fullmatch(number.text)
        return 2 < length < MIN_LENGTH - ends_phrase(self._words, number.end) and not is_known

    def _prefixed(self, index: int) -> NumberToken | None:
        """The number whose letters stand before a blank: "KS 40-0071-8"."""
        words, following = self._words, self._numbers.get(index + 1)
        is_prefixed = following and words.gaps[index + 1] == " " and is_prefix_word(words, index, self._lexicon)
        is_label = index in self._labels or index in self.number_words
        if following is None or not is_prefixed or is_label:
            return None
        letters = words.text_of(index, index + 1)
        if len(letters) > 1 and following.text[0].isalpha():
            return None  # the OK of "OK KT-77120-9"
        before = words.text_of(index - 1, index) if index and words.gaps[index] == " " else ""
        is_cut = len(letters) == len(before) == 1 and before.isupper()  # the T of "T S 9 0 1 K"
        is_cut = is_cut or following.text[0].isalpha()  # the B of "plan B KT-77120-9"
        begins = index == 0 or words.starts_sentence[index]
        # The OK of "OK 4471 0815 22".
        is_cut = is_cut or (begins and index in self._lexicon.meanings.known_words(self._words))
        return following._replace(first=index, text=letters + following.text, is_read=following.is_read and not is_cut)

    def completed(self, number: NumberToken) -> NumberToken:
        """The number with the letters before a blank that may belong to it, and with all its groups."""
        prefixed = self._prefixed(number.first - 1) if number.first else None
        number = self._text.extend(prefixed or number)
        before = self._number_of.get(number.first - 1)
        # The 1940 of "1940 2218-4" may be a year, or a group, and so may that of "1940 Z 2218".
        is_group = before is not None and before.text.isdigit() and (prefixed or number.text[0].isdigit())
        is_cut = bool(is_group) and self._words.gaps[number.first] == " "
        is_cut = is_cut or self._is_joined_before(number) or self._follows_capital_link(number)
        return number._replace(is_whole=False) if is_cut else number

    def _follows_capital_link(self, number: NumberToken) -> bool:
        """Whether a word like "as" stands before digits in capitals, though no others do: "AS 441 20 76"."""
        words, before = self._words, number.first - 1
        if before < 0 or words.gaps[number.first] != " " or not number.text[0].isdigit():
            return False
        is_capital = _is_capitals(words.text_of(before, before + 1)) and not is_shouted(words, before)
        return is_capital and words.folded[before] in self._lexicon.links

    def _has_capitals_before(self, number: NumberToken) -> bool:
        """Whether a few capitals stand before a blank, of which it is open whether they belong to the number."""
        words, before = self._words, number.first - 1
        if words.gaps[number.first] != " " or self._is_in_label(before):
            return False
        text = words.text_of(before, before + 1)
        known = self._lexicon.joiners | self._lexicon.denials
        if _LETTER.search(number.text) or is_shouted(words, before):
            known |= self._lexicon.links  # in "serial number AS 4471", the AS is hardly a word
        return _is_capitals(text) and words.folded[before] not in known

    def _is_joined_before(self, number: NumberToken) -> bool:
        """Whether a dash joins a number to a word, or any joint to capitals: "MODEL-X 1940", "RV - A 1940"."""
        words, before, gap = self._words, number.first - 1, self._words.gaps[number.first]
        if gap == "-" and self._lexicon.self_labelled.fullmatch(f"{words.text_of(before, number.first)}-{number.text}"):
            return True  # the SN of "SN-A 019-5562" may be its beginning
        is_beside = before >= 0 and gap in (" ", ". ")
        is_spelled = is_beside and len(words.folded[before]) == 1 == len(words.folded[number.first])
        if is_spelled and words.folded[before] not in self._lexicon.stop_words | {"x"}:
            return not self._is_in_label(before)  # the v of "v 2 0 4 4"
        if before < 0 or gap.strip(" ") not in (*_DASHES, "_", "/", ".") or self._is_in_label(before, "own"):
            return False
        written = words.text_of(before, before + 1)
        is_letters = _is_capitals(written) or (len(written) == 1 and written.isupper())  # the N of "N/M 4 0 2 8 8 1"
        return gap in _DASHES or (not self._is_in_label(before) and is_letters)

    def _is_in_label(self, index: int, claim: Claim | None = None) -> bool:
        labels = self._labels.values()
        return any(label.first <= index < label.end and claim in (None, label.claim) for label in labels)

    def _ends_line(self, number: NumberToken) -> bool:
        return number.end == len(self._words.folded) or "\n" in self._words.gaps[number.end]

    def _end_of_brackets(self, index: int) -> int | None:
        """The word behind the brackets that word `index` begins, as in "Serial number (e.g. SN12345): 4711-A"."""
        words, start = self._words, self._words.starts[index]
        if "(" not in words.gaps[index]:
            return None
        end = words.text.find(")", start, start + MAX_BRACKETS)
        return bisect_left(words.starts, end) if end >= 0 else None

    def follows_link_word(self, index: int) -> bool:
        """Whether a word like "is", or "is the", stands before word `index`."""
        folded, links = self._words.folded, self._lexicon.links
        return (index > 0 and folded[index - 1] in links) or (
            index > 1 and folded[index - 2] in links and folded[index - 1] in self._lexicon.stop_words
        )

    def is_all_of_clause(self, number: NumberToken) -> bool:
        """Whether a word like "is" stands before a number, and in its clause nothing else that says what it is of."""
        words, index = self._words, number.first
        known = self._lexicon.links | self._lexicon.stop_words
        while index and (index == number.first or not _CLAUSE_END.search(words.gaps[index])):
            index -= 1
            if words.folded[index] not in known and not self._is_in_label(index):
                return False
        return self.follows_link_word(number.first)

    def _starts_other_label(self, label: Label) -> bool:
        """Whether a label of another kind is used as one: "order no. 4711" and "phone:", but not "with my phone"."""
        words = self._words
        if label.claim != "other" or label.end - label.first > 1:
            return True
        if label.end >= len(words.folded):
            return False
        return ":" in words.gaps[label.end] or label.end in self._numbers

    def is_negated(self, label: Label) -> bool:
        """Whether the sentence says before the label that there is none: "I cannot find the serial number"."""
        words = self._words
        for index in range(label.first, max(label.first - MAX_WORDS_TO_DENIAL, 0), -1):
            if words.starts_sentence[index] or "," in words.gaps[index]:
                return False
            if index - 1 in self._denials:
                return True
        return False

    def numbers_in_column(self, label: Label) -> list[NumberToken]:
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
        numbers: list[NumberToken] = []
        for _ in range(MAX_TABLE_ROWS):
            line_start, line_end = line_end + 1, text.find("\n", line_end + 1)
            cells = text[line_start : line_end if line_end >= 0 else len(text)].split(separator)
            if len(cells) != columns + 1:
                break
            cell_start = line_start + sum(len(cell) + 1 for cell in cells[:column])
            first = bisect_left(words.starts, cell_start)
            is_inside = first < len(words.starts) and words.starts[first] < cell_start + len(cells[column])
            if is_inside and (number := self._number_at(first, is_linked=True)):
                numbers.append(number)
            if line_end < 0:
                break
        return numbers

    def is_question(self, label: Label) -> bool:
        """Whether a question ends in it: "It is a KX2000-1, where is the serial number?" tells none."""
        return _ASKED.match(self._words.text, self._words.ends[label.end - 1]) is not None

    def number_before(self, label: Label) -> NumberToken | None:
        """The number in "4711-A is my serial number" or "4711-A (serial number)"."""
        words, index, linked = self._words, label.first, False
        # "Toaster TS90018, serial number"
        is_last = label.end == len(words.folded) or "\n" in words.gaps[label.end]
        has_name = not is_last and words.gaps[label.end] == " " and words.text_of(label.end, label.end + 1)[0].isupper()
        if label.claim == "other" and "(" in words.gaps[index] and has_name:
            return None  # "4711-A (model Aroma)", not "4711-A (order number of yours)"
        for _ in range(MAX_WORDS_BEFORE_LABEL):
            gap = words.gaps[index]
            if index == 0 or "\n" in gap or words.starts_sentence[index]:
                return None
            linked = linked or "(" in gap or "=" in gap or (is_last and "," in gap)
            index -= 1
            if linked and (inside := self._number_of.get(index)):
                is_number = self._may_be_ours(inside) and len(inside.text) >= MIN_LENGTH_BEFORE_LABEL
                return inside if is_number else None
            linked = linked or words.folded[index] in self._lexicon.links
        return None


def number_text(
    words: TokenizedText, lexicon: Lexicon, labels: Mapping[int, Label], numbers: Sequence[NumberToken]
) -> NumberText:
    """labels: by their first words, none inside another."""
    by_word = {index: number for number in numbers for index in range(number.first, number.end)}
    by_first = {number.first: number for number in numbers}
    return NumberText(words, lexicon, labels, by_first, by_word)


def _is_capitals(text: str) -> bool:
    return 1 < len(text) <= MAX_CAPITALS and text.isupper() and text.isalpha()


def find_labels(words: TokenizedText, lexicon: Lexicon) -> list[PhraseMatch[LabelKind]]:
    """The labels in a text. What says that a number stands on a device is a weak one.

    "The number on the sticker" does, and "underneath it says: 4711-A"; "the number on the back of a receipt" does not.
    So does a bare "no. KT-77120-9", unless it may be the number of something else.
    """
    # "he read it with his phone: 4711-A", not "call me with my phone 4711"
    helpers = (match for match in lexicon.other_owners.find(words) if match.payload)
    helped = [match for match in helpers if not _has_digit(words, match.end) or ":" in words.gaps[match.end]]
    found = [
        match
        for match in lexicon.labels.find(words)[:MAX_LABELS]
        if not any(each.first <= match.first and match.end <= each.end for each in helped)
    ]
    labels: list[PhraseMatch[LabelKind]] = []
    number: PhraseMatch[LabelKind] | None = None
    is_possible = any(match.payload in ("number", "plate") for match in found)
    devices = _words_of_devices(words, lexicon) if is_possible else set[int]()
    end_of_plate = 0
    for match, following in zip_longest(found, found[1:]):
        if match.end <= end_of_plate:
            continue  # the "barcode" of "under the barcode"
        if match.payload == "plate":
            end_of_plate = match.end
        if labels and match.first < labels[-1].end and match.payload in ("number", "plate"):
            continue  # the "number" of "order number" is part of that label
        if match.payload == "number":
            # "No" is a number's label where it is cut short: "no. 4711"
            written = words.text_of(match.first, match.end).casefold()
            if written in lexicon.denials and "." not in "".join(words.gaps[match.end : match.end + 1]):
                continue
            if labels and labels[-1].payload == "other" and labels[-1].end == match.first:
                labels[-1] = labels[-1]._replace(end=match.end)  # "invoice, no. 4711"
                continue
            number = match
            if end := _end_of_bare_label(words, match, labels, lexicon, devices):
                labels.append(match._replace(end=end, payload="weak"))
        elif match.payload != "plate":
            number = None
            labels.append(match)
        elif _is_on_paper(words, match.end, following) or _is_of_label(words, labels, match):
            number = None
        elif number is not None and not _is_cut(words, number.end, match.end, MAX_WORDS_TO_PLATE):
            if labels and labels[-1].first == number.first:
                labels.pop()  # "the number on the sticker underneath"
            labels.append(number._replace(end=match.end, payload="weak"))
        elif end := _end_of_saying(words, match, following, lexicon, devices):
            labels.append(match._replace(end=end, payload="weak"))
        elif end := _end_of_saying_before(words, match.first, labels, lexicon):
            labels.append(PhraseMatch(end - 1, end, "weak"))
    return labels


def _has_digit(words: TokenizedText, index: int) -> bool:
    return index < len(words.folded) and _DIGIT.search(words.folded[index]) is not None


def _is_of_label(words: TokenizedText, labels: list[PhraseMatch[LabelKind]], plate: PhraseMatch[LabelKind]) -> bool:
    """Whether it says where the number of another label stands: "the model number on the back"."""
    is_other = bool(labels) and labels[-1].payload in ("other", "example")
    return is_other and not _is_cut(words, labels[-1].end, plate.end, MAX_WORDS_TO_PLATE)


def _is_on_paper(words: TokenizedText, end: int, following: PhraseMatch[LabelKind] | None) -> bool:
    """Whether another label says what words[:end] stand on: "the back of the receipt"."""
    if following is None or following.payload != "other":
        return False
    return not _is_cut(words, end, following.first + 1, MAX_WORDS_TO_OWNER_OF_PLATE)


def _is_cut(words: TokenizedText, first: int, end: int, most: int) -> bool:
    """Whether words[first:end] are more than `most`, or a sentence begins or a number stands between."""
    is_far = end - first > most
    return is_far or any(words.starts_sentence[at] or _DIGIT.search(words.folded[at]) for at in range(first, end))


def _words_of_devices(words: TokenizedText, lexicon: Lexicon) -> set[int]:
    return {
        index
        for match in lexicon.topics.find(words)
        if match.payload.topic in WARRANTY.topics and match.payload.weight == WEIGHT_OF_DEVICE
        for index in range(match.first, match.end)
    }


def _end_of_bare_label(
    words: TokenizedText,
    number: PhraseMatch[LabelKind],
    labels: Sequence[PhraseMatch[LabelKind]],
    lexicon: Lexicon,
    devices: Collection[int],
) -> int | None:
    """The end of "no." in "my kettle, no. KT-77120-9" or of "its number is"; None in "cheque no. KT-77120-9"."""
    first, end = number.first, number.end
    if _is_claimed(words, labels, first):
        return None
    passed_over = lexicon.links, lexicon.stop_words, lexicon.owners
    is_apart = not first or words.starts_sentence[first] or words.starts_line(first) or ":" in words.gaps[first]
    follows_word = words.gaps[first].isspace() and any(words.folded[first - 1] in each for each in passed_over)
    if not (is_apart or follows_word or first - 1 in devices):
        return None
    while end < len(words.folded) and end - number.end < MAX_WORDS_TO_PLATE:
        if words.gaps[end].strip(_BEHIND_BARE_LABEL):
            return None
        if BARE_NUMBER.match(words.text, words.starts[end]):
            # What follows a device's name may be that of its model.
            is_announced = end - 1 not in devices or ":" in words.gaps[end]
            return end if is_announced else None
        if end not in devices and not any(words.folded[end] in each for each in passed_over):
            return None
        end += 1
    return None


def _end_of_saying(
    words: TokenizedText,
    plate: PhraseMatch[LabelKind],
    following: PhraseMatch[LabelKind] | None,
    lexicon: Lexicon,
    devices: Collection[int],
) -> int | None:
    """The end of "says" in "underneath it says: 4711-A", of "number" in "on the back is the number 4711-A".

    That of the plate itself before a colon, or behind "it says on the back"; None where no number follows.
    """
    links, end = lexicon.links, plate.end
    number = range(following.first, following.end) if following and following.payload == "number" else range(0)
    most = MAX_WORDS_TO_PLATE if number else MAX_WORDS_OF_SAYING
    is_said = not links.isdisjoint(words.folded[max(plate.first - MAX_WORDS_OF_SAYING, 0) : plate.first])
    is_owned = False
    for at in range(end, min(end + most, len(words.folded))):
        word = words.folded[at]
        is_bare = BARE_NUMBER.match(words.text, words.starts[at]) is not None
        is_linked = at > end or ":" in words.gaps[at] or (is_said and is_bare)
        if is_owned:  # "the back of the kettle says KT-77120-9", not "the back of my KX200"
            is_linked = is_bare and words.folded[at - 1] in links
        if is_linked and at not in number and any(map(_DIGIT.search, words.folded[at : at + 2])):
            return at
        # In "the plate has the number 4711" the article is not that of a device.
        is_of_device = (word in lexicon.owners and at + 1 not in number) or at in devices
        is_owned = is_owned or is_of_device
        is_known = is_of_device or at in number or word in links or word in lexicon.stop_words
        if words.starts_sentence[at] or not is_known:
            return None
    return None


def _end_of_saying_before(
    words: TokenizedText, plate: int, labels: Sequence[PhraseMatch[LabelKind]], lexicon: Lexicon
) -> int | None:
    """The end of "says" in "it says KT-77120-9 on the back"; None in "your letter says KT-77120-9 on the back"."""
    for at in range(plate - 1, max(plate - MAX_WORDS_TO_PLATE, labels[-1].end if labels else 0, 1) - 1, -1):
        if words.starts_sentence[at]:
            return None
        if words.folded[at - 1] in lexicon.links and (number := BARE_NUMBER.match(words.text, words.starts[at])):
            is_begin = at == 1 or words.starts_sentence[at - 1] or words.starts_line(at - 1)
            is_of_nothing = is_begin or words.folded[at - 2] in lexicon.stop_words
            behind = words.folded[bisect_left(words.starts, number.end()) : plate]
            is_near = all(word in lexicon.stop_words for word in behind)
            return at if is_of_nothing and is_near and not _is_claimed(words, labels, at - 1) else None
    return None


def _is_claimed(words: TokenizedText, labels: Sequence[PhraseMatch[LabelKind]], first: int) -> bool:
    """Whether the last label before word `first` is that of another number, which is still to come."""
    between = words.folded[labels[-1].end if labels else 0 : first]
    is_other = bool(labels) and labels[-1].payload == "other" and len(between) < MAX_WORDS_TO_CLAIM
    return is_other and not any(map(_DIGIT.search, between))


def outermost(labels: Sequence[Label]) -> Iterator[Label]:
    """Labels that are no part of a longer one: the "code" of "serial code" is none."""
    end = 0
    for label in labels:
        if label.end > end:
            end = label.end
            yield label


A_PHONE_NUMBER: Final = "a phone number"
PHONE_REGIONS: Final = ("GB", "US", "DE", "AT", "CH", "FR", "BE", "ES", "MX", "PL", "IT", "NL", "IE", "AU", "IN", "ZA")
"""Where a number that is written without its country is tried."""

_STANDARDS: Final = (
    ("a bank account (IBAN)", r"[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}", "stdnum.iban"),
    ("a card", r"[3-6][0-9]{12,18}", "stdnum.luhn"),
    ("a phone (IMEI)", r"[0-9]{15}", "stdnum.imei"),
    ("an article (EAN, ISBN)", r"[0-9]{13}", "stdnum.ean"),
    ("a VAT number", r"[A-Z]{2}[0-9A-Z]{8,12}", "stdnum.eu.vat"),
    ("a personal number", r"[0-9]{11}", "stdnum.pl.pesel"),
    ("a tax number", r"[1-9][0-9]{10}", "stdnum.de.idnr"),
    ("a social security number", r"[12][0-9]{14}", "stdnum.fr.nir"),
    ("an identity card", r"[0-9]{8}[A-Z]", "stdnum.es.dni"),
    ("an identity card", r"[XYZ][0-9]{7}[A-Z]", "stdnum.es.nie"),
)
"""What it is, its form without blanks and hyphens, and the module of `python-stdnum` that knows its check digits."""

_FORMS: Final = re.compile(
    r"(?:19|20)[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])"  # a date without separators
    r"|(?:0[1-9]|[12][0-9]|3[01])(?:0[1-9]|1[0-2])(?:19|20)[0-9]{2}"
    r"|1Z[0-9A-Z]{16}|[A-Z]{2}[0-9]{9}[A-Z]{2}"  # parcels: UPS; UPU S10
    r"|[A-Z]{1,2}[0-9][A-Z0-9]?[0-9][A-Z]{2}|[0-9]{4}[A-Z]{2}|[A-Z][0-9][A-Z][0-9][A-Z][0-9]"  # postcodes: GB, NL, CA
    r"|[A-Z]{2}[0-9]{2} ?[A-Z]{3}"  # number plates: GB; others stand behind a hyphen
    r"|(?:[ABHLNP]|AT|BE|CH|DK|HU|NL|PT)-[0-9]{4}|RO-[0-9]{6}|PT?-[0-9]{4}-[0-9]{3}"  # postcodes behind their country
    r"|(?:[DEFIS]|CZ|DE|ES|FI|FIN|FR|IT|PL|SE|SK)-(?:[0-9]{2}-?[0-9]{3}|[0-9]{3}-[0-9]{2})"
    r"|(?:EN|ISO|IEC|DIN|VDE|BS|UL|ANSI|IEEE|RFC|CE|IP)[-/ ]?[0-9]{1,5}[A-Z]?"  # standards, with part and year
    r"(?:[-/.:][A-Z]?[0-9]{1,3}|[-/.:](?:19|20)[0-9]{2})*"
    r"|[-A-Z0-9._/]{1,60}[.][A-Z]{2,6}"  # a file or a domain
)
_WRITTEN_AS_PHONE: Final = re.compile(r"[+(0][0-9 ()/.-]{5,20}|[0-9]{2,4}(?:[ /.-][0-9]{2,4}){2,4}")
_SHORT_AREA: Final = re.compile(r"[0-9]{1,3}[^0-9]")
_NOT_ALPHANUMERIC: Final = re.compile(r"[^A-Z0-9]+")


@lru_cache(maxsize=256)
def find_standard(written: str) -> str | None:
    """What a number is, in words; None where it is none of those known. written: as it stands in the mail.

    A validator is loaded when a number has the form that it judges: most mails need none, and all of them take 0.2 s.
    """
    text = _NOT_ALPHANUMERIC.sub("", written.upper())
    if _WRITTEN_AS_PHONE.fullmatch(written) and _is_phone_number(written):
        return A_PHONE_NUMBER
    if _FORMS.fullmatch("".join(written.upper().split())):
        return "a date, a parcel, a post code, a standard or the like"
    for name, form, module in _STANDARDS:
        if re.fullmatch(form, text) and import_module(module).is_valid(text):
            return name
    return None


def _is_phone_number(written: str) -> bool:
    """Whether a number that is written as phone numbers are is one somewhere.

    One that begins neither with a zero nor with a sign is so in countries that dial none before an area of at most
    three digits: "612 345 678", not "4711 0815 22".
    """
    import phonenumbers  # start-up: 0.1 s

    is_told = written[0] in "+(0"
    if not (is_told or _SHORT_AREA.match(written)):
        return False
    for region in (None,) if written.startswith("+") else PHONE_REGIONS:
        try:
            number = phonenumbers.parse(written, region)
        except phonenumbers.NumberParseException:
            continue
        styles = (phonenumbers.PhoneNumberFormat.NATIONAL, phonenumbers.PhoneNumberFormat.INTERNATIONAL)
        if phonenumbers.is_valid_number(number) and (
            is_told or _digits(written) in {_digits(phonenumbers.format_number(number, style)) for style in styles}
        ):
            return True
    return False


def _digits(written: str) -> str:
    return "".join(filter(str.isdigit, written))
