"""How much speaks against an answer: words that no entry of the lexicon knows, no topic, a likeness to grave mails.

What is dangerous cannot be listed to its end. What customers plainly write of devices, purchases and warranties can, so
a sentence that goes on about something else raises doubt, whatever it is about.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import compress, count, pairwise
from typing import Final, NamedTuple

from guarantee_email_agent.instructions.lexicon import FAULT, Lexicon
from guarantee_email_agent.instructions.look_up import WARRANTY
from guarantee_email_agent.instructions.phrases import TokenizedText, tokenize
from guarantee_email_agent.reading.hand_over_classifier import measure_resemblance

WINDOW: Final = 12
"""Words that are looked at together: some people never end a sentence."""

DOUBT_OF_WORD: Final = 10
EXTRA_DOUBT: Final = {(True, True): 0, (True, False): 10, (False, True): 20}
"""What is added where a mail asks for a warranty, and where it tells of a fault."""
MAX_DOUBT: Final = 100
WEIGHT_OF_QUESTION: Final = 3
"""What a phrase of the warranty weighs that asks for it, and does not only name a device."""

MAX_WORDS: Final = 5_000
MAX_WORDS_OF_NAME: Final = 4
MIN_LENGTH: Final = 3
MIN_CONTENT: Final = 4
"""A mail of fewer words, but for empty ones, is asked what it means."""


class Doubt(NamedTuple):
    """percent: 0 to 100. sentence: the one that raises most of it, from 1. words: what nothing explains there.

    Without words, the mail resembles those that a person has to read.
    """

    percent: int
    sentence: int = 0
    words: tuple[str, ...] = ()

    def describe(self) -> str:
        """For a log, without a word of the mail."""
        if self.words:
            return f"{len(self.words)} words of sentence {self.sentence} are not understood"
        return f"the mail resembles those for a person, most of all sentence {self.sentence} ({self.percent} %)"


NO_DOUBT: Final = Doubt(0)


def measure_doubt(
    text: str, lexicon: Lexicon, language: str | None, *, gives_number: bool = False, is_answer: bool = False
) -> Doubt:
    """All of it where a mail says something, and nothing tells what it is about.

    Else each word of its least explained part counts that nothing explains, and more where nobody asks for a warranty
    or tells of a fault. language: in German every noun begins with a capital, elsewhere names do. gives_number: the
    text holds a number that was asked for. is_answer: it answers our question for one.
    """
    words = tokenize(text)
    asks, tells_fault, is_other = _evidence(words, lexicon)
    asks = asks or gives_number
    if not (asks or tells_fault or is_other):
        content = dict.fromkeys(word for word in words.folded if word.isalpha() and word not in lexicon.stop_words)
        if len(content) >= MIN_CONTENT:
            return Doubt(MAX_DOUBT, 1, tuple(content))
    least = _least_explained(words, lexicon, names_are_capital=language != "de")
    extra = EXTRA_DOUBT.get((asks, tells_fault), 0) if least.percent else 0
    least = least._replace(percent=min(MAX_DOUBT, least.percent + extra))
    resemblance = measure_resemblance(words, is_answer=is_answer)
    return Doubt(*resemblance) if resemblance.percent > least.percent else least


def measure_doubt_of_answer(text: str) -> Doubt:
    """That of a text which is essentially the number asked for: the words beside it were judged with it."""
    return Doubt(*measure_resemblance(tokenize(text), is_answer=True))


def _evidence(words: TokenizedText, lexicon: Lexicon) -> tuple[bool, bool, bool]:
    """Whether a text asks for a warranty or labels a serial number, tells of a fault, is about something else."""
    topics = [match.payload for match in lexicon.topics.find(words)]
    of_warranty = [each.weight for each in topics if each.topic in WARRANTY.topics]
    is_labelled = any(label.payload == "serial" for label in lexicon.labels.find(words))
    denies = bool(of_warranty) and bool(lexicon.denials_in(words))
    return (
        is_labelled or max(of_warranty, default=0) >= WEIGHT_OF_QUESTION,
        denies or any(each.topic == FAULT for each in topics),
        any(each.topic not in (*WARRANTY.topics, FAULT) for each in topics),
    )


def _least_explained(words: TokenizedText, lexicon: Lexicon, *, names_are_capital: bool) -> Doubt:
    unknown = _unknown_words(words, lexicon, names_are_capital=names_are_capital)
    if not unknown:
        return NO_DOUBT
    worst, last_sentence = NO_DOUBT, 0
    window: list[int] = []
    # The first word starts the first sentence in any case.
    starts = sorted({0, *words.line_starts(), *compress(count(), words.starts_sentence)})
    for index in unknown:
        sentence = bisect_right(starts, index)
        if sentence != last_sentence:
            last_sentence, window = sentence, []
        window = [each for each in window if each > index - WINDOW]
        if words.folded[index] not in {words.folded[each] for each in window}:
            window.append(index)
        if (percent := min(MAX_DOUBT, DOUBT_OF_WORD * len(window))) > worst.percent:
            worst = Doubt(percent, sentence, tuple(words.text_of(each, each + 1) for each in window))
    return worst


def _unknown_words(words: TokenizedText, lexicon: Lexicon, *, names_are_capital: bool) -> list[int]:
    known = lexicon.meanings.known_words(words).union(_words_of_names(words))
    unknown: list[int] = []
    for index in sorted(set(range(min(len(words.folded), MAX_WORDS))).difference(known)):
        word = words.folded[index]
        if len(word) < MIN_LENGTH or not word.isalpha() or word in lexicon.stop_words:
            continue
        gap = words.gaps[index]
        starts_sentence = not index or words.starts_sentence[index] or "\n" in gap or ":" in gap
        if not (names_are_capital and words.text_of(index, index + 1).istitle() and not starts_sentence):
            unknown.append(index)
    return unknown


def _words_of_names(words: TokenizedText) -> Iterator[int]:
    """The words of lines, below the first, that are nothing but names: a few words, each with a capital."""
    for first, end in pairwise((*words.line_starts(), len(words.folded))):
        if end - first <= MAX_WORDS_OF_NAME and all(words.text[start].isupper() for start in words.starts[first:end]):
            yield from range(first, end)
