"""The lexicon: words, phrases and patterns by which a mail is read without a language model.

They stand in named elements of the files in `instructions/lexicon`, one file a language. No model gets them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, compress, count
from pathlib import Path
from typing import Final, Literal, NamedTuple

from guarantee_email_agent.files.problems import suggestion
from guarantee_email_agent.files.text_file import InputFileError, decode_text, read_bytes
from guarantee_email_agent.instructions.look_up import WARRANTY
from guarantee_email_agent.instructions.markup import Element, MarkupError, parse_elements
from guarantee_email_agent.instructions.phrases import (
    InvalidPhraseError,
    Meaning,
    MeaningMatcher,
    Phrase,
    PhrasesOfKind,
    TokenizedText,
    fold,
    read_phrase,
    read_phrases,
)
from guarantee_email_agent.instructions.reply_markup import UNTRANSLATED
from guarantee_email_agent.instructions.router import OTHER_TOPIC
from guarantee_email_agent.utils.errors import InstructionError
from guarantee_email_agent.utils.safe_regex import UnsafeRegexError, check_safe_regex, compile_safe_regex

LabelKind = Literal["serial", "weak", "other", "example", "number", "plate"]
CorrectionKind = Literal["next", "last", "replacement", "withdrawal"]
Courtesy = Literal["thanks", "request", "step"]

FAULT: Final = "<faults>"
UNSOLICITED: Final = "<unsolicited>"
"""What phrases may speak for besides the topics; no topic can be called so."""

LABEL_ELEMENTS: dict[str, LabelKind] = {
    "serial-labels": "serial",
    "weak-serial-labels": "weak",
    "other-labels": "other",
    "example-markers": "example",
}
PLATE_ELEMENTS: dict[str, LabelKind] = {"number-words": "number", "plate-words": "plate"}
"""Together they label a number: "the number on the sticker"."""
HELP_ELEMENT: Final = "helpers"
"""What a neighbour does who only reads the number."""
WITHDRAWAL_ELEMENT: Final = "withdrawals"
READABLE_ELEMENT: Final = "readable-signs"
SPOKEN_ELEMENT: Final = "spoken-signs"
"""Signs of a number in words, as who dictates one says them."""
WISH_ELEMENT: Final = "wishes"
STEP_ELEMENT: Final = "next-steps"
"""What is asked of the claim itself, and every reply to one answers: "do you need the receipt"."""
OPTIONAL_ELEMENTS = (
    *(*PLATE_ELEMENTS, HELP_ELEMENT, WITHDRAWAL_ELEMENT, READABLE_ELEMENT),
    *(SPOKEN_ELEMENT, WISH_ELEMENT, STEP_ELEMENT),
)
CORRECTION_ELEMENTS: dict[str, CorrectionKind] = {
    "retractions": "next",
    "retractions-behind": "last",
    "corrections": "replacement",
}
ABOUT_ELEMENT: Final = "about"
"""Phrases that speak for the topic in its attribute `topic`; the one element that a file may hold several times."""
EVIDENCE_ELEMENTS: dict[str, str] = {"faults": FAULT, "unsolicited": UNSOLICITED}
NUMBER_ELEMENTS = ("unreadable-signs", "doubtful-signs", "unsure-answers", "other-owners")
"""What is said of a number that nobody can read, or that is somebody else's."""
WORD_ELEMENTS = (
    "label-links",
    "owner-words",
    "back-references",
    "denials",
    "list-joiners",
    "alternatives",
    "units",
    "empty-words",
    "greetings",
)
PATTERN_ELEMENTS = ("labelled-serial", "self-labelled-serial", "unlabelled-serial", "never-serial")
EXPLAINED_ELEMENT: Final = "known-words"
"""What customers plainly write of a device, its purchase and its warranty, besides what the other elements hold."""
COURTESY_ELEMENTS: dict[str, Courtesy] = {"thanks": "thanks", "requests": "request"}
REQUIRED_ELEMENTS = (
    *LABEL_ELEMENTS,
    *CORRECTION_ELEMENTS,
    *COURTESY_ELEMENTS,
    *EVIDENCE_ELEMENTS,
    *NUMBER_ELEMENTS,
    EXPLAINED_ELEMENT,
    *WORD_ELEMENTS,
    *PATTERN_ELEMENTS,
    ABOUT_ELEMENT,
)
"""Each stands in one file of the lexicon at least."""
LEXICON_ELEMENTS = (*REQUIRED_ELEMENTS, *OPTIONAL_ELEMENTS)

