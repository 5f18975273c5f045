"""What says that a number could not be read in full: a sign for a hole, words beside it, another reading of a part."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Final

from guarantee_email_agent.instructions.lexicon import Lexicon
from guarantee_email_agent.instructions.phrases import PhraseMatch, TokenizedText

MAX_FRAGMENT: Final = 3
MAX_WORDS_TO_DOUBT: Final = 14
MAX_HOLE: Final = 40
MAX_DOUBTS: Final = 100  # no honest mail has more; a hostile one shall not buy more time with them

# What stands for a sign that its reader could not make out. A lone "?" behind a number is punctuation.
_HOLE: Final = "?*#_~…•·□■▢◻◼▯×¿\ufffd"
_SPACED_HOLE: Final = r"(?:[?*_…□■]+|\.(?: ?\.)+|#+(?=[ \t]))"
_HOLE_BEHIND: Final = re.compile(
    rf"[-/.]?[{_HOLE}]+(?=\w)|[-/._][{_HOLE}]|[*#_~…□■▢◻◼▯×\ufffd]|\?{{2,}}|\.{{2,}}|-(?=[,;)\s]*(?:\n|$))"
    rf"|[ \t]{{0,2}}[-/.]?[(\[{{<][ \t]?[{_HOLE}.]+[ \t]?[)\]}}>]"
    rf"|[-/.]?[(\[{{<][^)\]}}>\n]{{1,30}}[)\]}}>][-/.]?(?=\w)"
    rf"|[ \t]?[(\[{{<][^)\]}}>\n]{{1,30}}[)\]}}>] ?(?=[A-Z]?[0-9])"
    rf"|[ \t]{{1,2}}{_SPACED_HOLE}[ \t]{{0,2}}(?=[A-Za-z]{{0,2}}[0-9])"
)
_HOLE_BEFORE: Final = re.compile(
    rf"(?:\w[-/.]?[{_HOLE.replace('#', '')}]+[-/.]?|[0-9][-/.]?#+|\w(?:#+[-/.]|[-/.]#+)|[?…□■▢◻◼▯×¿\ufffd]"
    rf"|\.{{2,}}[-/]?"
    rf"|\w[-/.]?[(\[{{<][^)\]}}>\n]{{1,30}}[)\]}}>][-/.]?|[0-9][ \t]{{1,2}}{_SPACED_HOLE}[ \t]{{0,2}})$"
)
_ODD_JOINTS: Final = frozenset("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u2044\u2215=+`")
_LIST_SIGNS: Final = frozenset(",;|")
MAX_LETTERS_OF_PIECE: Final = 4
_EMPHASIS: Final = frozenset("*_")
_PLACEHOLDERS: Final = re.compile(r"[0-9]-?x{2,}|x{2,}-?[0-9]|[0-9]x[0-9]*x[0-9]")
_FRAGMENT: Final = re.compile(r"[ \t]{0,2}-?[A-Za-z0-9]{1,3}(?![\w-])")


def find_doubts(words: TokenizedText, lexicon: Lexicon) -> list[PhraseMatch[bool]]:
    """What a text says of how much of its numbers could be read."""
    return lexicon.unreadable.find(words)[:MAX_DOUBTS]


def is_unreadable(
    words: TokenizedText, first: int, end: int, lexicon: Lexicon, doubts: Sequence[PhraseMatch[bool]]
) -> bool:
    """Whether a sign, a word or an alternative beside the number words[first:end] says that not all of it was read."""
    text, start, stop = words.text, words.starts[first], words.ends[end - 1]
    before, after = text[max(start - MAX_HOLE, 0) : start], text[stop : stop + MAX_HOLE]
    is_emphasized = before[-1:] in _EMPHASIS and after[:1] == before[-1:] and not after[1:2].isalnum()
    return (
        (not is_emphasized and bool(_HOLE_BEHIND.match(after) or _HOLE_BEFORE.search(before)))
        or _PLACEHOLDERS.search(text, start, stop) is not None
        or any(_doubts_number(words, first, end, doubt) for doubt in doubts)
        or has_alternative(words, first, end, lexicon)
    )


def _doubts_number(words: TokenizedText, first: int, end: int, doubt: PhraseMatch[bool]) -> bool:
    """Whether a doubt is about a number: in its sentence or brackets, or in the sentence behind."""
    index = doubt.first
    if end <= index < end + MAX_WORDS_TO_DOUBT:
        ends = sum(1 for each in range(end, index + 1) if words.starts_sentence(each))
        return ends <= doubt.payload
    if index < first <= index + MAX_WORDS_TO_DOUBT:
        return not any(words.starts_sentence(each) for each in range(index + 1, first + 1))
    return False


def is_torn(words: TokenizedText, first: int, end: int, label_words: Collection[int]) -> bool:
    """Whether an odd sign, and no blank, joins the number words[first:end] to what may be a part: "KT-77120=9"."""
    before = first > 0 and first - 1 not in label_words and _may_be_joined(words, first, first - 1)
    return before or (end < len(words.folded) and _may_be_joined(words, end, end))


def _may_be_joined(words: TokenizedText, index: int, piece: int) -> bool:
    """index: of the word that the gap stands before. piece: of the one that may be a part."""
    gap, text = words.gap_before(index), words.text_of(piece, piece + 1)
    has_digit = any(map(str.isdigit, text))
    if gap in _LIST_SIGNS:
        return has_digit and len(text) < MAX_FRAGMENT  # of a list, the next is as long
    is_short = text.isupper() and len(text) <= MAX_LETTERS_OF_PIECE
    return bool(gap) and _ODD_JOINTS.issuperset(gap) and (has_digit or is_short)


def has_alternative(words: TokenizedText, first: int, end: int, lexicon: Lexicon) -> bool:
    """ "KT-77120-9 or -8", "KT-77l20 (l or 1)": another reading of a part."""
    if words.ends[end - 1] - words.starts[first] <= MAX_FRAGMENT + 1:
        return False
    # The second stands behind one reading of the part, in brackets or behind a comma.
    for index in (end, end + 1):
        if index >= len(words.folded) or "\n" in words.gap_before(index):
            return False
        if words.folded[index] in lexicon.alternatives:
            fragment = _FRAGMENT.match(words.text, words.ends[index])
            return fragment is not None and _is_reading(fragment[0])
        if words.ends[index] - words.starts[index] > MAX_FRAGMENT:
            return False
    return False


def _is_reading(fragment: str) -> bool:
    """A digit, a capital, or a piece behind a hyphen; "or so" is none."""
    piece = fragment.strip()
    return piece.startswith("-") or any(map(str.isdigit, piece)) or (len(piece) == 1 and piece.isupper())
