"""The numbers of a text, each whole: what somebody wrote as one number is never read in parts.

A number is a run of letters and digits that single hyphens, dots, slashes or underscores hold together, or a few short
groups with single blanks between, on one line: `4C 7719 0033 X`, `00471 KL`, `KS 40-0071-8`, `1234 5678 9012`.

One that touches a sign for what cannot be read (`KT-77?20`, `KT-77120-[smudged]`), an alternative ("-9 or -8"), or
that goes on in a way that is not understood is *unreadable*: it is a number, and nobody knows which.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import compress, count, pairwise
from operator import not_
from typing import Final, NamedTuple
from unicodedata import combining

from guarantee_email_agent.instructions.lexicon import LabelKind, Lexicon
from guarantee_email_agent.instructions.look_up import NumberPattern
from guarantee_email_agent.instructions.phrases import PhraseMatch, TokenizedText
from guarantee_email_agent.reading.unreadable import UnreadableSigns

MAX_GROUP_LENGTH: Final = 5
MAX_LETTERS_OF_GROUP: Final = 4
MAX_LETTERS_OF_LABEL: Final = 2
SHOUTED: Final = 40
"""Characters without a small letter."""
MAX_GROUPS: Final = 8
MAX_SPELLED: Final = 20
MAX_PIECE_LENGTH: Final = 12
MIN_LENGTH_ALONE: Final = 6
MIN_DIGITS_OF_GROUPS: Final = 5
MIN_DIGITS_OF_LAST_GROUP: Final = 3
MIN_DIGITS_OF_NUMBER: Final = 4
"""Of one with letters: with fewer, it may be a model's name."""
MIN_LENGTH_OF_MEASURE: Final = 4  # the "700W" of a plate; 9A may be the end of a number
MIN_LENGTH_OF_ALIKE: Final = 4
MIN_DISTINCTIVE_LENGTH: Final = 5
MAX_WORDS_OF_FORMAT: Final = 5
MAX_DIFFERING_SIGNS: Final = 2
MAX_WORDS_WITH_DIGITS: Final = (
    1000  # no honest mail has so many; a hostile one shall not buy more time with more of them
)
MAX_LENGTH_OF_FORMAT: Final = 40

_JOINING_CHARACTERS: Final = frozenset("-_/.")
_UNIT_BEFORE: Final = frozenset("+$€£¥%@\\^~")
_UNIT_AFTER: Final = frozenset("$€£¥%@°\\^")
_YEAR: Final = re.compile(r"(?:19[5-9]|20[0-3])[0-9]")  # of a purchase
_DIGIT: Final = re.compile(r"[0-9]")
_LETTER: Final = re.compile(r"[A-Z]")
_BESIDE: Final = re.compile(r"[ ()/+.-]{1,4}")
_WRAPPED: Final = re.compile(r"[-/_][ \t]{0,9}\n[ \t]{0,9}")
_PREFIXED: Final = re.compile(r"[A-Z]+[0-9]+")
_MODEL: Final = re.compile(r"[A-Z]{1,4}-?[0-9]{2,4}")
_GROUPED: Final = re.compile(
    r"[A-Z]{1,4}(?: [0-9][A-Z0-9]{0,4})+(?: [A-Z]{1,3})?"  # FD 9804 00231, CX 5519 02A
    r"|(?=[A-Z]{0,4}[0-9])[A-Z0-9]{1,5}(?: [0-9]{2,5})* [A-Z]{1,3}"  # 4C 7719 0033 X
    r"|[A-Z](?: [A-Z]){1,5} [0-9](?: [A-Z0-9]){2,}"  # N M 4 0 2
    r"|(?=[0-9]{0,4}[A-Z])(?:(?=[A-Z]{0,4}[0-9])[A-Z0-9]{2,5}(?: |$)){3,}"  # 4C1 7719 0033
)
_ADDRESS: Final = re.compile(r"@|://|www\.")
_BLANK: Final = re.compile(r"\s")
_ASIDE: Final = re.compile(r"[ \t]{1,9}(?:[(\[]|[-–—][ \t]{1,9})")
_CENTS: Final = re.compile(r",[0-9]|[,.] ?[-–—]")

_WIDE_JOINTS: Final = (" / ", " - ", " – ")
_LIST_JOINTS: Final = (", ", "; ", " | ", "|")
_SPACED_JOINTS: Final = (" / ", " - ", " . ", "/ ", " /", " -")