_RETIRED_ELEMENT: Final = "function-words"
"""In files that an earlier version wrote: a library tells the language of a mail now, and the list is not read."""

_APOSTROPHES: Final = ("'", "’")

MAX_WEIGHT = 9


class TopicPhrase(NamedTuple):
    """A phrase that is evidence for a topic, with its weight (1 to MAX_WEIGHT)."""

    phrase: str
    topic: str
    weight: int


@dataclass(frozen=True, slots=True, eq=False)
class Lexicon:
    """Everything that is known about reading a mail; one field an element or group of elements."""

    meanings: MeaningMatcher
    """Every phrase and word of which it is known what it means in a mail."""
    labels: PhrasesOfKind[LabelKind]
    corrections: PhrasesOfKind[CorrectionKind]
    courtesies: PhrasesOfKind[Courtesy]
    wishes: PhrasesOfKind[None]
    topics: PhrasesOfKind[TopicPhrase]
    unreadable: PhrasesOfKind[bool | None]
    """Whether a phrase counts behind the sentence of a number, too."""
    unsure_answers: PhrasesOfKind[None]
    other_owners: PhrasesOfKind[bool]
    """Whether a phrase says that somebody only helped, so that one that names an owner counts for nothing."""
    links: frozenset[str]
    owners: frozenset[str]
    back_references: frozenset[str]
    denials: frozenset[str]
    joiners: frozenset[str]
    alternatives: frozenset[str]
    units: frozenset[str]
    stop_words: frozenset[str]
    greetings: frozenset[str]
    spoken_signs: frozenset[str]
    fillers: frozenset[str]
    """Words that say nothing by themselves, or only join."""
    labelled: re.Pattern[str]
    self_labelled: re.Pattern[str]
    unlabelled: re.Pattern[str]
    never: re.Pattern[str]

    def denials_in(self, words: TokenizedText) -> set[int]:
        """The words that say no, as the t of "can't" does."""
        found = set(compress(count(), map(self.denials.__contains__, words.folded)))
        letters = compress(count(), map("t".__eq__, words.folded))
        return found.union(index for index in letters if words.gaps[index] in _APOSTROPHES)


LexiconSource = Callable[[], Lexicon]
"""Where an interpreter gets the lexicon as it stands now. Raises InstructionError."""

_Elements = Mapping[str, Sequence[Element]]


@lru_cache(maxsize=16)
def parse_lexicon(files: tuple[tuple[str, str], ...], other_labels: tuple[str, ...] = ()) -> Lexicon:
    """The lexicon in (path, text) pairs; pure, hence cached.

    other_labels: of the numbers of look-ups, which are no serial numbers, whether or not a file knows the label.

    Raises InstructionError, with a line for each file that cannot be used or what is missing in all of them.
    """
    try:
        by_file = [_elements_of(text) for _, text in files]
        elements = {name: [each for found in by_file for each in found[name]] for name in LEXICON_ELEMENTS}
        lexicon = _build(elements, other_labels)
    except MarkupError:
        raise InstructionError("\n".join(_problems_by_file(files)), "instruction_lexicon_invalid") from None
    missing = [name for name in REQUIRED_ELEMENTS if not any(found[name] for found in by_file)]
    if missing:
        where = files[0][0].rpartition("/")[0] if files else "the lexicon"
        problems = [
            f"{where}: no file holds <{name}>. Add it to one; docs/instructions.md shows what stands in it"
            for name in missing
        ]
        raise InstructionError("\n".join(problems), "instruction_lexicon_invalid")
    return lexicon


def _problems_by_file(files: Iterable[tuple[str, str]]) -> Iterator[str]:
    """The first problem of each file, which alone tells its line."""
    for path, text in files:
        try:
            _build(_elements_of(text), ())
        except MarkupError as error:
            yield f"{path}:{error.line}: {error.message}"


