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
WEIGHT_OF_DEVICE: Final = 1

MAX_WORDS: Final = 5_000
MAX_WORDS_OF_NAME: Final = 4
MIN_LENGTH: Final = 3
MIN_CONTENT: Final = 4
"""A mail of fewer words, but for empty ones, is asked what it means."""
MIN_ASKED: Final = 3
"""A question of fewer is any question: "Any news?"."""


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
    text: str,
    lexicon: Lexicon,
    language: str | None,
    *,
    gives_number: bool = False,
    is_answer: bool = False,
    gets_status: bool = False,
) -> Doubt:
    """All of it where a mail says something, and nothing tells what it is about; or wants more than it would be told.

    Else each word of its least explained part counts that nothing explains, and more where nobody asks for a warranty
    or tells of a fault. language: in German every noun begins with a capital, elsewhere names do. gives_number: the
    text holds a number that was asked for. is_answer: it answers our question for one. gets_status: it is a first mail
    that would be told whether its device is under warranty.
    """
    words = tokenize(text)
    evidence = _evidence(words, lexicon)
    asks, tells_fault = evidence.asks or gives_number, bool(evidence.faults)
    nothing_known = not (asks or tells_fault or evidence.is_other)
    if nothing_known and (doubt := _doubt_of(words, lexicon, 0, len(words.folded), MIN_CONTENT)):
        return doubt
    if gets_status and (doubt := _wants_other(words, lexicon, evidence)):
        return doubt
    least = _least_explained(words, lexicon, names_are_capital=language != "de")
    extra = EXTRA_DOUBT.get((asks, tells_fault), 0) if least.percent else 0
    least = least._replace(percent=min(MAX_DOUBT, least.percent + extra))
    resemblance = measure_resemblance(words, is_answer=is_answer)
    return Doubt(*resemblance) if resemblance.percent > least.percent else least


def measure_doubt_of_answer(text: str) -> Doubt:
    """That of a text which is essentially the number asked for: the words beside it were judged with it."""
    return Doubt(*measure_resemblance(tokenize(text), is_answer=True))


class _Evidence(NamedTuple):
    """What a text is about, by the lexicon. asks: for a warranty, or with a label of serial numbers.

    named, faults: the words at which a warranty or a repair, and a fault, stand. labels: those of labels.
    """

    asks: bool
    is_other: bool
    named: set[int]
    faults: set[int]
    labels: set[int]


def _evidence(words: TokenizedText, lexicon: Lexicon) -> _Evidence:
    topics = lexicon.topics.find(words)
    of_warranty = [each for each in topics if each.payload.topic in WARRANTY.topics]
    serial = [each for each in lexicon.labels.find(words) if each.payload == "serial"]
    labels = {index for label in serial for index in range(label.first, label.end)}
    faults = {each.first for each in topics if each.payload.topic == FAULT}
    return _Evidence(
        bool(labels) or max([each.payload.weight for each in of_warranty], default=0) >= WEIGHT_OF_QUESTION,
        not {each.payload.topic for each in topics} <= {*WARRANTY.topics, FAULT},
        {each.first for each in of_warranty if each.payload.weight > WEIGHT_OF_DEVICE and each.first not in labels},
        faults.union(lexicon.denials_in(words) if of_warranty else ()),
        labels,
    )


def _wants_other(words: TokenizedText, lexicon: Lexicon, evidence: _Evidence) -> Doubt | None:
    """All there is where who gives a number wants more than its status: "any jars left for sale?".

    That is, asks for something and speaks of neither warranty, repair nor fault, or has a sentence that does so, unless
    it asks for the next step of a claim: "do you need the receipt?".
    """
    explained = evidence.named | evidence.faults
    is_question = "?" in words.text
    wishes = {each.first for each in lexicon.wishes.find(words)}
    if explained and not (is_question or wishes):
        return None
    courtesies = lexicon.courtesies.find(words)
    if not explained and (is_question or any(each.payload != "thanks" for each in courtesies)):
        return _doubt_of(words, lexicon, 0, len(words.folded), MIN_CONTENT)
    explained |= evidence.labels.union(each.first for each in lexicon.corrections.find(words))
    explained |= {each.first for each in courtesies if each.payload == "step"}
    lines = filter(words.starts_line, words.line_starts())
    starts = sorted({0, *lines, *compress(count(), words.starts_sentence)})
    for first, end in pairwise((*starts, len(words.folded))):
        behind = words.gaps[end] if end < len(words.folded) else f"{words.text[words.ends[-1] :]} "
        is_asked = "?" in behind and behind[-1].isspace()  # not that of a link
        is_other = (is_asked or not wishes.isdisjoint(range(first, end))) and explained.isdisjoint(range(first, end))
        if is_other and (doubt := _doubt_of(words, lexicon, first, end, MIN_ASKED)):
            return doubt
    return None


def _doubt_of(words: TokenizedText, lexicon: Lexicon, first: int, end: int, least: int) -> Doubt | None:
    """All there is of the sentence words[first:end], where it has so many words that say something."""
    content = dict.fromkeys(
        [word for word in words.folded[first:end] if word.isalpha() and word not in lexicon.stop_words]
    )
    if len(content) < least:
        return None
    return Doubt(MAX_DOUBT, 1 + sum(words.starts_sentence[1 : first + 1]), tuple(content))


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