class NumberToken(NamedTuple):
    """words[first:end] of a text; `text` is in upper case, its groups without the blanks between.

    is_read: whether all of it was read. is_whole: whether nothing beside it may be another group of it. is_plain:
    whether it is a number at all, and no sum, time or the like.
    is_beside_last: only blanks, brackets and the like stand between it and the number before, as in `(030) 231 25014`.
    """

    first: int
    end: int
    text: str
    is_read: bool = True
    is_whole: bool = True
    is_plain: bool = True
    is_beside_last: bool = False

    @property
    def is_usable(self) -> bool:
        return self.is_read and self.is_whole and self.is_plain


def shape(text: str) -> str:
    """The word shape: A for every letter and 9 for every digit."""
    return _LETTER.sub("A", _DIGIT.sub("9", text))


def is_distinctive(text: str) -> bool:
    """Whether a number's shape tells it from others: a bare row of digits could be anything."""
    return len(text) >= MIN_DISTINCTIVE_LENGTH and bool(_LETTER.search(text))


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


def ends_phrase(words: TokenizedText, end: int) -> bool:
    """Whether a sentence, a line or a part of it ends behind words[:end]."""
    stop = words.ends[end - 1]
    return end == len(words.folded) or words.text[stop] in ("\n", ",", ".", ";", ")", "!", "?")


def find_number_tokens(
    words: TokenizedText,
    lexicon: Lexicon,
    labels: Sequence[PhraseMatch[LabelKind]],
    patterns: Sequence[NumberPattern] = (),
) -> list[NumberToken]:
    """Every number of a text, in order; time is linear in its length.

    labels: those of the lexicon in it. patterns: of the company's own numbers, which are one however they are spaced.
    """
    if not _DIGIT.search(words.text):
        return []
    found: list[NumberToken] = []
    last_end = 0
    signs = UnreadableSigns(words, lexicon, labels)
    for token in _Runs(words, lexicon, labels, _find_spelled(words, lexicon, patterns)).read():
        beside = bool(found) and last_end == token.first and bool(_BESIDE.fullmatch(words.gaps[token.first]))
        last_end = token.end
        found.append(
            NumberToken(
                *token[:3],
                token.is_read and not signs.touch(token.first, token.end),
                token.is_whole,
                token.text.isascii() and not _is_part(words, token.first, token.end),
                beside,
            )
        )
    if not patterns:
        return found
    alternatives = _alternatives(words, lexicon, found)
    return [token._replace(is_read=token.is_read and token.first not in alternatives) for token in found]


def _alternatives(words: TokenizedText, lexicon: Lexicon, numbers: Sequence[NumberToken]) -> set[int]:
    """The first words of numbers of which each may be the other: "either OS-11795-2 or 0S-11796-2".

    Without a format both count, so that the customer is asked which.
    """
    found = set[int]()
    for number, following in pairwise(numbers):
        is_choice = following.first == number.end + 1 and words.folded[number.end] in lexicon.alternatives
        if is_choice and len(number.text) >= MIN_LENGTH_ALONE and may_be_one_misread(number.text, following.text):
            found |= {number.first, following.first}
    return found


def may_be_one_misread(number: str, other: str) -> bool:
    """Whether two numbers differ in no more than a sign or two."""
    return len(number) == len(other) and 0 < sum(map(str.__ne__, number, other)) <= MAX_DIFFERING_SIGNS


def _find_spelled(words: TokenizedText, lexicon: Lexicon, patterns: Sequence[NumberPattern]) -> dict[int, NumberToken]:
    """Numbers of the company's own format that were written with blanks, or without joints, by their first words."""
    found = dict[int, NumberToken]()
    taken = 0
    for index in _with_digits(words)[:MAX_WORDS_WITH_DIGITS] if patterns else ():
        for first in range(max(index - 1, taken), index + 1):
            for end in range(min(first + MAX_WORDS_OF_FORMAT, len(words.folded)), index, -1):
                text = words.text_of(first, end)
                if first in found or len(text) > MAX_LENGTH_OF_FORMAT:
                    continue
                if _is_within_group(words, first) or _is_within_group(words, end):
                    continue  # a part of a longer group, such as a bank account
                number = _spelled_with_blanks(text, patterns) if " " in text else _respelled(text, lexicon, patterns)
                if number is not None:
                    found[first] = NumberToken(first, end, number.upper())
                    taken = end
    return found


