"""How much of a mail nothing explains: the words of a sentence that no entry of the lexicon knows.

What is dangerous cannot be listed to its end. What customers plainly write of devices, purchases and warranties can, so
a sentence that goes on about something else raises doubt, whatever it is about.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from guarantee_email_agent.instructions.lexicon import Lexicon
from guarantee_email_agent.instructions.phrases import TokenizedText, tokenize
from guarantee_email_agent.reading.number_tokens import SENTENCE_END

WINDOW: Final = 12
"""Words that are looked at together: some people never end a sentence."""

DOUBT_OF_WORD: Final = 10
MAX_DOUBT: Final = 100
MAX_WORDS: Final = 5_000
MAX_WORDS_OF_NAME: Final = 4
MIN_LENGTH: Final = 3


class Doubt(NamedTuple):
    """percent: 0 to 100, of the least explained part of the text, 10 for each word that nothing explains.

    sentence: which one holds it, from 1. words: the unexplained ones, as they stand there.
    """

    percent: int
    sentence: int = 0
    words: tuple[str, ...] = ()


NO_DOUBT: Final = Doubt(0)


def measure_doubt(text: str, lexicon: Lexicon, language: str | None) -> Doubt:
    """language: of the text, where it is known: in German every noun begins with a capital, elsewhere names do."""
    words = tokenize(text)
    unknown = _unknown_words(words, lexicon, names_are_capital=language != "de")
    worst, sentence, window = NO_DOUBT, 1, list[int]()
    for index in range(min(len(words.folded), MAX_WORDS)):
        if index and (SENTENCE_END.search(gap := words.gap_before(index)) or "\n" in gap):
            sentence, window = sentence + 1, []
        if index in unknown:
            window = [each for each in window if each > index - WINDOW]
            if words.folded[index] not in {words.folded[each] for each in window}:
                window.append(index)
            if (percent := min(MAX_DOUBT, DOUBT_OF_WORD * len(window))) > worst.percent:
                worst = Doubt(percent, sentence, tuple(words.text_of(each, each + 1) for each in window))
    return worst


def _unknown_words(words: TokenizedText, lexicon: Lexicon, *, names_are_capital: bool) -> set[int]:
    known = {index for match in lexicon.explained.find(words) for index in range(match.first, match.end)}
    known.update(_words_of_names(words))
    unknown = set[int]()
    for index, word in enumerate(words.folded[:MAX_WORDS]):
        if index in known or len(word) < MIN_LENGTH or not word.isalpha() or word in lexicon.stop_words:
            continue
        gap = words.gap_before(index)
        starts_sentence = not index or bool(SENTENCE_END.search(gap)) or "\n" in gap or ":" in gap
        if not (names_are_capital and words.text_of(index, index + 1).istitle() and not starts_sentence):
            unknown.add(index)
    return unknown


def _words_of_names(words: TokenizedText) -> Iterator[int]:
    """The words of lines, below the first, that are nothing but names: a few words, each with a capital."""
    line, is_first = list[int](), True
    for index in range(len(words.folded) + 1):
        if index == len(words.folded) or "\n" in words.gap_before(index):
            if (
                not is_first
                and len(line) <= MAX_WORDS_OF_NAME
                and all(words.text_of(each, each + 1)[0].isupper() for each in line)
            ):
                yield from line
            line, is_first = [], False
        line.append(index)
