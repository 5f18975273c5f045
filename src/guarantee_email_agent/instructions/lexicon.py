"""The lexicon: words, phrases and patterns by which a mail is read without a language model.

They stand in named elements of the main instruction file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple, TypeVar

from guarantee_email_agent.instructions.markup import Element, MarkupError, parse_elements
from guarantee_email_agent.instructions.phrases import (
    InvalidPhraseError,
    PhraseMatcher,
    PhrasePattern,
    fold,
    parse_phrase,
)
from guarantee_email_agent.utils.safe_regex import UnsafeRegexError, compile_safe_regex

LabelKind = Literal["serial", "weak", "other", "example"]
CorrectionKind = Literal["next", "last", "replacement"]
Courtesy = Literal["thanks", "request"]
Topic = Literal["warranty", "fault", "other", "unsolicited"]

LABEL_ELEMENTS: dict[str, LabelKind] = {
    "serial-labels": "serial",
    "weak-serial-labels": "weak",
    "other-labels": "other",
    "example-markers": "example",
}
CORRECTION_ELEMENTS: dict[str, CorrectionKind] = {
    "retractions": "next",
    "retractions-behind": "last",
    "corrections": "replacement",
}
TOPIC_ELEMENTS: dict[str, Topic] = {
    "about-warranty": "warranty",
    "about-faults": "fault",
    "about-other": "other",
    "about-unsolicited": "unsolicited",
}
WORD_ELEMENTS = (
    "label-links",
    "owner-words",
    "back-references",
    "denials",
    "list-joiners",
    "empty-words",
    "greetings",
)
PATTERN_ELEMENTS = ("labelled-serial", "self-labelled-serial", "unlabelled-serial", "never-serial")
COURTESY_ELEMENTS: dict[str, Courtesy] = {"thanks": "thanks", "requests": "request"}
LEXICON_ELEMENTS = (
    *LABEL_ELEMENTS,
    *CORRECTION_ELEMENTS,
    *COURTESY_ELEMENTS,
    *TOPIC_ELEMENTS,
    *WORD_ELEMENTS,
    *PATTERN_ELEMENTS,
)
"""The elements of the main instruction file that hold the lexicon; all are required."""

MAX_WEIGHT = 9
_Payload = TypeVar("_Payload")


class TopicPhrase(NamedTuple):
    """A phrase that is evidence for a topic, with its weight (1 to MAX_WEIGHT)."""

    phrase: str
    topic: Topic
    weight: int


@dataclass(frozen=True, slots=True)
class Lexicon:
    """Everything the interpreter knows about reading a mail; one field an element or group of elements."""

    labels: PhraseMatcher[LabelKind]
    corrections: PhraseMatcher[CorrectionKind]
    courtesies: PhraseMatcher[Courtesy]
    topics: PhraseMatcher[TopicPhrase]
    links: frozenset[str]
    owners: frozenset[str]
    back_references: frozenset[str]
    denials: frozenset[str]
    joiners: frozenset[str]
    stop_words: frozenset[str]
    greetings: frozenset[str]
    labelled: re.Pattern[str]
    self_labelled: re.Pattern[str]
    unlabelled: re.Pattern[str]
    never: re.Pattern[str]


@lru_cache(maxsize=16)
def parse_lexicon(text: str) -> Lexicon:
    """The lexicon in an instruction text; pure, hence cached.

    Raises MarkupError, with the line, for a missing element, a pattern or a phrase that cannot be used.
    """
    by_name = {element.name: element for element in parse_elements(text) if element.name in LEXICON_ELEMENTS}
    for name in LEXICON_ELEMENTS:
        if name not in by_name:
            raise _error(1, f"<{name}> is missing. Add the element; docs/instructions.md shows what stands in it")
        if children := by_name[name].children:
            raise _error(children[0].line, f"<{children[0].name}> inside <{name}>: only lines of text may stand there")
        if not by_name[name].text.strip():
            raise _error(by_name[name].line, f"<{name}> is empty. Write at least one entry")
    return Lexicon(
        labels=_parse_phrases(by_name, LABEL_ELEMENTS),
        corrections=_parse_phrases(by_name, CORRECTION_ELEMENTS),
        courtesies=_parse_phrases(by_name, COURTESY_ELEMENTS),
        topics=PhraseMatcher(
            phrase for name, topic in TOPIC_ELEMENTS.items() for phrase in _parse_topics(by_name[name], topic)
        ),
        links=_parse_words(by_name["label-links"]),
        owners=_parse_words(by_name["owner-words"]),
        back_references=_parse_words(by_name["back-references"]),
        denials=_parse_words(by_name["denials"]),
        joiners=_parse_words(by_name["list-joiners"]),
        stop_words=_parse_words(by_name["empty-words"]),
        greetings=_parse_words(by_name["greetings"]),
        labelled=_parse_patterns(by_name["labelled-serial"]),
        self_labelled=_parse_patterns(by_name["self-labelled-serial"]),
        unlabelled=_parse_patterns(by_name["unlabelled-serial"]),
        never=_parse_patterns(by_name["never-serial"]),
    )


@lru_cache(maxsize=16)
def without_lexicon(text: str) -> str:
    """An instruction text without the lexicon's elements, and without the paragraph that announces each; pure.

    A language model reads mail without them, and they are twelve times as long as the rest. Any other text is returned
    as it is.
    """
    try:
        elements = [element for element in parse_elements(text) if element.name in LEXICON_ELEMENTS]
    except MarkupError:  # no instruction file
        return text
    if not elements:
        return text
    lines = text.split("\n")
    for element in reversed(elements):
        first = element.line - 1
        end = first + element.text.count("\n") + 1
        while first and not lines[first - 1].strip():
            first -= 1
        while first and lines[first - 1].rstrip().endswith(":"):
            while first and lines[first - 1].strip():
                first -= 1
            while first and not lines[first - 1].strip():
                first -= 1
        del lines[first:end]
    return "\n".join(lines).strip()


def _split_entries(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """(line, entry) pairs: what stands between commas and line ends."""
    return ((line, stripped) for line, text in lines for entry in text.split(",") if (stripped := entry.strip()))


def _parse_phrases(by_name: Mapping[str, Element], kinds: Mapping[str, _Payload]) -> PhraseMatcher[_Payload]:
    """The phrases of several elements, each with what its element makes of it."""
    return PhraseMatcher(
        _parse_phrase(line, source, kind)
        for name, kind in kinds.items()
        for line, source in _split_entries(by_name[name].numbered_lines())
    )


def _parse_topics(element: Element, topic: Topic) -> Iterator[PhrasePattern[TopicPhrase]]:
    """Lines of the form `3: phrase, phrase`, the weight first."""
    for line, text in element.numbered_lines():
        weight, colon, phrases = text.partition(":")
        if not colon or not weight.strip().isdecimal() or not 1 <= int(weight) <= MAX_WEIGHT:
            raise _error(
                line,
                f"'{text[:40]}' has no weight. Begin the line with one from 1 to {MAX_WEIGHT}, such as '3: phrase'",
            )
        for _, source in _split_entries([(line, phrases)]):
            yield _parse_phrase(line, source, TopicPhrase(source, topic, int(weight)))


def _parse_phrase(line: int, source: str, payload: _Payload) -> PhrasePattern[_Payload]:
    try:
        return parse_phrase(source, payload)
    except InvalidPhraseError as error:
        raise _error(line, f"phrase '{source}' {error}") from None


def _parse_words(element: Element) -> frozenset[str]:
    words = set()
    for line, word in _split_entries(element.numbered_lines()):
        if not word.isalnum():
            raise _error(line, f"'{word}' is not a single word. Only single words may stand in <{element.name}>")
        words.add(fold(word))
    return frozenset(words)


def _parse_patterns(element: Element) -> re.Pattern[str]:
    """All lines as one pattern of alternatives; each is checked on its own, since the bound is for one line."""
    sources = []
    for line, source in element.numbered_lines():
        try:
            compile_safe_regex(source)
        except UnsafeRegexError as error:
            raise _error(line, f"pattern '{source}' {error}") from None
        sources.append(f"(?:{source})")
    return re.compile("|".join(sources), re.IGNORECASE)


def _error(line: int, message: str) -> MarkupError:
    return MarkupError(message, "instruction_rule_invalid", {"line": line})