def _spelled_with_blanks(text: str, patterns: Sequence[NumberPattern]) -> str | None:
    spellings = (re.sub(" +", joint, text) for joint in ("-", ""))
    fitting = (each for each in spellings if any(pattern.strict.fullmatch(each) for pattern in patterns))
    return next(fitting, None)


def _respelled(text: str, lexicon: Lexicon, patterns: Sequence[NumberPattern]) -> str | None:
    """With the joints that were left out; None for a number that has a format as it stands, or might have several."""
    if lexicon.never.fullmatch(text.upper()) or any(pattern.strict.fullmatch(text) for pattern in patterns):
        return None
    numbers = {number for pattern in patterns if (number := pattern.respelled(text)) is not None}
    return numbers.pop() if len(numbers) == 1 else None


def _with_digits(words: TokenizedText) -> list[int]:
    others = compress(count(), map(not_, map(str.isalpha, words.folded)))
    return [index for index in others if _DIGIT.search(words.folded[index])]


def _is_within_group(words: TokenizedText, index: int) -> bool:
    """Whether the words on both sides of the gap before word `index` may belong to one number."""
    if not 0 < index < len(words.folded):
        return False
    gap, sides = words.gaps[index], words.folded[index - 1 : index + 1]
    return gap in _JOINING_CHARACTERS or (gap == " " and all(map(_DIGIT.search, sides)))