def without_untranslated(files: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """Of (path, text) pairs those that are no skeletons."""
    return tuple(each for each in files if UNTRANSLATED not in each[1])


def lexicon_topics(lexicon_files: tuple[tuple[str, str], ...]) -> Iterator[tuple[str, str]]:
    """(place, topic) pairs of every `<about>`, in files that parse."""
    for path, text in without_untranslated(lexicon_files):
        for element in _elements_of(text)[ABOUT_ELEMENT]:
            yield f"{path}:{element.line}", element.attributes["topic"]


def _elements_of(text: str) -> dict[str, list[Element]]:
    """The elements of one file by name. Raises MarkupError for what cannot stand there."""
    by_name: dict[str, list[Element]] = {name: [] for name in LEXICON_ELEMENTS}
    seen = set[tuple[str, str | None]]()
    for element in parse_elements(text):
        name, topic = element.name, element.attributes.get("topic")
        if name == _RETIRED_ELEMENT:
            continue
        if name not in by_name:
            remedy = suggestion(name, LEXICON_ELEMENTS) or ". docs/instructions.md names those of a lexicon file"
            raise _error(element.line, f"<{name}> is unknown{remedy}")
        if element.attributes.keys() != ({"topic"} if name == ABOUT_ELEMENT else set()):
            expected = '<about topic="…">, with the name of a topic' if name == ABOUT_ELEMENT else f"<{name}> alone"
            raise _error(element.line, f"<{name}> has a wrong attribute, or lacks one. Write {expected}")
        if (name, topic) in seen:
            raise _error(element.line, f"<{name}> stands twice in this file. Put all its entries into one")
        if element.children:
            child = element.children[0]
            raise _error(child.line, f"<{child.name}> inside <{name}>: only lines of text may stand there")
        if not element.text.strip():
            raise _error(element.line, f"<{name}> is empty. Write at least one entry, or remove it")
        seen.add((name, topic))
        by_name[name].append(element)
    return by_name


def _build(elements: _Elements, other_labels: Sequence[str]) -> Lexicon:
    # Of phrases that are equally long the first counts: those of the topics that a user added go before the shipped.
    about = [(element, element.attributes["topic"]) for element in elements[ABOUT_ELEMENT]]
    by_topic = [(element, topic) for element, topic in about if topic not in (WARRANTY.topics[0], OTHER_TOPIC)]
    by_topic += [(element, topic) for element, topic in about if topic == WARRANTY.topics[0]]
    by_topic += [(element, FAULT) for element in elements["faults"]]
    by_topic += [(element, topic) for element, topic in about if topic == OTHER_TOPIC]
    by_topic += [(element, UNSOLICITED) for element in elements["unsolicited"]]
    other_label = Meaning("labels", LABEL_ELEMENTS["other-labels"], is_known=False)
    meanings = MeaningMatcher(
        chain(
            _parse_phrases(elements, "labels", {**LABEL_ELEMENTS, **PLATE_ELEMENTS}),
            (read_phrase(label, other_label) for label in other_labels),
            _parse_phrases(elements, "corrections", {**CORRECTION_ELEMENTS, WITHDRAWAL_ELEMENT: "withdrawal"}),
            _parse_phrases(elements, "courtesies", {**COURTESY_ELEMENTS, STEP_ELEMENT: "step"}),
            _parse_phrases(elements, "wishes", {WISH_ELEMENT: None}),
            (phrase for element, topic in by_topic for phrase in _parse_topics(element, topic)),
            _parse_phrases(
                elements, "unreadable", {"doubtful-signs": True, "unreadable-signs": False, READABLE_ELEMENT: None}
            ),
            _parse_phrases(elements, "unsure-answers", {"unsure-answers": None}),
            _parse_phrases(elements, "other-owners", {"other-owners": False, HELP_ELEMENT: True}),
            _parse_phrases(elements, None, dict.fromkeys((EXPLAINED_ELEMENT, SPOKEN_ELEMENT, *WORD_ELEMENTS))),
        )
    )
    stop_words, joiners, links = (
        _parse_words(elements[name]) for name in ("empty-words", "list-joiners", "label-links")
    )
    return Lexicon(
        meanings,
        labels=PhrasesOfKind(meanings, "labels"),
        corrections=PhrasesOfKind(meanings, "corrections"),
        courtesies=PhrasesOfKind(meanings, "courtesies"),
        wishes=PhrasesOfKind(meanings, "wishes"),
        topics=PhrasesOfKind(meanings, "topics"),
        unreadable=PhrasesOfKind(meanings, "unreadable"),
        unsure_answers=PhrasesOfKind(meanings, "unsure-answers"),
        other_owners=PhrasesOfKind(meanings, "other-owners"),
        links=links,
        owners=_parse_words(elements["owner-words"]),
        back_references=_parse_words(elements["back-references"]),
        denials=_parse_words(elements["denials"]),
        joiners=joiners,
        alternatives=_parse_words(elements["alternatives"]),
        units=_parse_words(elements["units"]),
        stop_words=stop_words,
        greetings=_parse_words(elements["greetings"]),
        spoken_signs=_parse_words(elements[SPOKEN_ELEMENT]),
        fillers=stop_words | joiners | links,
        labelled=_parse_patterns(elements["labelled-serial"]),
        self_labelled=_parse_patterns(elements["self-labelled-serial"]),
        unlabelled=_parse_patterns(elements["unlabelled-serial"]),
        never=_parse_patterns(elements["never-serial"]),
    )


def _parse_phrases(elements: _Elements, kind: str | None, payloads: Mapping[str, object]) -> list[Phrase[Meaning]]:
    """The phrases of several elements, each with what its element makes of it."""
    return [
        phrase
        for name, payload in payloads.items()
        for element in elements[name]
        for line, text in element.numbered_lines()
        for phrase in _read_phrases(line, text, Meaning(kind, payload))
    ]


def _parse_topics(element: Element, topic: str) -> list[Phrase[Meaning]]:
    """Lines of the form `3: phrase, phrase`, the weight first."""
    found = list[Phrase[Meaning]]()
    for line, text in element.numbered_lines():
        weight, colon, phrases = text.partition(":")
        if not colon or not weight.strip().isdecimal() or not 1 <= int(weight) <= MAX_WEIGHT:
            raise _error(
                line,
                f"'{text[:40]}' has no weight. Begin the line with one from 1 to {MAX_WEIGHT}, such as '3: phrase'",
            )
        number = int(weight)
        for entry in phrases.split(","):
            if source := entry.strip():
                found += _read_phrases(line, source, Meaning("topics", TopicPhrase(source, topic, number)))
    return found


def _read_phrases(line: int, text: str, meaning: Meaning) -> list[Phrase[Meaning]]:
    try:
        return read_phrases(text, meaning)
    except InvalidPhraseError as error:
        raise _error(line, str(error)) from None


def _parse_words(elements: Sequence[Element]) -> frozenset[str]:
    words = set()
    for element in elements:
        entries = ((line, entry.strip()) for line, text in element.numbered_lines() for entry in text.split(","))
        for line, word in entries:
            if word and not word.isalnum():
                raise _error(line, f"'{word}' is not a single word. Only single words may stand in <{element.name}>")
            words.add(fold(word))
    return frozenset(filter(None, words))


def _parse_patterns(elements: Sequence[Element]) -> re.Pattern[str]:
    """All lines as one pattern of alternatives; each is checked on its own, since the bound is for one line."""
    lines = [line for element in elements for line in element.numbered_lines()]
    _check_patterns(lines, check_safe_regex)
    try:
        return re.compile("|".join(f"(?:{source})" for _, source in lines), re.IGNORECASE)
    except (re.error, RecursionError, OverflowError):
        _check_patterns(lines, compile_safe_regex)  # one of them alone tells which
        raise


def _check_patterns(lines: Iterable[tuple[int, str]], check: Callable[[str], object]) -> None:
    for line, source in lines:
        try:
            check(source)
        except UnsafeRegexError as error:
            raise _error(line, f"pattern '{source}' {error}") from None


def _error(line: int, message: str) -> MarkupError:
    return MarkupError(message, "instruction_rule_invalid", {"line": line})


MAX_BYTES = 256 * 1024


def lexicon_folder(main: Path) -> Path:
    """The one beside a main file."""
    return main.parent / "lexicon"


def load_lexicon(folder: Path) -> Lexicon:
    """That of the files as they are now. Raises InstructionError, with a line for every file that cannot be used."""
    return parse_lexicon(without_untranslated(read_lexicon(folder)))


def read_lexicon(folder: Path) -> tuple[tuple[str, str], ...]:
    """(path, text) pairs of the `*.md` files, in the order of their names. Raises InstructionError."""
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(".md") and name[0] not in "._")
    except OSError as error:
        raise InstructionError(
            f"{folder}: cannot read the folder of the lexicon ({error.strerror}). The words for reading mail stand "
            "there, one file a language: 'guarantee-email-agent init' puts the shipped ones beside the main file",
            "instruction_lexicon_missing",
        ) from None
    return tuple((path, _read(path)) for path in (f"{folder}/{name}" for name in names))


def _read(path: str) -> str:
    try:
        return decode_text(read_bytes(path, MAX_BYTES))
    except InputFileError as error:
        raise InstructionError(
            f"{path}: cannot read the lexicon file ({error.message}). Correct it, or remove it",
            "instruction_lexicon_unreadable",
        ) from None
