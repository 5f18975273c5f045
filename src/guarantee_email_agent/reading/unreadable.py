"""What says that a number could not be read in full: a sign for a hole, words beside it, another reading of a part."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from operator import attrgetter
from typing import Final

from guarantee_email_agent.instructions.lexicon import LabelKind, Lexicon
from guarantee_email_agent.instructions.phrases import PhraseMatch, TokenizedText

MAX_FRAGMENT: Final = 3
MAX_WORDS_TO_DOUBT: Final = 14
MAX_WORDS_BETWEEN: Final = 5  # of two readings: "or maybe it is a 1"
MAX_WORDS_TO_LETTER: Final = 4
MAX_FILLERS: Final = 2
MAX_HOLE: Final = 40
MAX_DOUBTS: Final = 100  # no honest mail has more; a hostile one shall not buy more time with them

# What stands for a sign that its reader could not make out. A lone "?" behind a number is punctuation.
_HOLE: Final = "?*#_~…•·□■▢◻◼▯×¿\ufffd"
_SPACED_HOLE: Final = r"(?:[?*_…□■]+|\.(?: ?\.)+|#+(?=[ \t])(?:[ \t]#+(?=[ \t]))*)"
_HOLE_BEHIND: Final = re.compile(
    rf"[-/.]?[{_HOLE}]+[-/.]?(?=\w)|\?[ \t](?=[A-Z0-9]{{1,3}}(?:[,.;)\n]|$))"
    rf"|[-/._][{_HOLE}]|[ \t]{{1,2}}[-/–][ \t]{{1,2}}[{_HOLE}]"
    rf"|[*#_~…□■▢◻◼▯×\ufffd]|\?{{2,}}|\.{{2,}}|-(?=[,;)\s]*(?:\n|$))"
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
_ENDS_OF_HOLE: Final = tuple(f"{_HOLE}-/.)]}}>")
"""What stands last in what `_HOLE_BEFORE` finds, but for blanks."""

_ODD_JOINTS: Final = frozenset("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u2044\u2215=+`")
_JOINTS: Final = frozenset("-/._")
_LIST_SIGNS: Final = frozenset(",;|")
MAX_LETTERS_OF_PIECE: Final = 4
_BESIDE: Final = (" ", ", ")
_VOWELS: Final = frozenset("aeiouy")  # words by themselves
_YEAR: Final = re.compile(r"(?:19|20)[0-9]{2}")
_EMPHASIS: Final = frozenset("*_")
_PLACEHOLDERS: Final = re.compile(r"[0-9]-?x{2,}|x{2,}-?[0-9]|[0-9]x[0-9]*x[0-9]|[0-9]_+[A-Z0-9]|[0-9]-?X{2,}(?![A-Z])")
_SIGNS_OF_PLACEHOLDER: Final = frozenset("xX_")
_LONE_PLACEHOLDER: Final = re.compile(r"[0-9]x[0-9]")  # among capitals


class UnreadableSigns:
    """What in a text says of its numbers that not all of them could be read. labels: those of the lexicon in it."""

    def __init__(self, words: TokenizedText, lexicon: Lexicon, labels: Sequence[PhraseMatch[LabelKind]]) -> None:
        self._words, self._lexicon = words, lexicon
        self._doubts = _find_doubts(words, lexicon)
        self._label_words = {index for label in labels for index in range(label.first, label.end)}
        self._label_starts = {label.first for label in labels}

    def touch(self, first: int, end: int) -> bool:
        """Whether they are about the number words[first:end], so that it is not known."""
        words, lexicon, label_words = self._words, self._lexicon, self._label_words
        return (
            _is_unreadable(words, first, end, self._doubts, self._label_starts)
            or _is_torn(words, first, end, label_words)
            or _goes_on_in_words(words, end, lexicon)
            or _touches_spoken_sign(words, first, end, lexicon, label_words)
        )


def _find_doubts(words: TokenizedText, lexicon: Lexicon) -> list[PhraseMatch[bool]]:
    """What a text says of how much of its numbers could be read."""
    found = lexicon.unreadable.find(words)[:MAX_DOUBTS]
    # In "the last digit is a zero or an 8", and in "the last letter is a Q or an O", nothing is clear.
    told = [match for match in found if match.payload is None]
    clear = [each for each in told if lexicon.alternatives.isdisjoint(words.folded[each.end : each.end + 2])]
    said = (
        PhraseMatch(doubt.first, doubt.end, doubt.payload is not False)
        for doubt in found
        if not any(each.first <= doubt.first and doubt.end <= each.end for each in clear)
    )
    return sorted((*said, *islice(_find_alternatives(words, lexicon), MAX_DOUBTS)), key=attrgetter("first"))


def _is_unreadable(
    words: TokenizedText, first: int, end: int, doubts: Sequence[PhraseMatch[bool]], label_starts: Collection[int]
) -> bool:
    """Whether a sign, a word or an alternative beside the number words[first:end] says that not all of it was read."""
    text, start, stop = words.text, words.starts[first], words.ends[end - 1]
    before, after = text[max(start - MAX_HOLE, 0) : start], text[stop : stop + MAX_HOLE]
    is_emphasized = before[-1:] in _EMPHASIS and after[:1] == before[-1:] and not after[1:2].isalnum()
    has_hole_before = before.rstrip(" \t").endswith(_ENDS_OF_HOLE) and _HOLE_BEFORE.search(before)
    if not is_emphasized and (has_hole_before or _HOLE_BEHIND.match(after)):
        return True
    written = text[start:stop]
    if not _SIGNS_OF_PLACEHOLDER.isdisjoint(written) and (
        _PLACEHOLDERS.search(text, start, stop)
        or (not written.islower() and _LONE_PLACEHOLDER.search(text, start, stop))
    ):
        return True
    return any(_doubts_number(words, first, end, doubt, label_starts) for doubt in _doubts_near(doubts, first, end))


def _doubts_near(doubts: Sequence[PhraseMatch[bool]], first: int, end: int) -> Sequence[PhraseMatch[bool]]:
    """Those of the doubts, which are in order, that may be about the number words[first:end]."""
    if not doubts:
        return ()
    start = bisect_left(doubts, first - MAX_WORDS_TO_DOUBT, key=attrgetter("first"))
    return doubts[start : bisect_left(doubts, end + MAX_WORDS_TO_DOUBT, start, key=attrgetter("first"))]


def _doubts_number(
    words: TokenizedText, first: int, end: int, doubt: PhraseMatch[bool], label_starts: Collection[int]
) -> bool:
    """Whether a doubt is about a number: in its sentence or line, or in the one behind."""

    def count_ends(start: int, stop: int) -> int:
        return sum(
            words.starts_sentence[index]
            or words.starts_line(index)
            or 2 * (index in label_starts and "\n" in words.gaps[index])
            for index in range(start, stop + 1)
        )

    if first <= doubt.first < end + MAX_WORDS_TO_DOUBT:
        return count_ends(end, doubt.first) <= doubt.payload
    is_before = doubt.first < first <= doubt.first + MAX_WORDS_TO_DOUBT
    return is_before and not count_ends(doubt.first + 1, first)


def _goes_on_in_words(words: TokenizedText, end: int, lexicon: Lexicon) -> bool:
    """Whether a sign or two follow that may belong to words[:end]: "KT-77120 and a nine", "KT-77120 with a 9 on it"."""
    fillers = lexicon.fillers
    for index in range(end, min(end + MAX_FILLERS + 1, len(words.folded))):
        if words.starts_sentence[index] or words.starts_line(index):
            return False
        is_spoken = words.folded[index] in lexicon.spoken_signs and words.folded[end] in lexicon.joiners
        if index > end and (is_spoken or _is_reading(words, index)):
            gap = "".join(words.gaps[index + 1 : index + 2])
            if gap == " ":  # the I of "KT-77120 is what I can read" is a word
                word, behind = words.folded[index : index + 2]
                counts = word in lexicon.stop_words or lexicon.never.fullmatch(f"{word}{behind}".upper())
                return not counts and behind in fillers
            is_last = not gap or gap[0] == "\n" or gap.rstrip("\n") in (", ", ". ", "! ", "; ", ") ", ",", ".", "!")
            return is_last and words.folded[end] in lexicon.joiners
        if words.folded[index] not in fillers:
            return False
    return False


def _touches_spoken_sign(
    words: TokenizedText, first: int, end: int, lexicon: Lexicon, label_words: Collection[int]
) -> bool:
    """Whether a sign in words stands beside words[first:end]: "KT dash 77120", "KT-77120 nine", "B as in Bob 77120".

    One alone may be a name or a month, but for one that ends the phrase behind: another sign has to stand beside it.
    """
    signs, count = lexicon.spoken_signs, len(words.folded)

    def is_sign(index: int) -> bool:
        written = words.text_of(index, index + 1)
        is_piece = written.isupper() and len(written) <= MAX_LETTERS_OF_PIECE and written.isalpha()
        return is_piece or words.folded[index] in signs or (written.isdigit() and not _YEAR.fullmatch(written))

    if first and words.folded[first - 1] in signs and words.gaps[first] in _BESIDE:
        begins = words.gaps[first] == " " and (first == 1 or words.starts_sentence[first - 1])  # "Double 7 120-94"
        is_beside = first > 1 and words.gaps[first - 1] in _BESIDE and first - 2 not in label_words
        if begins or (is_beside and is_sign(first - 2)):
            return True
    if end < count and words.folded[end] in signs and words.gaps[end] in _BESIDE:
        if end + 1 < count and words.gaps[end + 1] in _BESIDE:
            return is_sign(end + 1)
        return words.gaps[end] == " " and (end + 1 == count or words.gaps[end + 1] != " ")
    return _follows_spelled_letter(words, first, label_words)


def _follows_spelled_letter(words: TokenizedText, first: int, label_words: Collection[int]) -> bool:
    """Whether a letter and its word stand right before word `first`: "K for kettle 4040"."""
    for letter in range(max(first - MAX_WORDS_TO_LETTER, 0), first - 2):
        word = words.folded[letter]
        if len(word) > 1 or word in _VOWELS or letter in label_words:
            continue
        gaps = {*words.gaps[letter + 1 : first], words.gaps[first].lstrip(",")}
        if gaps == {" "} and words.text_of(letter, letter + 1).isupper() and words.folded[first - 1].startswith(word):
            return words.text_of(letter + 1, first - 1).islower()
    return False


def _is_torn(words: TokenizedText, first: int, end: int, label_words: Collection[int]) -> bool:
    """Whether an odd sign, and no blank, joins the number words[first:end] to what may be a part: "KT-77120=9"."""
    before = first > 0 and first - 1 not in label_words and _may_be_joined(words, first, first - 1)
    return before or (end < len(words.folded) and _may_be_joined(words, end, end))


def _may_be_joined(words: TokenizedText, index: int, piece: int) -> bool:
    """index: of the word that the gap stands before. piece: of the one that may be a part."""
    gap, text = words.gaps[index], words.text_of(piece, piece + 1)
    if not gap or gap == " ":
        return False
    has_digit = any(map(str.isdigit, text))
    if gap in _LIST_SIGNS:
        return has_digit and len(text) < MAX_FRAGMENT  # of a list, the next is as long
    is_short = text.isupper() and len(text) <= MAX_LETTERS_OF_PIECE
    return _ODD_JOINTS.issuperset(gap) and (has_digit or is_short)


def _find_alternatives(words: TokenizedText, lexicon: Lexicon) -> Iterator[PhraseMatch[bool]]:
    """ "KT-77120-9 or -8", "(l or 1)", "then a 7 or maybe a 1": two readings of a part, a word between them."""
    folded, alternatives = words.folded, lexicon.alternatives
    for index, word in enumerate(() if alternatives.isdisjoint(folded) else folded):
        if word not in alternatives or not 0 < index < len(folded) - 1:
            continue
        behind, last = index + 1, min(index + MAX_WORDS_BETWEEN, len(folded) - 1)
        while behind < last and (folded[behind] in lexicon.stop_words or folded[behind] in alternatives):
            behind += 1
        # "or 3 years", "or KT-77121"
        goes_on = behind + 1 < len(folded) and (
            folded[behind + 1] in lexicon.units or words.gaps[behind + 1] in _JOINTS
        )
        if not goes_on and _may_be_reading(words, index - 1) and _is_reading(words, behind):
            yield PhraseMatch(index - 1, behind + 1, True)


def _may_be_reading(words: TokenizedText, index: int) -> bool:
    """Whether a word ends as a reading of a part does; it may be that of the number itself."""
    word = words.folded[index]
    return _is_reading(words, index) or len(word) == 1 or any(map(str.isdigit, word))


def _is_reading(words: TokenizedText, index: int) -> bool:
    """A digit or two, or a capital or two; "or so" is none."""
    text = words.text_of(index, index + 1)
    is_short = len(text) <= MAX_FRAGMENT
    return is_short and (any(map(str.isdigit, text)) or (text.isupper() and len(text) < MAX_FRAGMENT))