class _Runs:
    """Puts words together to numbers: first those that no blank parts, then groups of them."""

    def __init__(
        self,
        words: TokenizedText,
        lexicon: Lexicon,
        labels: Sequence[PhraseMatch[LabelKind]],
        spaced: Mapping[int, NumberToken],
    ) -> None:
        self._words = words
        self._lexicon = lexicon
        self._spaced = spaced
        self._label_ends = {label.end: label for label in labels if label.payload == "serial"}
        self._label_words = {index for label in labels for index in range(label.first, label.end)}
        numbers = (match for match in lexicon.labels.find(words) if match.payload == "number")
        self._number_words = {index for match in numbers for index in range(match.first, match.end)}
        long_labels = (label for label in labels if label.end - label.first > 1)
        self._words_of_long_labels = {index for label in long_labels for index in range(label.first, label.end)}
        self._announced = set[str]()
        """Shapes of groups that a label made one number; the next of the same shape is one, too."""

    def read(self) -> Iterator[NumberToken]:
        words, position, count = self._words, 0, len(self._words.folded)
        for index in sorted({*_with_digits(words), *self._spaced}):
            if index < position:
                continue
            if (spaced := self._spaced.get(index)) is not None:
                position = spaced.end
                yield spaced
                continue
            token = self._token_at(index, position)
            run = [token]
            if self._is_group(token):
                if token.first > position and words.gaps[token.first] == " ":
                    before = self._token_at(token.first - 1, position)
                    if self._is_group(before):
                        run = [*self._letters_before(before, position), before, token]
                while (end := run[-1].end) < count and words.gaps[end] == " ":
                    following = self._token_at(end, end)
                    if not self._is_group(following):
                        break
                    run.append(following)
            position = run[-1].end
            yield from self._numbers_of(run)

    def _letters_before(self, token: NumberToken, position: int) -> list[NumberToken]:
        """The letters before the last one of "N M B 4 0 2", each alone: at most as many as a number may have."""
        words, first = self._words, token.first
        if len(token.text) > 1:
            return []
        least = max(position, first - MAX_SPELLED)
        while first > least and words.gaps[first] == " " and first - 1 not in self._words_of_long_labels:
            written = words.text_of(first - 1, first)
            if len(written) > 1 or not written.isupper():
                break
            first -= 1
        return [NumberToken(each, each + 1, words.text_of(each, each + 1)) for each in range(first, token.first)]

    def _token_at(self, index: int, position: int) -> NumberToken:
        """The words around word `index`, from `position` on, that single joining characters hold together."""
        words, first, end = self._words, index, index + 1
        while first > position and self._is_joined(first):
            first -= 1
        while end < len(words.folded) and self._is_joined(end):
            end += 1
        return NumberToken(first, end, words.text_of(first, end))

    def _is_joined(self, index: int) -> bool:
        gap = self._words.gaps[index]
        return gap in _JOINING_CHARACTERS and not (gap in "./" and self._starts_anew(index))

    def _starts_anew(self, index: int) -> bool:
        """Whether a missing blank is all that joins word `index` to the one before: "SN12345.Thanks", "SN111/SN222"."""
        words = self._words
        word = words.text[words.starts[index] : words.ends[index]]
        before = words.text[words.starts[index - 1] : words.ends[index - 1]]
        is_labelled = self._lexicon.self_labelled.fullmatch(word.upper()) is not None
        return _is_plain_word(word) or _is_plain_word(before) or is_labelled

    def _is_group(self, token: NumberToken) -> bool:
        text, lexicon = token.text, self._lexicon
        if _DIGIT.search(text):
            # 60HZ is a unit's; a year may be a group.
            return len(text) <= MAX_GROUP_LENGTH and (text.isdigit() or not lexicon.never.fullmatch(text))
        if len(text) > MAX_LETTERS_OF_GROUP or not text.isalpha() or not text.isupper():
            return False
        if token.first in self._number_words:
            return False  # the NR of "NR 4471 0815 22"
        if len(text) == 1 and ends_phrase(self._words, token.end):
            return True  # the Y of "7719 0034 Y.", which joins two words in Spanish
        if self._is_linked(token.first):
            return True  # the AS of "is AS 4418 20"
        word = self._words.folded[token.first]
        if any(word in known for known in (lexicon.stop_words, lexicon.links, lexicon.joiners, lexicon.denials)):
            return False
        return token.first not in self._label_words

    def _is_linked(self, index: int) -> bool:
        words = self._words
        return index > 0 and (words.folded[index - 1] in self._lexicon.links or ":" in words.gaps[index])

    def _numbers_of(self, run: list[NumberToken]) -> Iterator[NumberToken]:
        """The number that the groups of a run make together, else each that holds a digit."""
        words = self._words
        if len(run) == 1:
            yield run[0]._replace(text=run[0].text.upper())
            return
        first, end = 0, len(run)
        while not _DIGIT.search(run[first].text):
            first += 1
        while not _DIGIT.search(run[end - 1].text):
            end -= 1
        is_behind_sn = run[0].first > 0 and words.folded[run[0].first - 1] == "sn"
        # The longest reading counts: letters before and behind belong to the number where they can.
        is_spelled = first > 1 and all(len(group.text) == 1 for group in run[:first])
        for start in range(0 if is_spelled else max(first - 1, 0), first + 1):
            for stop in range(min(end + 1, len(run)), end - 1, -1):
                groups = [group.text.upper() for group in run[start:stop]]
                is_counted = (
                    len(groups[-1]) == 1 and "".join(groups).isdigit() and not ends_phrase(words, run[stop - 1].end)
                )
                most = MAX_SPELLED if is_spelled else MAX_GROUPS
                is_one = 1 < len(groups) <= most and not is_counted and _are_one_number(groups, is_behind_sn)
                if is_one and not _may_count(words, run[start:stop], self._lexicon):
                    is_cut = start > 0 and len(run[start - 1].text) == 1  # the N of "N M 4 0 2"
                    yield NumberToken(run[start].first, run[stop - 1].end, "".join(groups), is_read=not is_cut)
                    return
        groups = [group.text.upper() for group in run[first:end]]
        written = " ".join(map(shape, groups))
        if self._is_prefixed(run[first:end]) and (written in self._announced or self._is_announced(run[first].first)):
            self._announced.add(written)
            yield NumberToken(run[first].first, run[end - 1].end, "".join(groups))
            return
        with_digits = [group for group in run[first:end] if _DIGIT.search(group.text)]
        for group in with_digits:
            yield group._replace(text=group.text.upper(), is_whole=len(with_digits) == 1)

    def _is_prefixed(self, run: list[NumberToken]) -> bool:
        """`TS90 01234`: letters and digits, then one group of digits that is no year."""
        return (
            len(run) == 2
            and _PREFIXED.fullmatch(run[0].text.upper()) is not None
            and _YEAR.fullmatch(run[1].text) is None
            and self._is_last_group(run[1])
        )

    def _is_last_group(self, group: NumberToken) -> bool:
        """Whether a group of digits ends a number in groups, and counts nothing: "TS90 01234.", not "TS90 123 EUR"."""
        words = self._words
        if not group.text.isdigit() or len(group.text) < MIN_DIGITS_OF_LAST_GROUP:
            return False
        if _CENTS.match(words.text, words.ends[group.end - 1]):
            return False
        if group.text.startswith("0") or ends_phrase(words, group.end):
            return True
        return words.folded[group.end] in self._lexicon.joiners or bool(_ASIDE.fullmatch(words.gaps[group.end]))

    def _is_announced(self, first: int) -> bool:
        """Whether a label of serial numbers alone stands right before word `first`: "S/N", "serial number is"."""
        label = self._label_ends.get(first)
        if label is None and first and self._words.folded[first - 1] in self._lexicon.links:
            label = self._label_ends.get(first - 1)
        # "Mod./Ser. no." is the label of one of two numbers
        return label is not None and "/" not in self._words.gaps[label.first]


