"""The numbers of one kind in one text: those that count, with the reason, and why each other does not."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import compress, pairwise
from typing import Final, NamedTuple

from guarantee_email_agent.instructions.lexicon import Lexicon
from guarantee_email_agent.instructions.look_up import NumberFormat, NumberPattern
from guarantee_email_agent.instructions.phrases import PhraseMatcher, TokenizedText, fold, parse_phrase, tokenize
from guarantee_email_agent.reading.number_corrections import CorrectionReader
from guarantee_email_agent.reading.number_labels import (
    A_PHONE_NUMBER,
    BARE_NUMBER,
    MAX_LABELS,
    MIN_LENGTH_BEFORE_LABEL,
    Claim,
    Label,
    LabelReader,
    find_labels,
    find_standard,
    have_similar_shape,
    number_text,
    outermost,
)
from guarantee_email_agent.reading.number_tokens import (
    NumberToken,
    ends_phrase,
    find_address_words,
    find_number_tokens,
    is_distinctive,
    may_be_one_misread,
    shape,
)
from guarantee_email_agent.reading.parted_numbers import find_parted_numbers
from guarantee_email_agent.reading.unreadable import UnreadableSigns

MAX_WORDS_TO_BACK_REFERENCE: Final = 6
MAX_WORDS_BACK: Final = 60
MAX_PHONE_LINE: Final = 25
MAX_CONTACT_LINES: Final = 60  # to ask of a line whether it is a phone number takes up to a millisecond
MAX_STOP_WORDS_OF_CONTACT: Final = 3
MAX_PARTS_OF_LINE: Final = 6
MAX_WORDS_TO_ANNOUNCED: Final = 2
MAX_WORDS_OF_FIELD: Final = 4
MIN_LENGTH_OF_SAID: Final = 7
MAX_WORDS_OF_GREETING: Final = 6
MAX_NUMBERS_OF_COMBINED: Final = 4
MOST_OF_ANSWER: Final = (60, 4)
"""So many words may stand beside the number in an answer, and so many of them be known to nobody: a name, a place."""
MOST_BESIDE_DISTINCTIVE: Final = (80, 12)
"""The same beside a number of letters and digits: of 926 answers by other hands, none was read wrongly by it."""

MIN_DIGITS_OF_FORMAT: Final = 8
"""Shorter rows of digits fit a format by chance, so that they need a label all the same."""

MIN_DIGITS_OF_ARTICLE: Final = 12
"""So many digits alone are an article's, a parcel's or a card's, unless a label says otherwise."""

_NOT_ALPHANUMERIC: Final = re.compile(r"[^A-Z0-9]+")
_PARTS: Final = re.compile(r" [|·•–-] |, ")
_RUN: Final = re.compile(r"([A9])\1+")
_PHONE_LABEL: Final = re.compile(r"^[A-Za-z.]{0,9}[:.]?\s*")
_LABEL_CLAIMS: Final[Mapping[str, Claim]] = {"serial": "own", "weak": "weak", "other": "other", "example": "example"}
# A reply repeats the number, perhaps to somebody whose address was forged: no words, no status, and nothing that is a
# link.
_SAYS_SOMETHING: Final = re.compile(
    r"(?=[A-Z]{5})[B-DF-HJ-NP-TV-XZ]*[AEIOUY][B-DF-HJ-NP-TV-XZ]*[AEIOUY]|[.][A-Z]{2,}(?:/|$)"
)
UNREADABLE: Final = "could not be read in full"


class NumberReading(NamedTuple):
    """What a mail gives. `numbers` are distinct, upper case, in order of appearance; only they may be looked up.

    unreadable: a number stands where ours should, and not all of it was read. unconfirmed: numbers that might be
    ours, though nothing says so. labelled: `numbers` carry a label of their own, or a prefix that is one. dropped: the
    other numbers, as they stand in the mail, each with the reason in words.
    """

    numbers: tuple[str, ...] = ()
    unreadable: bool = False
    unconfirmed: tuple[str, ...] = ()
    labelled: bool = False
    is_answer: bool = False
    dropped: tuple[tuple[str, str], ...] = ()

    def picked(self, candidates: Iterable[str]) -> tuple[str, ...]:
        """`numbers`, where a model that read the same mail picked one of them; they count together."""
        keys = set(map(number_key, candidates))
        return self.numbers if any(number_key(number) in keys for number in self.numbers) else ()


