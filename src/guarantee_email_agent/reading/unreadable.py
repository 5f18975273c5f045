"""What says that a number could not be read in full: a sign for a hole, words beside it, another reading of a part."""

from __future__ import annotations

import re
from collections.abc import Sequence
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


def has_alternative(words: TokenizedText, first: int, end: int, lexicon: Lexicon) -> bool:
    """ "KT-77120-9 or -8": another reading of a part."""
    if end >= len(words.folded):
        return False
    if words.folded[end] in lexicon.alternatives and "\n" not in words.gap_before(end):
        rest = words.text[words.ends[end] :]
        fragment = _FRAGMENT.match(rest)
        return (
            fragment is not None
            and words.ends[end - 1] - words.starts[first] > MAX_FRAGMENT + 1
            and _is_reading(fragment[0])
        )
    return False


def _is_reading(fragment: str) -> bool:
    """A digit, a capital, or a piece behind a hyphen; "or so" is none."""
    piece = fragment.strip()
    return piece.startswith("-") or any(map(str.isdigit, piece)) or (len(piece) == 1 and piece.isupper())