def is_prefix_word(words: TokenizedText, index: int, lexicon: Lexicon) -> bool:
    """Whether a word may be the letters that a number begins with: the KS of "KS 40-0071-8"."""
    text, word = words.text_of(index, index + 1), words.folded[index]
    is_short = len(text) <= MAX_LETTERS_OF_GROUP and text.isascii() and text.isalpha() and text.isupper()
    if len(word) == 1:
        return is_short and word != "i"  # in capitals, one letter is hardly ever a word
    is_linked = index > 0 and (words.folded[index - 1] in lexicon.links or ":" in words.gaps[index])
    # In a text of capitals "MY" is a word, in any other hardly.
    stop_words = lexicon.stop_words if is_shouted(words, index) and not is_linked else ()
    is_link = word in lexicon.links and not is_linked  # the AS of "is AS 4471"
    return is_short and not is_link and not any(word in each for each in (lexicon.joiners, lexicon.denials, stop_words))


def is_shouted(words: TokenizedText, index: int) -> bool:
    """Whether word `index` stands behind words in capitals; a label alone may be "S/N" anywhere."""
    before = words.text_of(index - 1, index) if index else ""
    is_word = len(before) > MAX_LETTERS_OF_LABEL and before.isalpha() and before.isupper()
    return is_word or words.text[max(words.starts[index] - SHOUTED, 0) : words.starts[index]].isupper()


def extend_number(
    number: NumberToken, words: TokenizedText, lexicon: Lexicon, numbers: Mapping[int, NumberToken]
) -> NumberToken:
    """A number that a label or a question announces, with all groups that single blanks part from it.

    `0817-44 930 21` and `40 0098 771 HL` are one each. Where it is open whether a group belongs to it, as with a year
    or behind what may be a model, the number is not whole. numbers: those of the text by their first words.
    """
    is_never = not number.text.isdigit() and lexicon.never.fullmatch(number.text)
    if lexicon.self_labelled.fullmatch(number.text) or is_never:
        return number
    end, pieces = number.end, [number._replace(is_whole=True)]
    while end < len(words.folded) and len(pieces) < MAX_GROUPS:
        following, gap = numbers.get(end), words.gaps[end]
        is_short = len(pieces) == 1 and len(number.text) < MIN_DISTINCTIVE_LENGTH
        # "71 / 4408": what is too short for a number is a part of one
        if gap != " " and not (gap == " / " and is_short):
            break
        if following is None:
            is_inside = end + 1 in numbers and words.gaps[end + 1] == " "
            is_unit = words.folded[end] in lexicon.units
            if is_unit or not (is_prefix_word(words, end, lexicon) and (is_inside or ends_phrase(words, end + 1))):
                break
            following = NumberToken(end, end + 1, words.text_of(end, end + 1))
        elif len(following.text) > MAX_PIECE_LENGTH or not (following.is_plain and following.is_read):
            break
        elif is_distinctive(number.text) and shape(following.text) == shape(number.text):
            break  # another number
        elif lexicon.never.fullmatch(following.text) and not following.text.isdigit():
            break  # 60HZ
        pieces.append(following)
        end = following.end
    if len(pieces) > 1 and pieces[-1].text.isdigit() and _counts(words, pieces[-1], lexicon):
        pieces.pop()
    if len({piece.text for piece in pieces}) == 1 and (len(pieces) == 1 or len(number.text) >= MIN_LENGTH_ALONE):
        is_cut = _goes_on_behind(words, number.end, lexicon, numbers) or _is_parted(number, words, lexicon, numbers)
        return pieces[0]._replace(is_whole=not is_cut)
    is_open = (
        _YEAR.fullmatch(pieces[-1].text) is not None
        or (_MODEL.fullmatch(number.text) is not None and len(pieces[1].text) > MAX_GROUP_LENGTH)
        or all(len(piece.text) >= MIN_LENGTH_ALONE for piece in pieces)
        or _goes_on_behind(words, pieces[-1].end, lexicon, numbers)
        or _may_count(words, pieces, lexicon)
    )
    text = "".join(piece.text for piece in pieces)
    return number._replace(end=pieces[-1].end, text=text, is_whole=not is_open)


