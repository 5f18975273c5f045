"""The numbers of a text, each whole: what somebody wrote as one number is never read in parts.

A number is a run of letters and digits that single hyphens, dots, slashes or underscores hold together, or a few short
groups with single blanks between, on one line: `4C 7719 0033 X`, `00471 KL`, `1234 5678 9012`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from unicodedata import combining

from guarantee_email_agent.instructions.lexicon import Lexicon
from guarantee_email_agent.instructions.phrases import TokenizedText, tokenize
from guarantee_email_agent.interpreter.number_spans import (
    MAX_GROUP_LENGTH,
    MIN_DIGITS_OF_GROUPS,
    NumberSpan,
    ends_phrase,
    is_distinctive,
    is_last_group,
    shape,
)

MAX_LETTERS_OF_GROUP = 4
MAX_GROUPS = 8
MIN_LENGTH_OF_ALIKE = 4
MAX_WORDS_OF_LABEL = 4

_JOINING_CHARACTERS = frozenset("-_/.")
_UNIT_BEFORE = frozenset("+$€£¥%@\\^~")
_UNIT_AFTER = frozenset("$€£¥%@°\\^~")
_YEAR = re.compile(r"(?:19|20)[0-9]{2}")
_DIGIT = re.compile(r"[0-9]")
_BESIDE = re.compile(r"[ ()/+.-]{1,4}")
_WRAPPED = re.compile(r"[-/_][ \t]{0,9}\n[ \t]{0,9}")
_PREFIXED = re.compile(r"[A-Z]+[0-9]+")
_GROUPED = re.compile(
    r"[A-Z]{1,4}(?: [0-9][A-Z0-9]{0,4})+(?: [A-Z]{1,3})?"  # FD 9804 00231, CX 5519 02A
    r"|(?=[A-Z]{0,4}[0-9])[A-Z0-9]{1,5}(?: [0-9]{2,5})* [A-Z]{1,3}"  # 4C 7719 0033 X
    r"|(?=[0-9]{0,4}[A-Z])(?:(?=[A-Z]{0,4}[0-9])[A-Z0-9]{2,5}(?: |$)){3,}"  # 4C1 7719 0033
)


@dataclass(frozen=True, slots=True)
class WholeNumber:
    """words[first:end] of a text. `text` is upper case, its groups without blanks; empty where it is not plain."""

    first: int
    end: int
    text: str
    is_beside_last: bool
    """Only blanks, brackets and the like stand between it and the number before, as in `(030) 231 25014`."""

    @property
    def is_digits(self) -> bool:
        """Whether it has no letter."""
        return not any(character.isalpha() for character in self.text)


def find_whole_numbers(words: TokenizedText, lexicon: Lexicon) -> list[WholeNumber]:
    """Every number of a text, in order; time is linear in its length.

    One has no text where it is not plain: with a letter of another script, beside a plus, a currency or a combining
    sign, as part of 12,345 or 12:30, or going on in the next line.
    """
    found: list[WholeNumber] = []
    last_end = 0
    for first, end, text in _numbers(words, lexicon):
        beside = bool(found) and last_end == first and bool(_BESIDE.fullmatch(words.gap_before(first)))
        last_end = end
        is_whole = text.isascii() and not _is_cut(words, first, end)
        found.append(WholeNumber(first, end, text if is_whole else "", beside))
    return found


def _numbers(words: TokenizedText, lexicon: Lexicon) -> Iterator[NumberSpan]:
    position, count = 0, len(words.folded)
    announced: set[str] = set()
    for index, word in enumerate(words.folded):
        if index < position or word.isalpha() or not _DIGIT.search(word):
            continue
        token = _token_at(words, index, position, lexicon)
        run = [token]
        if _is_group(token, words, lexicon):
            if token.first > position and words.gap_before(token.first) == " ":
                before = _token_at(words, token.first - 1, position, lexicon)
                if _is_group(before, words, lexicon):
                    run.insert(0, before)
            while (end := run[-1].end) < count and words.gap_before(end) == " ":
                following = _token_at(words, end, end, lexicon)
                if not _is_group(following, words, lexicon):
                    break
                run.append(following)
        position = run[-1].end
        yield from _read_run(run, words, lexicon, announced)


def _token_at(words: TokenizedText, index: int, position: int, lexicon: Lexicon) -> NumberSpan:
    """The words around word `index`, from `position` on, that single joining characters hold together."""
    first, end = index, index + 1
    while first > position and _is_joined(words, first, lexicon):
        first -= 1
    while end < len(words.folded) and _is_joined(words, end, lexicon):
        end += 1
    return NumberSpan(first, end, words.text[words.starts[first] : words.ends[end - 1]])


def _is_joined(words: TokenizedText, index: int, lexicon: Lexicon) -> bool:
    gap = words.gap_before(index)
    return gap in _JOINING_CHARACTERS and not (gap in "./" and _starts_anew(words, index, lexicon))


def _starts_anew(words: TokenizedText, index: int, lexicon: Lexicon) -> bool:
    """Whether a missing blank is all that joins word `index` to the one before: "SN12345.Thanks", "SN111/SN222"."""
    word = words.text[words.starts[index] : words.ends[index]]
    before = words.text[words.starts[index - 1] : words.ends[index - 1]]
    return _is_plain_word(word) or _is_plain_word(before) or lexicon.self_labelled.fullmatch(word.upper()) is not None


def _is_plain_word(word: str) -> bool:
    return word.isalpha() and len(word) > 1 and (word.istitle() or (word.islower() and len(word) > MAX_GROUP_LENGTH))


def _is_group(token: NumberSpan, words: TokenizedText, lexicon: Lexicon) -> bool:
    text = token.text
    if _DIGIT.search(text):
        # 60HZ is a unit's; a year may be a group.
        return len(text) <= MAX_GROUP_LENGTH and (text.isdigit() or not lexicon.never.fullmatch(text))
    if len(text) > MAX_LETTERS_OF_GROUP or not text.isalpha() or not text.isupper():
        return False
    word = words.folded[token.first]
    if len(text) == 1 and ends_phrase(words, token.end):
        return True  # the Y of "7719 0034 Y.", which joins two words in Spanish
    if token.first and (words.folded[token.first - 1] in lexicon.links or ":" in words.gap_before(token.first)):
        return True  # the AS of "is AS 4418 20"
    if any(word in known for known in (lexicon.stop_words, lexicon.links, lexicon.joiners, lexicon.denials)):
        return False
    return not lexicon.labels.find(TokenizedText(text, [word], [0], [len(text)]))


def _read_run(
    run: list[NumberSpan], words: TokenizedText, lexicon: Lexicon, announced: set[str]
) -> Iterator[NumberSpan]:
    """The number that the groups of a run make together, else each that holds a digit.

    announced: shapes of groups that a label made one number; the next of the same shape is one, too.
    """
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
    for start in range(max(first - 1, 0), first + 1):
        for stop in range(min(end + 1, len(run)), end - 1, -1):
            groups = [group.text.upper() for group in run[start:stop]]
            is_counted = (
                len(groups[-1]) == 1 and "".join(groups).isdigit() and not ends_phrase(words, run[stop - 1].end)
            )
            if 1 < len(groups) <= MAX_GROUPS and not is_counted and _are_one_number(groups, is_behind_sn):
                yield NumberSpan(run[start].first, run[stop - 1].end, "".join(groups))
                return
    groups = [group.text.upper() for group in run[first:end]]
    written = " ".join(map(shape, groups))
    if _is_prefixed(run[first:end], words, lexicon) and (
        written in announced or _is_announced(run[first].first, words, lexicon)
    ):
        announced.add(written)
        yield NumberSpan(run[first].first, run[end - 1].end, "".join(groups))
        return
    for group in run[first:end]:
        if _DIGIT.search(group.text):
            yield group._replace(text=group.text.upper())


def _is_prefixed(run: list[NumberSpan], words: TokenizedText, lexicon: Lexicon) -> bool:
    """`TS90 01234`: letters and digits, then one group of digits that is no year."""
    return (
        len(run) == 2
        and _PREFIXED.fullmatch(run[0].text.upper()) is not None
        and _YEAR.fullmatch(run[1].text) is None
        and is_last_group(run[1], words, lexicon)
    )


def _is_announced(first: int, words: TokenizedText, lexicon: Lexicon) -> bool:
    """Whether a label of serial numbers alone stands right before word `first`: "S/N", "serial number is"."""
    if not first:
        return False
    end = first - 1 if words.folded[first - 1] in lexicon.links else first
    before = tokenize(words.text[words.starts[max(end - MAX_WORDS_OF_LABEL, 0)] : words.starts[first]])
    return any(
        label.payload == "serial"
        and len(before.folded) - label.end == first - end
        and "/" not in before.gap_before(label.first)  # "Mod./Ser. no." is one of two numbers
        for label in lexicon.labels.find(before)
    )


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


def _is_cut(words: TokenizedText, first: int, end: int) -> bool:
    """Whether what stands right beside words[first:end] makes them part of something else."""
    text, start, stop = words.text, words.starts[first], words.ends[end - 1]
    before, after = text[start - 1 : start], text[stop : stop + 1]
    if before in _UNIT_BEFORE or after in _UNIT_AFTER or _is_combining(before) or _is_combining(after):
        return True
    return any(
        index
        and index < len(words.folded)
        and words.folded[index - 1][-1].isdigit()
        and words.folded[index][0].isdigit()
        and _goes_on(words.gap_before(index), words.folded[index])
        for index in (first, end)
    ) or (end < len(words.folded) and _WRAPPED.fullmatch(words.gap_before(end)) is not None)


def _goes_on(gap: str, following: str) -> bool:
    """Whether digits on both sides of a gap are one figure: 12,345 or 12:30 or 12--30."""
    return gap in (":", "'") or (gap == "," and len(following) == 3) or (len(gap) > 1 and not gap.strip("-_/"))


def _is_combining(character: str) -> bool:
    return bool(character) and combining(character) != 0
