"""Numbers of groups that letters part, which no shape of `number_tokens` has: `1180 Z 20447`, `0047 KR 9912`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Final

from guarantee_email_agent.instructions.lexicon import Lexicon
from guarantee_email_agent.instructions.phrases import TokenizedText
from guarantee_email_agent.reading.number_tokens import NumberToken, ends_phrase

MIN_DIGITS: Final = 5
MAX_GROUPS: Final = 8

_GROUP: Final = re.compile(r"[0-9]{1,5}|[0-9]{1,4}[A-Z]|[A-WYZ]{1,3}")  # an X may be a "times"
_FIRST: Final = re.compile(r"[0-9]{2,5}|[0-9]{1,4}[A-Z]")  # one digit may be a count
_DIGIT: Final = re.compile(r"[0-9]")
_YEAR: Final = re.compile(r"(?:19|20)[0-9]{2}")
_CUT_BEFORE: Final = re.compile(r"[\n:,;!?]|[.] ")


def find_parted_numbers(words: TokenizedText, lexicon: Lexicon, taken: Collection[int]) -> Iterator[NumberToken]:
    """Those of a text that can be but one number, in order; time is linear in its length.

    Letters begin none, and end it only where a phrase ends. taken: words that belong to none, such as those of labels.
    """
    index, count, known = 0, len(words.folded), lexicon.meanings.known_words(words)
    while index < count:
        end = index
        while end < count and end not in taken and (end == index or words.gaps[end] == " "):
            text = words.text_of(end, end + 1)
            form = _FIRST if end == index else _GROUP
            is_word = end in known and len(text) > 1  # the TO of "8821 TO 9921"
            if is_word or not form.fullmatch(text) or _YEAR.fullmatch(text) or lexicon.never.fullmatch(text):
                break
            end += 1
        groups = [words.text_of(each, each + 1) for each in range(index, end)]
        if _are_one_number(groups) and _is_delimited(words, index, end, groups[-1].isalpha(), lexicon):
            yield NumberToken(index, end, "".join(groups))
        index = max(end, index + 1)


def _are_one_number(groups: list[str]) -> bool:
    has_letters_inside = any(group.isalpha() for group in groups[1:-1])
    return has_letters_inside and len(groups) <= MAX_GROUPS and len(_DIGIT.findall("".join(groups))) >= MIN_DIGITS


def _is_delimited(words: TokenizedText, first: int, end: int, ends_in_letters: bool, lexicon: Lexicon) -> bool:
    """Whether what stands on both sides is no part of it: a line's end, punctuation, or a word."""
    if first and not _CUT_BEFORE.search(words.gaps[first]) and not _is_word_beside(words, first - 1, words.gaps[first]):
        return False
    if ends_phrase(words, end):
        behind = words.gaps[end : end + 1]
        return behind != [", "] or not _DIGIT.search(words.folded[end])  # "1180 Z 20447, 22"
    return (
        not ends_in_letters and _is_word_beside(words, end, words.gaps[end]) and words.folded[end] not in lexicon.units
    )


def _is_word_beside(words: TokenizedText, index: int, gap: str) -> bool:
    written = words.text_of(index, index + 1)
    return gap == " " and len(written) > 1 and written.isalpha() and not written.isupper()