def _goes_on_behind(words: TokenizedText, end: int, lexicon: Lexicon, numbers: Mapping[int, NumberToken]) -> bool:
    """Whether what stands behind words[:end] may be another group: the "/ 2" of "CHF 440 / 2", the b of "7700 41 b"."""
    if end >= len(words.folded):
        return False
    word, gap = words.folded[end], words.gaps[end]
    if following := numbers.get(end):
        is_group = gap in _SPACED_JOINTS or (gap == " " and following.text.isdigit())
        return is_group and len(following.text) <= MAX_GROUP_LENGTH and not _counts(words, following, lexicon)
    is_capital = words.text_of(end, end + 1).isupper()
    if gap in _SPACED_JOINTS and len(word) == 1 and is_capital:
        return True  # the E of "80 7714 / E"
    is_letter = gap == " " and is_capital and len(word) == 1 and word != "x" and not is_shouted(words, end)
    if is_letter and (words.gaps[end + 1 : end + 2] != [" "] or word not in lexicon.stop_words | lexicon.joiners):
        return True  # the C of "AB 1234 C - model X500"
    following = numbers.get(end + 1)
    if gap == " " and is_capital and len(word) <= MAX_LETTERS_OF_GROUP and following:
        # the R of "M 5200 R – 0731"
        return words.gaps[end + 1] in _WIDE_JOINTS and not _counts(words, following, lexicon)
    if gap == " " and len(words.folded[end - 1]) == len(word) == 1 and word != "x":
        # the K of "7 7 3 0 4 1 9 K thank you"
        return word not in lexicon.stop_words or words.text_of(end, end + 1).isupper()
    is_joined = words.gaps[end + 1 : end + 2] in (["-"], ["/"], ["_"], ["."])
    if gap == " " and is_joined and is_prefix_word(words, end, lexicon):
        return True  # the RV-A of "1940 2218 RV-A"
    if gap == " " and len(word) == 1 and is_shouted(words, end) and not _ends_line(words, end + 1):
        return word not in lexicon.stop_words | lexicon.joiners  # the X of "PL 0447 X STILL HUMS"
    written = words.text_of(max(end - 3, 0), end + 1)
    if written.endswith("x") and len(word) == 1 and _ends_line(words, end + 1) and not written.islower():
        return False  # a kiss
    # Some people write the last letter small; a single small one is hardly ever a word.
    return gap == " " and len(word) == 1 and word not in lexicon.joiners and ends_phrase(words, end + 1)


def _is_parted(number: NumberToken, words: TokenizedText, lexicon: Lexicon, numbers: Mapping[int, NumberToken]) -> bool:
    """Whether what may be its model, or its beginning, stands before it: "LM36-B / 002915", "LM36-B, 002915"."""
    following = numbers.get(number.end)
    if following is None or number.text.isdigit() or not following.text.isdigit():
        return False
    is_number = len(following.text) > MAX_GROUP_LENGTH and not lexicon.never.fullmatch(following.text)
    is_model = len(_DIGIT.findall(number.text)) < MIN_DIGITS_OF_NUMBER
    is_joined = words.gaps[number.end] in ((*_LIST_JOINTS, *_WIDE_JOINTS) if is_model else _WIDE_JOINTS)
    return is_number and is_joined and following.end not in numbers


def _ends_line(words: TokenizedText, index: int) -> bool:
    return index == len(words.folded) or "\n" in words.gaps[index]


