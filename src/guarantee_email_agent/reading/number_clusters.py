"""What stands together as one number, however its writer parted it: `A77 - 3 - 02995`, `0047 KR 9912`."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from guarantee_email_agent.instructions.lexicon import Lexicon
from guarantee_email_agent.instructions.phrases import TokenizedText
from guarantee_email_agent.reading.number_tokens import MAX_LETTERS_OF_GROUP, is_shouted

MIN_LENGTH: Final = 5
MIN_DIGITS: Final = 3
MIN_DIGITS_OF_GROUPS: Final = 5
MAX_PIECES: Final = 20
MAX_LETTERS_OF_SMALL_PIECE: Final = 3
MAX_LENGTH_OF_GROUP: Final = 5

_DIGIT: Final = re.compile(r"[0-9]")
_JOINT: Final = re.compile(r"[-–—/._]| | ?[-–—/] ?")
_SPACED: Final = re.compile(r" [-–—/] ?| ?[-–—/] ")
_MODEL: Final = re.compile(r"[A-Z]{1,6}-?[0-9]{1,4}[A-Z]?")
_YEAR: Final = re.compile(r"(?:19[5-9]|20[0-3])[0-9]")
_CUT_BEFORE: Final = re.compile(r"[\n:,;!?()=|\"„“»]|[.] ")
_APOSTROPHES: Final = ("'", "’")
_NOT_ALPHANUMERIC: Final = re.compile(r"[^A-Z0-9]+")


class Cluster(NamedTuple):
    """words[first:end]; `text` in upper case, its joints without the blanks around.

    is_one: whether it can be but one number, and nothing beside it be another part.
    """

    first: int
    end: int
    text: str
    is_one: bool


def find_clusters(words: TokenizedText, lexicon: Lexicon, taken: Collection[int]) -> list[Cluster]:
    """All of a text that are long enough for a number, in order; time is linear in its length.

    taken: words that belong to none, such as those of labels.
    """
    known = lexicon.meanings.known_words(words)

    def is_piece(index: int, gap: str) -> bool:
        """Whether a word may be a part of a number: it has a digit, or a few letters that are no word."""
        written = words.text_of(index, index + 1)
        if index in taken or words.gaps[index] in _APOSTROPHES:
            return False
        if _DIGIT.search(written):
            return True
        if not (written.isascii() and written.isalpha()):
            return False
        if written.isupper():
            is_word = gap == " " and index in known and is_shouted(words, index)
            return len(written) <= MAX_LETTERS_OF_GROUP and not is_word
        return len(written) <= MAX_LETTERS_OF_SMALL_PIECE and written.islower() and index not in known

    found, end = list[Cluster](), 0
    for index, word in enumerate(words.folded):
        if index < end or not _DIGIT.search(word) or not is_piece(index, ""):
            continue
        first, least = index, max(end, index - MAX_PIECES)
        while first > least and _JOINT.fullmatch(words.gaps[first]) and is_piece(first - 1, words.gaps[first]):
            before = words.folded[first - 1]
            is_word = first - 1 in known and len(before) > 1 and before.isalpha() and words.folded[first][0].isalpha()
            if is_word and words.gaps[first] == " ":
                break  # the OK of "OK KT-77120-9"
            first -= 1
        end, most = index + 1, min(len(words.folded), index + MAX_PIECES)
        while end < most and _JOINT.fullmatch(words.gaps[end]) and is_piece(end, words.gaps[end]):
            end += 1
        pieces = [words.text_of(each, each + 1).upper() for each in range(first, end)]
        gaps = words.gaps[first + 1 : end]
        text = pieces[0] + "".join(map("".join, zip((gap.strip(" ") for gap in gaps), pieces[1:], strict=True)))
        if len(_NOT_ALPHANUMERIC.sub("", text)) >= MIN_LENGTH and len(_DIGIT.findall(text)) >= MIN_DIGITS:
            is_open = _are_several(pieces, gaps) or not _is_delimited(words, first, end, known)
            found.append(Cluster(first, end, text, not is_open))
    return found


def _are_several(pieces: Sequence[str], gaps: Sequence[str]) -> bool:
    """Whether the pieces may be a model's name and a number, a number and a year, or two numbers."""
    groups, parts = [pieces[0]], [pieces[0]]
    for gap, piece in zip(gaps, pieces[1:], strict=True):
        for joined, is_apart in ((groups, gap == " "), (parts, _SPACED.fullmatch(gap) is not None)):
            if is_apart:
                joined.append(piece)
            else:
                joined[-1] += piece
    if len(parts) == 2 and (not parts[0].isdigit() or min(map(len, parts)) >= MIN_LENGTH):
        return True
    if len(groups) == 1:
        return False
    is_model = _MODEL.fullmatch(groups[0]) is not None and max(map(len, groups[1:])) > MAX_LENGTH_OF_GROUP
    is_year = any(_YEAR.fullmatch(group) for group in (groups[0], groups[-1]))
    is_name = groups[0].isalpha() and groups[1][0].isalpha()  # the B of "plan B KT-77120-9"
    is_short = len(_DIGIT.findall("".join(groups))) < MIN_DIGITS_OF_GROUPS
    return is_model or is_year or is_name or is_short or min(map(len, groups)) > MAX_LENGTH_OF_GROUP


def _is_delimited(words: TokenizedText, first: int, end: int, known: Collection[int]) -> bool:
    """Whether neither a word at an end, nor what stands beside, is open to be a part of words[first:end]."""
    before, behind = words.gaps[first], words.gaps[end] if end < len(words.folded) else "\n"
    for inner, gap_at in ((first, first + 1), (end - 1, end - 1)):
        written = words.text_of(inner, inner + 1)
        is_last_letter = inner == end - 1 and len(written) == 1 and written.isupper() and behind != " "
        is_word = written.islower() or (inner in known and not is_last_letter)
        if end - first > 1 and words.gaps[gap_at] == " " and is_word:
            return False  # the as of "as 4471", the x of "4471 x"
    is_initial = first > 0 and len(words.folded[first - 1]) == 1 and before[0] == "."  # the M of "N. M. 4 0 2 8"
    if is_initial or (first and not _CUT_BEFORE.search(before) and not _is_word(words, first - 1)):
        return False
    if _is_in_list(words, first - 1, before) or _is_in_list(words, end, behind):
        return False
    is_letter = end - first > 1 and len(words.folded[end - 1]) == 1 and words.gaps[end - 1] == " "
    if _JOINT.fullmatch(behind) and behind != ".":
        return behind == " " and _is_word(words, end) and not is_letter
    return True


def _is_in_list(words: TokenizedText, index: int, gap: str) -> bool:
    """Whether a comma parts a number from word `index`, which holds a digit, too."""
    is_inside = 0 <= index < len(words.folded)
    return is_inside and gap.strip() == "," and _DIGIT.search(words.folded[index]) is not None


def _is_word(words: TokenizedText, index: int) -> bool:
    written = words.text_of(index, index + 1)
    if words.gaps[index] in _APOSTROPHES:
        return True  # the s of "number's"
    return len(written) > 1 and written.isalpha() and (not written.isupper() or len(written) > MAX_LETTERS_OF_GROUP)