def number_key(number: str) -> str:
    """Equal for two spellings of one number: `sn-12345`, `SN12345` and `12345`."""
    return _NOT_ALPHANUMERIC.sub("", number.upper()).removeprefix("SN")


class NumberReader:
    """One pass over one text.

    `_found` maps the first word of each number that counts to it, `_reasons` that of each other to why it does not.
    """

    def __init__(self, text: str, number_format: NumberFormat, lexicon: Lexicon) -> None:
        self._words = words = tokenize(text)
        self._lexicon = lexicon
        self._format = number_format
        self._is_serial = not number_format.labels
        in_lexicon = find_labels(words, lexicon)
        self._numbers = find_number_tokens(words, lexicon, in_lexicon, _patterns(number_format.patterns))
        found = [Label(each.first, each.end, _LABEL_CLAIMS[each.payload]) for each in in_lexicon]
        self._labels = {label.first: label for label in outermost(self._claims(found))}
        numbers = (match.end for match in lexicon.labels.find(words) if match.payload == "number")
        self._label_ends = {label.end for label in self._labels.values()}.union(numbers)
        self._found: dict[int, NumberToken] = {}
        self._reasons: dict[int, str] = {}
        if not self._numbers:
            return
        self._text = number_text(words, lexicon, self._labels, self._numbers)
        self._drop_addresses_and_examples()
        self._drop_other_devices()
        self._usable = {each.first: each for each in self._numbers if self._may_be_labelled(each)}
        self._label_reader = LabelReader(self._text, self._may_be_labelled, self._has_form)
        self._combined = dict(self._find_combined_labels()) if self._is_serial else {}
        self._drop_claimed()
        self._find_formatted()
        self._find_labelled("own")
        if not self._found and not self._denies_number():
            self._find_labelled("weak")
        if self._found:
            self._find_same_shape()
        labelled, self._found = self._found, self._corrected(self._found)
        taken_back = (first for first, number in labelled.items() if self._found.get(first) != number)
        self._reasons.update((first, "was taken back or replaced") for first in taken_back)

    @property
    def asks_for_number(self) -> bool:
        """Whether a text speaks of such a number at all."""
        return any(label.claim == "own" for label in self._labels.values())

    def read(self, *, asked: bool) -> NumberReading:
        """asked: the text answers the question for such a number, so that a lone one needs no label."""
        if not self._numbers:
            return NumberReading()
        found, labelled = self._found, bool(self._found)
        if asked and not found:
            found = self._answer()
        is_answer = asked and bool(found) and self._says_little_else([*found.values()])
        if any(not number.is_usable for number in found.values()):
            return NumberReading(unreadable=True, labelled=labelled, dropped=self._dropped({}, UNREADABLE))
        ours = [found[first] for first in sorted(found) if self._is_ours(found[first])]
        by_key = {number_key(number.text): number for number in reversed(ours)}
        numbers = tuple(number.text for number in ours if by_key[number_key(number.text)] is number)
        unconfirmed = () if numbers else tuple(dict.fromkeys(self._unconfirmed()))
        if len(unconfirmed) > 1 and self._are_of_devices(unconfirmed):
            numbers = unconfirmed  # none is looked up where there are several
        unreadable = asked and not numbers and any(self._is_open(number) for number in self._numbers)
        dropped = self._dropped(by_key, "has no label")
        return NumberReading(numbers, unreadable, unconfirmed, labelled, is_answer, dropped)

    def _claims(self, in_lexicon: list[Label]) -> list[Label]:
        """The labels in the text, with what they say of the kind of number that is looked for."""
        if self._is_serial:
            return in_lexicon
        own = [Label(match.first, match.end, "own") for match in _matcher(self._format.labels).find(self._words)]
        inside = {index for label in own for index in range(label.first, label.end)}
        # The "order" of "order number" claims nothing by itself.
        others = [
            label if label.claim == "example" else label._replace(claim="other")
            for label in in_lexicon
            if label.first not in inside
        ]
        return sorted((*own, *others))

    def _corrected(self, found: Mapping[int, NumberToken]) -> dict[int, NumberToken]:
        return CorrectionReader(self._text, self._usable).apply(found)

    def _drop_addresses_and_examples(self) -> None:
        words = find_address_words(self._words)
        for label in self._labels.values():
            # The "NP" of NP-27730-1 is no "for example".
            if label.claim == "example" and label.first not in self._text.number_of:
                words.update(_words_of_example(self._words, label.end))
        self._drop(words, "belongs to something else, such as an address, a link or an example")

    def _drop_other_devices(self) -> None:
        """ "My neighbour's is NB-33301-7, mine has none": a number in a sentence on somebody else's device.

        In "my neighbour helped me, it is NB-33301-7" it is not.
        """
        helps_in: dict[tuple[int, int], list[bool]] = {}
        for match in self._lexicon.other_owners.find(self._words)[:MAX_LABELS]:
            sentence = self._sentence_around(match.first)
            if match.payload and any(each in self._text.number_of for each in range(sentence[0], match.first)):
                continue  # "hers is NB-33301-7, she wrote it down for me"
            if not match.payload or sentence in helps_in:  # who helps is named first
                helps_in.setdefault(sentence, []).append(match.payload)
        for (first, end), helps in helps_in.items():
            if len(helps) == 1 or not all(helps[1:]):
                self._drop(range(first, end), "is of somebody else's device")

    def _drop(self, words: Iterable[int], reason: str) -> None:
        for index in words:
            if number := self._text.number_of.get(index):
                self._reasons.setdefault(number.first, reason)

    def _may_be_labelled(self, number: NumberToken) -> bool:
        """Whether a number may stand behind a label of ours; one of which a part was not read may."""
        if number.first in self._reasons or self._lexicon.never.fullmatch(number.text) or self._is_measure(number):
            return False
        return not (number.is_read and number.is_plain) or bool(self._lexicon.labelled.fullmatch(number.text))

    def _is_measure(self, number: NumberToken) -> bool:
        """Whether a unit stands behind a number: "220-240 V"."""
        unit = self._words.folded[number.end].upper() if number.end < len(self._words.folded) else ""
        return self._lexicon.never.fullmatch(f"{number.text}{unit}") is not None

    def _drop_claimed(self) -> None:
        """Numbers that another label claims are out of the question."""
        in_combined = {index for both in self._combined.values() for index in range(both.first, both.end)}
        for label in self._labels.values():
            if label.claim != "other" or label.first in in_combined:
                continue
            reason = f"belongs to '{self._words.text_of(label.first, label.end)}'"
            if column := self._label_reader.numbers_in_column(label):
                self._reasons.update((cell.first, reason) for cell in column)
                continue
            number = self._label_reader.number_after(label)
            if number is None and (before := self._label_reader.number_before(label)):
                # "The serial number is 4711-A (model KX200)"
                number = None if self._is_announced(before) else before
            while number is not None:
                # A number's own prefix says more than a word further off.
                if number.first > label.end and self._is_self_labelled(number):
                    break
                self._reasons[number.first] = reason
                number = self._next_claimed(number)

    def _is_announced(self, number: NumberToken) -> bool:
        """Whether a label of ours stands right before a number, but for a word or two."""
        ends = range(number.first - MAX_WORDS_TO_ANNOUNCED, number.first + 1)
        return any(label.claim == "own" and label.end in ends for label in self._labels.values())

    def _next_claimed(self, number: NumberToken) -> NumberToken | None:
        """The next of a list, or the digits beside digits: "tel. 030 231 25014"."""
        following = self._text.numbers.get(number.end)
        if following and following.is_beside_last and following.text.isdigit() and number.text.isdigit():
            return following
        return self._text.next_in_list(number)

    def _is_self_labelled(self, number: NumberToken) -> bool:
        has_prefix = self._is_serial and not self._format.patterns
        return has_prefix and bool(self._lexicon.self_labelled.fullmatch(number.text))

    def _find_formatted(self) -> None:
        """Numbers that tell by themselves what they are: by their prefix, or by the company's own format."""
        free = [number for number in self._numbers if number.first not in self._reasons]
        self._found.update((number.first, number) for number in free if self._is_known_by_itself(number))

    def _is_known_by_itself(self, number: NumberToken) -> bool:
        if self._lexicon.never.fullmatch(number.text):
            return False
        is_formatted = number.is_usable and bool(self._format.patterns) and self._fits(number.text)
        return self._is_self_labelled(number) or (is_formatted and self._tells(number))

    def _has_form(self, number: NumberToken) -> bool:
        """Whether a number looks like one of ours, further off its label."""
        return self._fits(number.text) if self._format.patterns else is_distinctive(number.text)

    def _tells(self, number: NumberToken) -> bool:
        """Whether a number that fits a format does not do so by chance."""
        is_long = len(number.text) >= MIN_DIGITS_OF_FORMAT
        return is_distinctive(number.text) or (is_long and not self._has_standard_form(number))

    def _fits(self, text: str) -> bool:
        return any(pattern.strict.fullmatch(text) for pattern in _patterns(self._format.patterns))

    def _is_ours(self, number: NumberToken) -> bool:
        """Whether a number that counts may be looked up and repeated to its sender."""
        if _SAYS_SOMETHING.search(number.text):
            self._reasons[number.first] = "reads like words or a link, which no reply may repeat"
            return False
        if self._format.patterns and not self._fits(number.text):
            self._reasons[number.first] = "does not have the company's format"
            return False
        return True

    def _find_labelled(self, claim: Claim) -> None:
        for label in self._labels.values():
            if label.claim == claim:
                for number in self._numbers_of(label):
                    if claim == "own" or not (self._is_known_otherwise(number) or self._is_outdone(number)):
                        self._found[number.first] = number

    def _is_outdone(self, number: NumberToken) -> bool:
        """Whether a few digits stand beside what tells more of itself: "F3K2067714, below it 10-14"."""
        is_short = number.is_usable and len(number.text) < MIN_LENGTH_OF_SAID and not is_distinctive(number.text)
        others = (each for each in self._numbers if each.first in self._usable and each.first not in self._reasons)
        return is_short and any(is_distinctive(each.text) and len(each.text) > len(number.text) for each in others)

    def _denies_number(self) -> bool:
        """Whether there is none, so that what else stands on the device is something else."""
        own = (label for label in self._labels.values() if label.claim == "own")
        is_unsure = bool(self._lexicon.unsure_answers.find(self._words))
        return is_unsure or any(map(self._label_reader.is_negated, own))

    def _find_combined_labels(self) -> Iterator[tuple[int, Label]]:
        """Labels of two numbers at once, as in "Mod./Ser. no.", by the first word of the one for ours."""
        words = self._words
        for label, following in pairwise(self._labels.values()):
            if {label.claim, following.claim} == {"own", "other"}:
                between = words.text_between(label.end, following.first).strip(" .\t")
                if between in ("/", "&") or fold(between) in self._lexicon.joiners:
                    own = label if label.claim == "own" else following
                    yield own.first, Label(label.first, following.end, "own")

    def _numbers_of_combined(self, label: Label) -> list[NumberToken]:
        """Both numbers, since it is open which is which. One alone counts where its own prefix tells."""
        number = self._label_reader.number_after(label)
        number = number and self._text.numbers.get(number.first, number)
        listed = list[NumberToken]()
        while number is not None and len(listed) < MAX_NUMBERS_OF_COMBINED:
            listed.append(number)
            number = self._text.next_in_list(number)
        both = [each for number in listed for each in _cut_at_slash(number)]
        if len(both) > 1 or (both and self._is_self_labelled(both[0])):
            return both
        self._reasons.update((number.first, "may be that of the model") for number in listed)
        return []

    def _numbers_of(self, label: Label) -> list[NumberToken]:
        if label.first in self._combined:
            return self._numbers_of_combined(self._combined[label.first])
        number = self._label_reader.number_after(label)
        # Below a heading, the first number may be another column's.
        if number is None or "\n" in self._words.text_between(label.end, number.first):
            column = self._label_reader.numbers_in_column(label)
            if column := [cell for cell in column if cell.first not in self._reasons]:
                return column
        if number is None:
            if self._is_back_reference(label):
                return self._numbers_referred_to(label)
            if self._label_reader.is_question(label):
                return []
            number = self._label_reader.number_before(label)
            if number is not None and number.first not in self._reasons:
                return [number]
        listed = list[NumberToken]()
        while number is not None:
            is_alike = not listed or have_similar_shape(listed[0], number)
            if not (number.first in self._found or (is_alike and self._may_be_labelled(number))):
                break
            listed.append(number)
            number = self._text.next_in_list(number)
            number = number and self._text.extend(number)
        return listed

    def _find_same_shape(self) -> None:
        """In "serial numbers are TL-55091 and, for the other lamp, TL-55092" the second has the shape of the first.

        Beside a single one, so may another reading of it that is unclear itself: "... scratch that, TL-55097".
        """
        is_lone = len({number.text for number in self._found.values()}) == 1
        shapes = {shape(number.text) for number in self._found.values() if is_distinctive(number.text)}
        for number in self._numbers:
            is_free = number.first not in self._reasons and (number.is_usable or (is_lone and number.is_plain))
            whole = number if is_distinctive(number.text) or not is_free else self._label_reader.completed(number)
            if is_free and is_distinctive(whole.text) and shape(whole.text) in shapes:
                self._found.setdefault(whole.first, whole)

    def _is_back_reference(self, label: Label) -> bool:
        """Whether the label speaks of what was said before: "that is the serial number", not "that serial number"."""
        for index in range(label.first - 2, max(label.first - 1 - MAX_WORDS_TO_BACK_REFERENCE, -1), -1):
            if self._words.folded[index] in self._lexicon.back_references:
                return True
            if self._words.starts_sentence[index] or any(map(str.isdigit, self._words.folded[index])):
                return False  # what stands before a number does not speak of it
        return False

    def _numbers_referred_to(self, label: Label) -> list[NumberToken]:
        """All numbers before the label that look alike, the last of them first."""
        referred_to: list[NumberToken] = []
        for number in reversed(self._numbers):
            if number.end > label.first or label.first - number.end >= MAX_WORDS_BACK:
                continue
            if is_distinctive(number.text) and number.first not in self._reasons and number.first in self._usable:
                if referred_to and shape(referred_to[0].text) != shape(number.text):
                    break
                referred_to.append(number)
        return referred_to

    def _answer(self) -> dict[int, NumberToken]:
        """The numbers that are essentially all that the text says, or fill a line of it; hardly ever more than one."""
        labels = {index for label in self._labels.values() for index in range(label.first, label.end)}
        taken = labels | self._label_reader.number_words | self._contact_words(self._numbers[0])
        parted = list(find_parted_numbers(self._words, self._lexicon, taken))
        if len(parted) == 1 and self._is_whole_answer(parted[0]):
            return {parted[0].first: parted[0]}
        return self._given()

    def _is_whole_answer(self, number: NumberToken) -> bool:
        """Whether a number of groups that letters part is the only one in the text."""
        inside = range(number.first, number.end)
        tokens = [each for each in self._numbers if each.first in inside]
        others = [each for each in self._numbers if each.first not in inside and self._may_be_answer(each)]
        if others or any(each.first in self._reasons or not each.is_plain for each in tokens):
            return False
        if self._unknown(self._words_touching(number)) or not self._may_be_answer(number):
            return False
        labels = find_labels(self._words, self._lexicon)
        is_read = not UnreadableSigns(self._words, self._lexicon, labels).touch(number.first, number.end)
        is_doubted = self._is_announced_otherwise(number) or self._is_doubted([number], 0)
        return is_read and not is_doubted and self._says_little_else([number], MOST_BESIDE_DISTINCTIVE)

    def _given(self) -> dict[int, NumberToken]:
        contact = self._contact_words(self._numbers[0])
        never = self._lexicon.never  # "bought on 12/03/2024"
        free = [each for each in self._numbers if each.first not in contact and each.first not in self._reasons]
        free = [each for each in free if not (never.fullmatch(each.text) or self._is_announced_otherwise(each))]
        is_long = [len(each.text) >= MIN_LENGTH_BEFORE_LABEL for each in free]
        if any(is_long) and not self._is_count(free[0]):
            is_long[0] = True  # it may be the first group
        free = list(compress(free, is_long)) if any(is_long) else free[:1]
        alone = [each for each in free if self._is_alone(each)]
        is_alone = len({number_key(each.text) for each in alone}) == 1 and not self._rivals(free, alone[0])
        given = alone[:1] if is_alone else []
        for number in () if is_alone else free:
            if not given or number.first >= given[-1].end:
                given.append(self._label_reader.completed(number))
        claimed = {each.first for each in self._numbers if each.first in self._reasons}
        if any(not claimed.isdisjoint(range(each.first, each.end)) for each in given):
            return {}  # "1180 20447 is my order number"
        corrected = self._corrected({number.first: number for number in given})
        given = list(corrected.values())
        if not given or self._is_doubted(given, self._start_of_announcement(given[0]) if is_alone else 0):
            return {}
        # The "bt" of "bt 330 118" may be a part of the number.
        unknown = self._unknown(index for number in given for index in self._words_touching(number))
        most = MOST_BESIDE_DISTINCTIVE if is_distinctive(given[0].text) else MOST_OF_ANSWER
        is_known = is_alone or self._says_little_else(given, most)
        if unknown or not is_known or not all(map(self._may_be_answer, given)):
            return {}
        return corrected if all(have_similar_shape(given[0], number) for number in given) else {}

    def _is_doubted(self, given: Sequence[NumberToken], start: int) -> bool:
        """Whether a question, a denial from word `start` on or a sign of doubt makes it open that numbers are ours."""
        words, lexicon = self._words, self._lexicon
        phrases = lexicon.meanings.words_of_phrases(words)
        before = set(range(start, given[0].first)).difference(phrases)
        last = given[0].first - 1
        is_label = last + 1 in self._label_ends and words.gaps[last + 1].startswith(".")
        is_sign = last >= 0 and words.text_of(last, last + 1).endswith(("º", "°"))  # "nº 4711 0815"
        if (is_sign or is_label) and (last == 0 or words.starts_line(last)):
            before.discard(last)  # the "No." of "No. 4711 0815"
        return (
            "?" in words.text[words.starts[start] : words.starts[given[0].first]]
            or words.text.startswith("?", words.ends[given[-1].end - 1])
            or not before.isdisjoint(lexicon.denials_in(words))
            or (start > 0 and self._denies_number())
            or any(not self._is_of_others(match.first, given) for match in lexicon.unsure_answers.find(words))
        )

    def _is_of_others(self, index: int, given: Sequence[NumberToken]) -> bool:
        """Whether the sentence of word `index` holds nothing but other numbers: "the model is KX 200 if that helps"."""
        first, end = self._sentence_around(index)
        inside = [number.first for number in self._numbers if first <= number.first < end]
        return bool(inside) and not any(each.first <= place < each.end for place in inside for each in given)

    def _unknown(self, indexes: Iterable[int]) -> set[str]:
        """Words of more than a letter that nothing explains; a date or a count says nothing that might matter."""
        explained = self._lexicon.meanings.known_words(self._words)
        words = {self._words.folded[index] for index in indexes if index not in explained} - self._lexicon.stop_words
        return {word for word in words if len(word) > 1 and not word.isdigit()}

    def _says_little_else(self, given: Sequence[NumberToken], most: tuple[int, int] = MOST_OF_ANSWER) -> bool:
        """Whether few words stand beside numbers and how to reach their writer; a letter alone is none."""
        inside = {index for number in given for index in range(number.first, number.end)}
        inside |= self._contact_words(given[0])
        left = [index for index, word in enumerate(self._words.folded) if index not in inside and len(word) > 1]
        return len(left) <= most[0] and len(self._unknown(left)) <= most[1]

    def _is_count(self, number: NumberToken) -> bool:
        """Whether a few digits stand apart, so that they are no group of a number: the 2 of "one of 2"."""
        is_short = number.text.isdigit() and len(number.text) < MIN_LENGTH_BEFORE_LABEL
        return is_short and number.end not in self._text.numbers

    def _is_alone(self, number: NumberToken) -> bool:
        """Whether a number that can hardly be a model's or a count fills a line, a sentence, or what a colon leaves.

        Or it is all that its clause says: "its KT-77120-9, printed really small", not "the cable is CX-77120".
        """
        words, end = self._words, number.end
        before, ends = words.gaps[number.first], ends_phrase(words, end)
        follows_colon = before.strip() == ":"  # "next to its feet: KT-77120-9"
        is_line = not number.first or "\n" in before or follows_colon
        is_sentence = self._starts_sentence(number) and ends and words.text[words.ends[end - 1] :][:1] in ("", ".", "!")
        is_said = ends and self._label_reader.is_all_of_clause(number)
        is_prefix = number.first > 0 and words.text_of(number.first - 1, number.first).isupper()  # "here: AS 4471/22"
        if not ((is_line and ends) or is_sentence or is_said):
            return False
        if BARE_NUMBER.fullmatch(number.text):
            return True
        is_long = len(number.text) >= MIN_LENGTH_OF_SAID or self._stands_on_plate(number)
        return is_long and not is_prefix and (is_said or follows_colon)

    def _starts_sentence(self, number: NumberToken) -> bool:
        """Whether a number begins a sentence that answers no question, and stands behind no "No."."""
        words, first = self._words, number.first
        return words.starts_sentence[first] and "?" not in words.gaps[first] and first not in self._label_ends

    def _stands_on_plate(self, number: NumberToken) -> bool:
        """Whether the sentence says before a number where it stands: "on the sticker, next to a bolt it says 4711"."""
        first, _ = self._sentence_around(number.first)
        found = self._lexicon.labels.find(self._words)
        return any(first <= match.first < number.first and match.payload == "plate" for match in found)

    def _rivals(self, numbers: Sequence[NumberToken], alone: NumberToken) -> bool:
        """Whether another number may as well be the one."""
        others = (each for each in numbers if number_key(each.text) != number_key(alone.text))
        return any(is_distinctive(each.text) and self._may_be_answer(each) for each in others)

    def _start_of_announcement(self, number: NumberToken) -> int:
        """The first word of the sentence before that of a number."""
        first, _ = self._sentence_around(number.first)
        return self._sentence_around(first - 1)[0] if first else 0

    def _is_announced_otherwise(self, number: NumberToken) -> bool:
        """Whether another label stands before a number in its sentence: "on the invoice I read FA-2025".

        One that has a number of its own says nothing of the next: "Model ER-6 / BT330118".
        """
        first, _ = self._sentence_around(number.first)
        claimed = (index for index in range(first, number.first) if index in self._reasons)
        nearest = max(claimed, default=first - 1) + 1
        return any(
            nearest <= label.first < number.first
            and label.claim == "other"
            and ")" not in self._words.text_between(label.end, number.first)  # "(that is the model I think)"
            for label in self._labels.values()
        )

    def _contact_words(self, number: NumberToken) -> set[int]:
        """The words of paragraphs below a number that say how to reach its writer: a phone, an address."""
        words, found = self._words, set[int]()
        line, lines, paragraph, is_contact = list[int](), 0, list[int](), False
        for index in range(number.end, len(words.folded) + 1):
            gap = words.gaps[index] if index < len(words.folded) else "\n\n"
            if "\n" in gap:
                is_contact = is_contact or (lines < MAX_CONTACT_LINES and self._is_contact(line))
                lines += 1
                if gap.count("\n") > 1 and is_contact and not self._is_prose(paragraph):
                    found.update(paragraph)
                if gap.count("\n") > 1:
                    paragraph, is_contact = [], False
                line = []
            if paragraph or "\n" in gap:  # what stands on the number's own line is no signature
                line.append(index)
                paragraph.append(index)
        return found

    def _is_prose(self, paragraph: Sequence[int]) -> bool:
        """Whether a paragraph says something, and is no list of names and numbers."""
        words = self._words.folded
        return sum(words[index] in self._lexicon.stop_words for index in paragraph) > MAX_STOP_WORDS_OF_CONTACT

    def _is_contact(self, line: Sequence[int]) -> bool:
        """Whether the numbers of a line are known to be others, or one is a phone number."""
        numbers = [self._text.numbers[index] for index in line if index in self._text.numbers]
        return bool(numbers) and (
            any(each.first in self._reasons for each in numbers)
            or any(
                len(part) <= MAX_PHONE_LINE and find_standard(_PHONE_LABEL.sub("", part)) == A_PHONE_NUMBER
                for part in map(str.strip, _PARTS.split(self._words.text_of(line[0], line[-1] + 1), MAX_PARTS_OF_LINE))
            )
        )

    def _is_open(self, number: NumberToken) -> bool:
        """Whether a number is nothing else's, and could not be read in full."""
        return not number.is_read and number.first not in self._reasons

    def _may_be_answer(self, number: NumberToken) -> bool:
        is_long = len(number_key(number.text)) >= MIN_LENGTH_BEFORE_LABEL
        if number.text.isdigit() and len(number.text) >= MIN_DIGITS_OF_ARTICLE:
            return False
        # "It is 6610-882-41": what a phone's number looks like may be one by chance.
        is_announced = self._label_reader.follows_link_word(number.first)
        is_other = self._is_known_otherwise(number) if is_announced else self._has_standard_form(number)
        return is_long and number.is_usable and self._may_be_labelled(number) and not is_other

    def _words_touching(self, number: NumberToken) -> Iterator[int]:
        words = self._words
        if number.first and words.gaps[number.first] in (" ", "-"):
            yield number.first - 1
        if number.end < len(words.folded) and words.gaps[number.end] in (" ", "-"):
            yield number.end

    def _unconfirmed(self) -> Iterator[str]:
        """Numbers of which we may ask whether they are the one."""
        for number in self._numbers:
            if number.first in self._reasons or not number.is_usable or self._lexicon.never.fullmatch(number.text):
                continue
            might_be_ours = self._lexicon.unlabelled.fullmatch(number.text) is not None
            if might_be_ours and not _SAYS_SOMETHING.search(number.text) and not self._has_standard_form(number):
                yield number.text

    def _are_of_devices(self, numbers: Sequence[str]) -> bool:
        """Whether unlabelled numbers are alike: "the drill CD18-330917 and the jigsaw JS65-008123"."""
        forms = {_RUN.sub(r"\1", shape(number)) for number in numbers}
        is_open = self._is_serial and not self._format.patterns and not self._denies_number()
        if not is_open or len(forms) > 1 or not all(map(BARE_NUMBER.fullmatch, numbers)):
            return False
        # Those that differ in a sign or two may be one that was mistyped first.
        return not any(may_be_one_misread(first, second) for first, second in pairwise(numbers))

    def _is_known_otherwise(self, number: NumberToken) -> bool:
        """Whether a number without a label of its own is another; digits in groups may be a phone's by chance."""
        written = self._words.text_of(number.first, number.end)
        standard = find_standard(written) or find_standard(written.split()[-1])
        return standard is not None and (standard != A_PHONE_NUMBER or written[0] == "0")

    def _has_standard_form(self, number: NumberToken) -> bool:
        return find_standard(self._words.text_of(number.first, number.end)) is not None

    def _sentence_around(self, index: int) -> tuple[int, int]:
        words, first, end = self._words, index, index + 1
        while first and index - first < MAX_WORDS_BACK and not self._starts_anew(first):
            first -= 1
        while end < len(words.folded) and end - index < MAX_WORDS_BACK and not self._starts_anew(end):
            end += 1
        return first, end

    def _starts_anew(self, index: int) -> bool:
        """Whether word `index` begins a sentence, or a field of a form."""
        if index in self._label_ends:
            return False  # the full stop of "Serial No. 4711"
        words = self._words
        if words.starts_sentence[index] or not words.starts_line(index):
            return words.starts_sentence[index]
        is_field = index in self._labels or any(
            ":" in gap for gap in words.gaps[index + 1 : index + MAX_WORDS_OF_FIELD]
        )
        return is_field or self._follows_greeting(index)

    def _follows_greeting(self, index: int) -> bool:
        """Whether word `index` stands below "Dear colleagues,"."""
        words, first = self._words, index - 1
        while first and index - first < MAX_WORDS_OF_GREETING and not words.starts_line(first):
            first -= 1
        return "," in words.gaps[index] and words.folded[first] in self._lexicon.greetings

    def _dropped(self, counted: Mapping[str, NumberToken], reason: str) -> tuple[tuple[str, str], ...]:
        """Every number that does not count as it was written, with why. reason: of those of which nothing is known."""
        words, dropped = self._words, dict[str, str]()
        inside = {index for number in counted.values() for index in range(number.first, number.end)}
        for number in self._numbers:
            if number_key(number.text) in counted or number.first in inside:
                continue
            why = self._reasons.get(number.first)
            if why is None:
                is_plain = number.is_plain
                why = "is no plain number, but part of a sum, a time or the like" if not is_plain else reason
                why = why if number.is_read else UNREADABLE
            dropped.setdefault(words.text_of(number.first, number.end), why)
        return tuple(dropped.items())


def _cut_at_slash(number: NumberToken) -> list[NumberToken]:
    return [number._replace(first=number.first + place, text=part) for place, part in enumerate(number.text.split("/"))]


def _words_of_example(words: TokenizedText, first: int) -> tuple[int, ...]:
    """The word behind a word like "e.g.", and the next, unless a bracket closes between them."""
    is_closed = first + 1 < len(words.folded) and ")" in words.gaps[first + 1]
    return (first,) if is_closed else (first, first + 1)


@lru_cache(maxsize=64)
def _matcher(labels: tuple[str, ...]) -> PhraseMatcher[None]:
    """Of labels that were checked when the configuration was read."""
    return PhraseMatcher(parse_phrase(phrase, None) for phrase in labels)


@lru_cache(maxsize=64)
def _patterns(sources: tuple[str, ...]) -> tuple[NumberPattern, ...]:
    return tuple(map(NumberPattern, sources))