def _counts(words: TokenizedText, group: NumberToken, lexicon: Lexicon) -> bool:
    """Whether a unit behind a group of digits says what it counts: "2 years", "350,- EUR", "700 W"."""
    if _CENTS.match(words.text, words.ends[group.end - 1]):
        return True
    is_beside = group.end < len(words.folded) and words.gaps[group.end] == " "
    is_parted = is_beside and group.text.isdigit()
    measure = group.text + (words.folded[group.end].upper() if is_parted else "")
    if len(measure) >= MIN_LENGTH_OF_MEASURE and not measure.isdigit() and lexicon.never.fullmatch(measure):
        return True
    is_kiss = is_beside and words.folded[group.end] == "x" and _ends_line(words, group.end + 1)
    return is_beside and not is_kiss and words.folded[group.end] in lexicon.units


def _may_count(words: TokenizedText, pieces: Sequence[NumberToken], lexicon: Lexicon) -> bool:
    """Whether the last group may be of a date or a measure: the 12 of "123456 12 May", the 230 V of "123456 230 V"."""
    *before, last = pieces
    if last.text.isalpha():
        return lexicon.never.fullmatch(before[-1].text + last.text) is not None
    if not last.text.isdigit() or ends_phrase(words, last.end) or not words.folded[last.end].isalpha():
        return False
    word, behind = words.folded[last.end], words.folded[last.end + 1 : last.end + 2]
    if lexicon.never.fullmatch(last.text + word.upper()):
        return True
    if len(last.text) < MIN_DIGITS_OF_LAST_GROUP and behind and _YEAR.fullmatch(behind[0]):
        return True
    is_beside = sum(len(each.text) for each in before) >= MIN_DISTINCTIVE_LENGTH and words.gaps[last.end] == " "
    is_known = word in lexicon.stop_words or word in lexicon.joiners
    return is_beside and len(last.text) <= MIN_DIGITS_OF_LAST_GROUP and not is_known


def _is_plain_word(word: str) -> bool:
    return word.isalpha() and len(word) > 1 and (word.istitle() or (word.islower() and len(word) > MAX_GROUP_LENGTH))


def _are_one_number(groups: list[str], is_behind_sn: bool) -> bool:
    joined = "".join(groups)
    if len({shape(group) for group in groups}) == 1 and is_distinctive(joined):
        return len(groups[0]) >= MIN_LENGTH_OF_ALIKE  # AB12 CD34
    if len(_DIGIT.findall(joined)) < MIN_DIGITS_OF_GROUPS:
        return False
    length, last = len(groups[0]), len(groups[-1])
    is_with_year = len(groups) == 2 and _YEAR.fullmatch(groups[1]) is not None
    if not joined.isdigit():
        are_alike = length >= MIN_LENGTH_OF_ALIKE and {len(group) for group in groups} == {length}
        is_prefixed = _PREFIXED.fullmatch(groups[0]) is not None and "".join(groups[1:]).isdigit()  # TS90 0101
        return (are_alike and is_prefixed and not is_with_year) or _GROUPED.fullmatch(" ".join(groups)) is not None
    if is_with_year:
        return False
    are_alike = length > 2 and all(len(group) == length for group in groups[:-1])
    return is_behind_sn or (are_alike and (last == length or (last < length and len(groups) > 2)))


def _is_part(words: TokenizedText, first: int, end: int) -> bool:
    """Whether what stands right beside words[first:end] makes them part of something else, such as a sum."""
    text, start, stop = words.text, words.starts[first], words.ends[end - 1]
    before, after = text[start - 1 : start], text[stop : stop + 1]
    if before in _UNIT_BEFORE or after in _UNIT_AFTER or _is_combining(before) or _is_combining(after):
        return True
    return any(
        0 < index < len(words.folded)
        and words.gaps[index] != " "
        and words.folded[index - 1][-1].isdigit()
        and words.folded[index][0].isdigit()
        and _goes_on(words.gaps[index], words.folded[index])
        for index in (first, end)
    ) or (end < len(words.folded) and _WRAPPED.fullmatch(words.gaps[end]) is not None)


def _goes_on(gap: str, following: str) -> bool:
    """Whether digits on both sides of a gap are one figure: 12,345 or 12:30 or 12--30."""
    return gap in (":", "'") or (gap == "," and len(following) == 3) or (len(gap) > 1 and not gap.strip("-_/"))


def _is_combining(character: str) -> bool:
    return character > "\x7f" and combining(character) != 0
