"""The words that leave a mail to a person: the reasons of the hand-over instruction file, each with its phrases."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from guarantee_email_agent.instructions.markup import Element, MarkupError, parse_elements
from guarantee_email_agent.instructions.phrases import (
    InvalidPhraseError,
    Phrase,
    PhraseMatcher,
    TokenizedText,
    read_phrase,
    tokenize,
)

REASON_ELEMENT = "hand-over"
EXCEPTION_ELEMENT = "hand-over-exceptions"
CONVERSATIONS = "conversations"
FIRST_MAILS = "first-mails"
NUMBERED_MAILS = "numbered-mails"
MAX_WORDS_APART = 12
# The reasons that code finds:
FOLLOW_UP = "follow-up"  # a customer's further mail that is no answer to our question
UNVERIFIED_SENDER = "unverified-sender"  # a mail whose sender is not proved
LANGUAGE = "language"  # a mail in a language that no reply is written in
CONTRADICTION = "contradiction"  # facts of a service that cannot all be true
UNEXPLAINED = "unexplained"  # a mail of which too much is not understood, or could not be read
DAMAGED_HEADER = "damaged-header"  # a mail whose header may have said more than could be read
ENCRYPTED = "encrypted"  # a mail whose text cannot be read without a key
MAYBE_AUTOMATIC = "maybe-automatic"  # a mail that a machine may have written
UNCLEAR_RECIPIENT = "unclear-recipient"  # a form's mail that does not say for certain whom to answer
DELAYED = "delayed"  # a mail that came long after it was written, such as an old one that was copied
COPY = "copy"  # an altered copy of a mail that was to be answered
REASONS_OF_CODE = (
    *(FOLLOW_UP, UNVERIFIED_SENDER, LANGUAGE, CONTRADICTION, UNEXPLAINED),
    *(DAMAGED_HEADER, ENCRYPTED, MAYBE_AUTOMATIC, UNCLEAR_RECIPIENT, DELAYED, COPY),
)

_REASON_NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")
_SENTENCE_END = re.compile(r"[.!?;](?=\s|$)|\n[ \t]*\n")


class HandOverReason(NamedTuple):
    """Why a mail is left to a person. `name` is what logs and drafts say, `description` what a person reads.

    only_in: CONVERSATIONS where it counts only in a mail that answers one of ours, FIRST_MAILS in any other,
    NUMBERED_MAILS in one with a number that would be looked up: its status is no answer to what is asked there.
    """

    name: str
    description: str
    only_in: str | None = None


class _Part(NamedTuple):
    """A phrase's share in a reason: `pair` numbers the entry `a|b + c|d`, `side` tells which half of it."""

    reason: str
    pair: int | None = None
    side: int = 0


_Parts = tuple[_Part, ...]
_EXCEPTION: _Parts = ()


class HandOverLexicon:
    """The reasons of an instruction file, and the phrases that give them away."""

    def __init__(self, reasons: tuple[HandOverReason, ...], phrases: PhraseMatcher[_Parts]) -> None:
        self.reasons = reasons
        self.phrases = phrases

    def find(self, text: str, *, in_conversation: bool = False, numbered: bool = False) -> tuple[str, ...]:
        """The names of the reasons whose phrases stand in `text`, in the order of the file; linear in its length.

        in_conversation: whether the text answers a mail of ours. numbered: those of NUMBERED_MAILS alone, else others.
        """
        if not (found := _find(self.phrases, text)):
            return ()
        places = (NUMBERED_MAILS,) if numbered else (None, CONVERSATIONS if in_conversation else FIRST_MAILS)
        return tuple(reason.name for reason in self.reasons if reason.name in found and reason.only_in in places)


@lru_cache(maxsize=2)  # a mail is asked about twice: before it is read, and once its number is
def _find(phrases: PhraseMatcher[_Parts], text: str) -> set[str]:
    words = tokenize(text)
    found = set[str]()
    seen: dict[tuple[int, int], int] = {}
    exception_end = 0
    for first, end, parts in phrases.find(words, shorter=True):
        if not parts:
            exception_end = max(exception_end, end)
        if end <= exception_end:
            continue
        for reason, pair, side in parts:
            if pair is None:
                found.add(reason)
            elif reason not in found:
                seen[pair, side] = first
                other = seen.get((pair, 1 - side))
                if other is not None and first - other <= MAX_WORDS_APART and _in_one_sentence(words, other, first):
                    found.add(reason)
    return found


