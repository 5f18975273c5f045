"""The numbers of a look-up that a text gives: whole numbers that fit its pattern, by the labels before or behind them.

A number that carries another label ("invoice AB-10001") never counts. Without a label a number counts where its own
shape, with a letter in it, tells what it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from guarantee_email_agent.instructions.lexicon import Lexicon
from guarantee_email_agent.instructions.look_up import NumberFormat
from guarantee_email_agent.instructions.phrases import PhraseMatcher, TokenizedText, parse_phrase
from guarantee_email_agent.interpreter.number_spans import find_address_words, is_distinctive
from guarantee_email_agent.interpreter.whole_numbers import WholeNumber, find_whole_numbers

MAX_WORDS_FROM_LABEL: Final = 6
MAX_WORDS_TO_LABEL_BEHIND: Final = 4

_SENTENCE_END: Final = re.compile(r"[?!;]|[.](?=\s)|\n[ \t]*\n")
_LIST_GAP: Final = re.compile(r"[ \t]*[,/&+;]?\s*")
_NOT_ALPHANUMERIC: Final = re.compile(r"[^A-Z0-9]+")
# A reply repeats the number, perhaps to somebody whose address was forged: nothing that is a link.
_LINK: Final = re.compile(r"[.][A-Z]{2,}(?:/|$)")

_Claim = Literal["own", "other"]


class _Label(NamedTuple):
    """A label by its first word; what it says of the number behind it."""

    first: int
    claim: _Claim


@dataclass(frozen=True, slots=True)
class GivenNumbers:
    """Spellings by key, in order of appearance: those that carry a label, and those that tell by their shape.

    bare: those that fit the pattern and tell nothing by themselves.
    """

    labelled: dict[str, str]
    unlabelled: dict[str, str]
    bare: dict[str, str]

    def all(self, *, asked: bool) -> dict[str, str]:
        """What the text gives. asked: it answers the question for such a number, so a lone one needs no label."""
        given = self.labelled | {key: text for key, text in self.unlabelled.items() if key not in self.labelled}
        return self.bare if asked and not given and len(self.bare) == 1 else given


def number_key(number: str) -> str:
    """Equal for two spellings of one number: `ab-10001` and `AB10001`."""
    return _NOT_ALPHANUMERIC.sub("", number.upper())


def find_given_numbers(words: TokenizedText, number_format: NumberFormat, lexicon: Lexicon) -> GivenNumbers:
    """Time is linear in the text's length."""
    labels, pattern = _compiled(number_format)
    own = labels.find(words)
    claims: dict[int, _Label] = {}
    for label in lexicon.labels.find(words):
        claims[label.end] = _Label(label.first, "other")
    starts: dict[int, int] = {}
    for match in own:
        claims[match.end] = _Label(match.first, "own")
        starts[match.first] = match.end
        for inside in range(match.first + 1, match.end):
            claims.pop(inside, None)  # the "order" of "order number" claims nothing by itself
    addresses = find_address_words(words)
    numbers = [number for number in find_whole_numbers(words, lexicon) if number.first not in addresses]
    labelled: dict[str, str] = {}
    unlabelled: dict[str, str] = {}
    bare: dict[str, str] = {}
    last: tuple[int, _Claim | None] = (0, None)
    for index, number in enumerate(numbers):
        following = numbers[index + 1].first if index + 1 < len(numbers) else len(words.folded)
        claim = _claim_before(number, last, words, claims, lexicon)
        if claim is None and _has_label_behind(number, following, words, starts):
            claim = "own"
        last = (number.end, claim)
        text = number.text
        if claim == "other" or not text or not pattern.fullmatch(text) or _LINK.search(text):
            continue
        kind = labelled if claim == "own" else unlabelled if is_distinctive(text) else bare
        kind.setdefault(number_key(text), text)
    return GivenNumbers(labelled, unlabelled, bare)


@lru_cache(maxsize=64)
def _compiled(number_format: NumberFormat) -> tuple[PhraseMatcher[None], re.Pattern[str]]:
    """Labels and pattern, both checked when the configuration was read."""
    phrases: Iterable[str] = number_format.labels
    matcher = PhraseMatcher(parse_phrase(phrase, None) for phrase in phrases)
    return matcher, re.compile(f"(?:{number_format.pattern})", re.IGNORECASE)


def _claim_before(
    number: WholeNumber,
    last: tuple[int, _Claim | None],
    words: TokenizedText,
    claims: Mapping[int, _Label],
    lexicon: Lexicon,
) -> _Claim | None:
    """Whose label stands before a number: the nearest one in its sentence, or that of the list it goes on with."""
    last_end, last_claim = last
    for end in range(number.first, max(last_end, number.first - MAX_WORDS_FROM_LABEL) - 1, -1):
        if end in claims and end > last_end:
            label = claims[end]
            # "I have no order number, only 123456"
            is_denied = end < number.first and label.first > 0 and words.folded[label.first - 1] in lexicon.denials
            return None if is_denied and label.claim == "own" else label.claim
        if end == last_end and last_end:
            break
        if end < number.first and words.folded[end] in lexicon.denials:
            return None
        if end and _SENTENCE_END.search(words.gap_before(end)):
            return None
    between = [words.folded[index] for index in range(last_end, number.first)]
    gap_is_list = all(_LIST_GAP.fullmatch(words.gap_before(index)) for index in range(last_end, number.first + 1))
    goes_on = last_end and gap_is_list and all(word in lexicon.joiners for word in between)
    return last_claim if goes_on else None


def _has_label_behind(number: WholeNumber, following: int, words: TokenizedText, starts: Mapping[int, int]) -> bool:
    """ "AB-10001 is my order number", unless that label has a number of its own behind it."""
    for index in range(number.end, min(number.end + MAX_WORDS_TO_LABEL_BEHIND, len(words.folded))):
        gap = words.gap_before(index)
        if _SENTENCE_END.search(gap) or "," in gap or "\n" in gap:
            return False
        if index in starts:
            return following - starts[index] > MAX_WORDS_FROM_LABEL or following == len(words.folded)
    return False
