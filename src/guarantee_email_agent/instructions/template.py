"""Reply templates: the approved sentences of an instruction file, with facts filled in by code.

What stands plainly in a `<reply>`, or in a `<sentence>` of it, is always said. An `<optional>` is said where it was
chosen, and of a `<choose>` exactly one `<sentence>`, the first that the facts allow unless another was chosen.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

TICKET_PLACEHOLDER = "{ticket_number}"
"""Stays in a draft until the ticket exists; only then does code put the number in."""

ANY_VALUE = ("known", "unknown")
PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_LINE_ENDS = re.compile(r"[ \t]+(?=\n)")
_BLANK_LINES = re.compile(r"\n{3,}")


class MissingFactError(ValueError):
    """A template needs a fact that is not known; `name` is that of the placeholder, `line` where it stands."""

    def __init__(self, name: str, line: int) -> None:
        super().__init__(f"{{{name}}} has no value")
        self.name = name
        self.line = line


@dataclass(frozen=True, slots=True)
class Text:
    """Words of the author, and the line on which they begin."""

    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Placeholder:
    name: str
    line: int

    def value(self, facts: Mapping[str, str | None]) -> str:
        if self.name == "ticket_number":
            return TICKET_PLACEHOLDER
        if value := facts.get(self.name):
            return value
        raise MissingFactError(self.name, self.line)


@dataclass(frozen=True, slots=True)
class Conditional:
    """Parts that count only where every condition holds; each maps a fact to the values it may have.

    line: where the conditions stand. gap: white space behind them that is left out where they say nothing.
    """

    conditions: Mapping[str, tuple[str, ...]]
    parts: tuple[Part, ...]
    line: int
    gap: Text | None = field(default=None, kw_only=True)

    def holds(self, facts: Mapping[str, str | None]) -> bool:
        for name, values in self.conditions.items():
            fact = facts.get(name)
            if not (("known" if fact else "unknown") in values or (fact and fact.casefold() in values)):
                return False
        return True


@dataclass(frozen=True, slots=True)
class Sentence(Conditional):
    """Approved words with an id, by which a scenario may expect them."""

    id: str

    def render(self, facts: Mapping[str, str | None]) -> str:
        pieces = list[Piece]()
        _gather(self.parts, facts, (), pieces, {})
        return _tidied("".join([piece.text if isinstance(piece, Text) else piece.value(facts) for piece in pieces]))


@dataclass(frozen=True, slots=True)
class ChoosableSentence(Sentence):
    """One that is said where it was chosen by its id.

    use: tells a model when it fits. hints: phrases, with commas between, by which the offline model chooses it.
    """

    use: str
    hints: str


@dataclass(frozen=True, slots=True)
class Choice:
    """Sentences of which exactly one is said."""

    sentences: tuple[ChoosableSentence, ...]
    line: int

    def allowed(self, facts: Mapping[str, str | None]) -> list[ChoosableSentence]:
        return [sentence for sentence in self.sentences if sentence.holds(facts)]

    def selected(self, facts: Mapping[str, str | None], chosen: Collection[str]) -> ChoosableSentence | None:
        """The one chosen, else the first; None where the facts allow none."""
        allowed = self.allowed(facts)
        return next((sentence for sentence in allowed if sentence.id in chosen), allowed[0] if allowed else None)


Piece = Text | Placeholder
Part = Piece | Conditional | Choice


class _Said(NamedTuple):
    """The pieces of a reply; a placeholder is an empty text. sentences: by id. unfilled: those with a placeholder."""

    texts: list[str]
    placeholders: list[tuple[int, Placeholder]]
    sentences: dict[str, str]
    unfilled: dict[str, slice]


@dataclass(frozen=True, slots=True)
class OfferedSentence:
    """A sentence that may be chosen now. group: that of its `<choose>`, from 1; None for an optional one."""

    sentence: ChoosableSentence
    group: int | None
    hint_data: Mapping[str, Any] = field(init=False, repr=False, compare=False)
    """What it is chosen by without a model."""

    def __post_init__(self) -> None:
        group = {} if self.group is None else {"group": self.group}
        hints = {"hints": self.sentence.hints} if self.sentence.hints else {}
        object.__setattr__(self, "hint_data", {"id": self.sentence.id, **group, **hints})


@dataclass(frozen=True, slots=True)
class ReplyTemplate(Conditional):
    """One `<reply>` element; without conditions it always holds.

    language: that of its file, such as "de"; None before it is one of a scenario's.
    """

    language: str | None = None
    _derived: dict[object, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    """What follows from the answers to all conditions, and from what is chosen."""

    def _answers(self, facts: Mapping[str, str | None]) -> tuple[object, ...]:
        """All that the conditions make of the facts."""
        if (asked := self._derived.get("asked")) is None:
            asked = self._derived["asked"] = dict[str, set[str]]()
            for part in (self, *self.all_parts()):
                for name, values in part.conditions.items() if isinstance(part, Conditional) else ():
                    asked.setdefault(name, set()).update(values)
        given = [((facts.get(name) or "").casefold(), words) for name, words in asked.items()]
        return tuple([value if value in words else bool(value) for value, words in given])

    def compose(self, facts: Mapping[str, str | None], chosen: Collection[str] = ()) -> tuple[str, dict[str, str]]:
        """The reply's text, and the words of each sentence of it that has an id, in order.

        chosen: ids of sentences; one that the facts do not allow is left out all the same.

        Raises MissingFactError where a placeholder has no value.
        """
        key = ("said", self._answers(facts), frozenset(chosen))
        said: _Said | None = self._derived.get(key)
        if said is None:
            said = self._derived[key] = self._said(facts, chosen)
        texts = said.texts.copy()
        for place, placeholder in said.placeholders:
            texts[place] = placeholder.value(facts)
        filled = {name: _tidied("".join(texts[span])) for name, span in said.unfilled.items()}
        return _tidied("".join(texts)) + "\n", said.sentences | filled

    def _said(self, facts: Mapping[str, str | None], chosen: Collection[str]) -> _Said:
        pieces, spans = list[Piece](), dict[str, slice]()
        _gather(self.parts, facts, chosen, pieces, spans)
        texts = [piece.text if isinstance(piece, Text) else "" for piece in pieces]
        placeholders = [(place, piece) for place, piece in enumerate(pieces) if isinstance(piece, Placeholder)]
        sentences = {name: _tidied("".join(texts[span])) for name, span in spans.items()}
        unfilled = {name: span for name, span in spans.items() if not all(texts[span])}
        return _Said(texts, placeholders, sentences, unfilled)

    def pieces(self, facts: Mapping[str, str | None], chosen: Collection[str] = ()) -> list[Piece]:
        """Texts and placeholders of the reply, in order."""
        pieces = list[Piece]()
        _gather(self.parts, facts, chosen, pieces, {})
        return pieces

    def offered(self, facts: Mapping[str, str | None]) -> tuple[OfferedSentence, ...]:
        """The sentences between which the facts leave a choice, in order."""
        key = ("offered", self._answers(facts))
        offered: list[OfferedSentence] | None = self._derived.get(key)
        if offered is None:
            offered = self._derived[key] = []
            groups = itertools.count(1)
            for part in self.open_parts(facts):
                if isinstance(part, ChoosableSentence):
                    offered.append(OfferedSentence(part, None))
                elif len(allowed := part.allowed(facts)) > 1:
                    group = next(groups)
                    offered.extend(OfferedSentence(sentence, group) for sentence in allowed)
        return tuple(offered)

    def open_parts(self, facts: Mapping[str, str | None]) -> list[ChoosableSentence | Choice]:
        """What the facts allow of optional sentences and of choices, in order."""
        found, waiting = list[ChoosableSentence | Choice](), list(reversed(self.parts))
        while waiting:
            part = waiting.pop()
            if isinstance(part, Choice):
                found.append(part)
            elif isinstance(part, Conditional) and (not part.conditions or part.holds(facts)):
                if isinstance(part, ChoosableSentence):
                    found.append(part)
                else:
                    waiting += reversed(part.parts)
        return found

    def all_parts(self) -> Sequence[Part]:
        """Every part at any depth, whatever the facts."""
        found: list[Part] | None = self._derived.get("parts")
        if found is None:
            found, waiting = list[Part](), list(reversed(self.parts))
            while waiting:
                found.append(part := waiting.pop())
                if isinstance(part, Choice):
                    waiting += reversed(part.sentences)
                elif isinstance(part, Conditional):
                    waiting += reversed(part.parts)
            self._derived["parts"] = found
        return found

    def literal_text(self) -> str:
        """Every word the author wrote, whatever the facts."""
        return " ".join(part.text for part in self.all_parts() if isinstance(part, Text))


def words_asked_for(fact: str, templates: Iterable[ReplyTemplate]) -> frozenset[str]:
    """The values of a fact that a condition asks for by name."""
    parts = (part for template in templates for part in (template, *template.all_parts()))
    asked = (part.conditions.get(fact, ()) for part in parts if isinstance(part, Conditional))
    return frozenset(itertools.chain.from_iterable(asked)).difference(ANY_VALUE)


def select_template(templates: Sequence[ReplyTemplate], facts: Mapping[str, str | None]) -> ReplyTemplate | None:
    """The first template whose conditions hold."""
    return next((template for template in templates if template.holds(facts)), None)


def _gather(
    parts: Sequence[Part],
    facts: Mapping[str, str | None],
    chosen: Collection[str],
    pieces: list[Piece],
    spans: dict[str, slice],
) -> None:
    """Append what is said to `pieces`. spans: which of them are those of each sentence with an id."""
    for part in parts:
        if isinstance(part, (Text, Placeholder)):
            pieces.append(part)
            continue
        if isinstance(part, Choice):
            said: Conditional | None = part.selected(facts, chosen)
        else:
            is_open = not isinstance(part, ChoosableSentence) or part.id in chosen
            said = part if is_open and (not part.conditions or part.holds(facts)) else None
        if said is None:
            continue
        first = len(pieces)
        _gather(said.parts, facts, chosen, pieces, spans)
        if isinstance(said, Sentence):
            spans[said.id] = slice(first, len(pieces))
        if said is part and said.gap and len(pieces) > first:
            pieces.append(said.gap)


def _tidied(text: str) -> str:
    if " \n" in text or "\t\n" in text:
        text = _LINE_ENDS.sub("", text)
    return _BLANK_LINES.sub("\n\n", text).strip() if "\n\n\n" in text else text.strip()