@lru_cache(maxsize=16)
def parse_hand_over(text: str) -> HandOverLexicon:
    """The reasons and phrases in a body; pure, hence cached. A body without any has no reasons and finds nothing.

    Raises MarkupError, with the line, for a reason without a name or a description, one that stands twice or holds no
    phrase, for a misspelt element, and for a phrase that cannot be used.
    """
    reasons: dict[str, HandOverReason] = {}
    parts: dict[str, list[_Part]] = {}
    lines: dict[str, int] = {}
    exceptions: dict[str, int] = {}
    pairs = 0
    for element in parse_elements(text):
        is_known = element.name in (REASON_ELEMENT, EXCEPTION_ELEMENT)
        if not is_known and (element.name.startswith(REASON_ELEMENT) or "reason" in element.attributes):
            # Any other name is prose for a model; a misspelt one would leave fires to it.
            problem = f"<{element.name}> is unknown. Write <{REASON_ELEMENT}> or <{EXCEPTION_ELEMENT}>"
            raise _error(element.line, problem)
        if element.name == EXCEPTION_ELEMENT:
            exceptions.update((source, line) for line, source in _entries(element))
        if element.name != REASON_ELEMENT:
            continue
        reason = _parse_reason(element)
        if reason.name in reasons:
            raise _error(element.line, f"reason '{reason.name}' stands twice. Put all its phrases into one element")
        reasons[reason.name] = reason
        alone = _Part(reason.name)
        for line, source in _entries(element):
            if "+" not in source and "|" not in source:
                parts.setdefault(source, []).append(alone)
                lines.setdefault(source, line)
                continue
            pairs += 1
            for side, alternatives in enumerate(_sides(line, source)):
                for phrase in alternatives:
                    parts.setdefault(phrase, []).append(_Part(reason.name, pairs, side))
                    lines.setdefault(phrase, line)
    for source, line in exceptions.items():
        if "+" in source:
            raise _error(
                line, f"phrase '{source}' joins two sides, which an exception cannot. Write the words in a row"
            )
        if source in parts:
            raise _error(line, f"phrase '{source}' is an exception and stands for a reason, too. Remove one of them")
    patterns: list[Phrase[_Parts]] = []
    for source, held in (*parts.items(), *((source, _EXCEPTION) for source in exceptions)):
        try:
            patterns.append(read_phrase(source, tuple(held)))
        except InvalidPhraseError as error:
            raise _error(lines.get(source) or exceptions[source], f"phrase '{source}' {error}") from None
    return HandOverLexicon(tuple(reasons.values()), PhraseMatcher(patterns))


def _in_one_sentence(words: TokenizedText, first: int, last: int) -> bool:
    return not any(_SENTENCE_END.search(words.gaps[index]) for index in range(first + 1, last + 1))


def _parse_reason(element: Element) -> HandOverReason:
    for attribute in element.attributes:
        if attribute not in ("reason", "description", "in"):
            raise _error(element.line, f"unknown attribute '{attribute}'. Known are: reason, description, in")
    name, description = (element.attributes.get(key, "").strip() for key in ("reason", "description"))
    if not _REASON_NAME.fullmatch(name):
        raise _error(
            element.line,
            f'<{REASON_ELEMENT}> has no usable reason. Give it a name in small letters, such as reason="injury"',
        )
    if not description:
        raise _error(element.line, f"reason '{name}' has no description. Say in a few words what it means")
    where = element.attributes.get("in")
    if where not in (None, CONVERSATIONS, FIRST_MAILS, NUMBERED_MAILS):
        remedy = f'Write in="{CONVERSATIONS}", in="{FIRST_MAILS}" or in="{NUMBERED_MAILS}", or leave it out'
        raise _error(element.line, f"reason '{name}' has in=\"{where}\". {remedy}")
    return HandOverReason(name, description, where)


def _entries(element: Element) -> Iterator[tuple[int, str]]:
    """(line, entry) pairs: what stands between commas and line ends, in one case and with single blanks."""
    if element.children:
        child = element.children[0]
        raise _error(child.line, f"<{child.name}> inside <{element.name}>: only lines of text may stand there")
    if not element.text.strip(", \t\n"):
        raise _error(element.line, f"<{element.name}> is empty. Write at least one phrase")
    for line, text in element.numbered_lines():
        for entry in text.casefold().split(","):
            if words := entry.split():
                yield line, " ".join(words)


def _sides(line: int, source: str) -> tuple[list[str], list[str]]:
    """The phrases on both sides of the entry `a|b + c|d`."""
    sides = [[phrase.strip() for phrase in side.split("|")] for side in source.split("+")]
    if len(sides) != 2:
        advice = "Write it as 'a|b + c|d', or put commas between phrases that count alone"
        raise _error(line, f"phrase '{source}' needs one '+' and has {len(sides) - 1}. {advice}")
    if not all(phrase for side in sides for phrase in side):
        raise _error(
            line, f"phrase '{source}' has nothing beside a '+' or '|'. Write a phrase there, or remove the sign"
        )
    return sides[0], sides[1]


def _error(line: int, message: str) -> MarkupError:
    return MarkupError(message, "instruction_rule_invalid", {"line": line})
