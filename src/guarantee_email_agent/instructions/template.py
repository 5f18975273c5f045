"""Reply templates: the approved sentences of an instruction file, with facts filled in by code.

What stands plainly in a `<reply>` is always said. An `<optional>` is said where it was chosen, and of a `<choose>`
exactly one `<sentence>`, the first that the facts allow unless another was chosen.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from guarantee_email_agent.instructions.markup import Element, MarkupError, parse_elements
from guarantee_email_agent.instructions.phrases import InvalidPhraseError, parse_phrase

FACTS = ("serial_number", "warranty_status", "expiration_date", "coverage")
"""The facts a condition may ask for."""

TICKET_PLACEHOLDER = "{ticket_number}"
"""Stays in a draft until the ticket exists; only then does code put the number in."""

PLACEHOLDERS = ("serial_number", "expiration_date", "coverage", "ticket_number")
"""The closed set of placeholders. The status has none: a sentence about it belongs to one template."""

SENTENCE_ATTRIBUTES = ("id", "use", "hints")
_ANY_VALUE = ("known", "unknown")
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_SENTENCE_ID = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_MAX_ID_LENGTH = 40
_LINE_ENDS = re.compile(r"[ \t]+(?=\n)")
_BLANK_LINES = re.compile(r"\n{3,}")
_REST_OF_LINE = re.compile(r"[ \t]*\n")


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

    def value(self, _facts: Mapping[str, str | None]) -> str:
        return self.text


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

    gap: white space behind them that is left out where they say nothing.
    """

    conditions: Mapping[str, tuple[str, ...]]
    parts: tuple[Part, ...]
    gap: Text | None = field(default=None, kw_only=True)

    def holds(self, facts: Mapping[str, str | None]) -> bool:
        for name, values in self.conditions.items():
            fact = facts.get(name)
            if not (("known" if fact else "unknown") in values or (fact and fact.casefold() in values)):
                return False
        return True


@dataclass(frozen=True, slots=True)
class Sentence(Conditional):
    """Approved words that are said where they were chosen by their id.

    use: tells a model when they fit. hints: phrases of a mail by which the offline model chooses them.
    """

    id: str
    use: str
    hints: tuple[str, ...]
    line: int

    def render(self, facts: Mapping[str, str | None]) -> str:
        return _join(_pieces(self.parts, facts, ()), facts)


@dataclass(frozen=True, slots=True)
class Choice:
    """Sentences of which exactly one is said."""

    sentences: tuple[Sentence, ...]
    line: int

    def allowed(self, facts: Mapping[str, str | None]) -> list[Sentence]:
        return [sentence for sentence in self.sentences if sentence.holds(facts)]

    def selected(self, facts: Mapping[str, str | None], chosen: Collection[str]) -> Sentence | None:
        """The one chosen, else the first; None where the facts allow none."""
        allowed = self.allowed(facts)
        return next((sentence for sentence in allowed if sentence.id in chosen), allowed[0] if allowed else None)


Piece = Text | Placeholder
Part = Piece | Conditional | Choice


@dataclass(frozen=True, slots=True)
class OfferedSentence:
    """A sentence that may be chosen now. group: that of its `<choose>`, from 1; None for an optional one."""

    sentence: Sentence
    group: int | None


@dataclass(frozen=True, slots=True)
class ReplyTemplate(Conditional):
    """One `<reply>` element; without conditions it always holds."""

    line: int

    def render(self, facts: Mapping[str, str | None], chosen: Collection[str] = ()) -> str:
        """The reply's text. chosen: ids of sentences; one that the facts do not allow is left out all the same.

        Raises MissingFactError where a placeholder has no value.
        """
        return _join(self.pieces(facts, chosen), facts) + "\n"

    def pieces(self, facts: Mapping[str, str | None], chosen: Collection[str] = ()) -> Iterator[Piece]:
        """Texts and placeholders of the reply, in order."""
        return _pieces(self.parts, facts, chosen)

    def offered(self, facts: Mapping[str, str | None]) -> tuple[OfferedSentence, ...]:
        """The sentences between which the facts leave a choice, in order."""
        offered: list[OfferedSentence] = []
        groups = itertools.count(1)
        for part in self.open_parts(facts):
            if isinstance(part, Sentence):
                offered.append(OfferedSentence(part, None))
            elif len(allowed := part.allowed(facts)) > 1:
                group = next(groups)
                offered.extend(OfferedSentence(sentence, group) for sentence in allowed)
        return tuple(offered)

    def open_parts(self, facts: Mapping[str, str | None]) -> Iterator[Sentence | Choice]:
        """What the facts allow of optional sentences and of choices, in order."""
        return _open_parts(self.parts, facts)

    def all_parts(self) -> Iterator[Part]:
        """Every part at any depth, whatever the facts."""
        return _all_parts(self.parts)

    def literal_text(self) -> str:
        """Every word the author wrote, whatever the facts."""
        return " ".join(part.text for part in self.all_parts() if isinstance(part, Text))

    def coverage_words(self) -> frozenset[str]:
        """The values of `coverage` that a condition asks for by name."""
        conditionals = (self, *(part for part in self.all_parts() if isinstance(part, Conditional)))
        return frozenset(
            value for part in conditionals for value in part.conditions.get("coverage", ()) if value not in _ANY_VALUE
        )


@lru_cache(maxsize=64)
def parse_templates(text: str) -> tuple[ReplyTemplate, ...]:
    """The `<reply>` elements of an instruction text; pure, hence cached.

    Raises MarkupError, with the line, for one that cannot be used.
    """
    return tuple(_template(element) for element in parse_elements(text) if element.name == "reply")


def select_template(templates: Sequence[ReplyTemplate], facts: Mapping[str, str | None]) -> ReplyTemplate | None:
    """The first template whose conditions hold."""
    return next((template for template in templates if template.holds(facts)), None)


def _template(element: Element) -> ReplyTemplate:
    parts = tuple(_parts(element, ("if", "choose", "optional")))
    if all(isinstance(part, Text) and not part.text.strip() for part in parts):
        raise _error(element.line, "<reply> is empty. Write the reply into it")
    template = ReplyTemplate(_conditions(element), parts, element.line)
    ids: set[str] = set()
    for part in template.all_parts():
        if isinstance(part, Sentence):
            if part.id in ids:
                raise _error(part.line, f"the id '{part.id}' stands twice in this <reply>. Take another")
            ids.add(part.id)
    return template


def _parts(element: Element, allowed: tuple[str, ...]) -> Iterator[Part]:
    """allowed: the elements that may stand in this one."""
    contents = list(zip(element.content, element.content_lines, strict=True))
    for index, (content, line) in enumerate(contents):
        if isinstance(content, str):
            yield from _pieces_of_text(content, line)
            continue
        if content.name not in allowed:
            raise _misplaced_error(content, element, allowed)
        if content.name == "choose":
            yield _choice(content)
            continue
        before, after = _text_at(element, index - 1), _text_at(element, index + 1)
        gap = _gap(before, after)
        if gap:
            after_line = contents[index + 1][1]
            contents[index + 1] = (after[len(gap) :], after_line + gap.count("\n"))
        part = _sentence(content) if content.name == "optional" else _conditional(content, allowed)
        yield replace(part, gap=Text(gap, line)) if gap else part


def _text_at(element: Element, index: int) -> str:
    content = element.content[index] if 0 <= index < len(element.content) else ""
    return content if isinstance(content, str) else ""


def _gap(before: str, after: str) -> str:
    """The white space behind an element that goes when it does: the end of a line of its own, or a second blank."""
    if before.rstrip(" \t").endswith("\n") and (rest_of_line := _REST_OF_LINE.match(after)):
        return rest_of_line[0]
    return " " if before.endswith(" ") and after.startswith(" ") else ""


def _conditional(element: Element, allowed: tuple[str, ...]) -> Conditional:
    conditions = _conditions(element)
    if not conditions:
        raise _error(element.line, f"<if> has no condition. Add one of: {', '.join(FACTS)}")
    return Conditional(conditions, tuple(_parts(element, allowed)))


def _choice(element: Element) -> Choice:
    if element.attributes:
        raise _error(element.line, '<choose> takes no attributes. Put conditions around it, as <if fact="value">')
    for content, line in zip(element.content, element.content_lines, strict=True):
        if isinstance(content, str) and content.strip():
            line += content[: len(content) - len(content.lstrip())].count("\n")
            raise _error(line, "text stands in <choose> outside of a <sentence>. Put it into one")
        if isinstance(content, Element) and content.name != "sentence":
            raise _error(content.line, f"<{content.name}> cannot stand inside <choose>. Put it into a <sentence>")
    sentences = tuple(_sentence(child, needs_use=index > 0) for index, child in enumerate(element.children))
    if len(sentences) < 2:
        raise _error(
            element.line, "<choose> needs at least two <sentence>s to choose from. Add one, or write it plainly"
        )
    return Choice(sentences, element.line)


def _sentence(element: Element, *, needs_use: bool = True) -> Sentence:
    """needs_use: not for the first of a `<choose>`, which is said unless another fits."""
    attributes = element.attributes
    sentence_id, use = attributes.get("id", ""), " ".join(attributes.get("use", "").split())
    if not _SENTENCE_ID.fullmatch(sentence_id) or len(sentence_id) > _MAX_ID_LENGTH:
        raise _error(
            element.line,
            f"<{element.name}> needs an id of up to {_MAX_ID_LENGTH} lower-case letters, digits and hyphens, such as "
            'id="thanks"',
        )
    if needs_use and not use:
        raise _error(
            element.line, f'<{element.name} id="{sentence_id}"> does not say when it fits. Add use="the customer …"'
        )
    parts = list(_parts(element, ("if",)))
    if isinstance(first := parts[0] if parts else None, Text):
        text = first.text.lstrip()
        parts[0] = Text(text, first.line + first.text[: len(first.text) - len(text)].count("\n"))
    if isinstance(last := parts[-1] if parts else None, Text):
        parts[-1] = replace(last, text=last.text.rstrip())
    if not any(part.text if isinstance(part, Text) else True for part in parts):
        raise _error(element.line, f'<{element.name} id="{sentence_id}"> is empty. Write the sentence into it')
    return Sentence(_conditions(element), tuple(parts), sentence_id, use, _hints(element), element.line)


def _hints(element: Element) -> tuple[str, ...]:
    hints = tuple(stripped for hint in element.attributes.get("hints", "").split(",") if (stripped := hint.strip()))
    for hint in hints:
        try:
            parse_phrase(hint, None)
        except InvalidPhraseError as error:
            raise _error(element.line, f"hint '{hint}' {error}") from None
    return hints


def _pieces_of_text(text: str, line: int) -> Iterator[Piece]:
    position = 0
    for match in _PLACEHOLDER.finditer(text):
        yield from _plain_text(text, position, match.start(), line)
        start = line + text.count("\n", 0, match.start())
        if match[1] not in PLACEHOLDERS:
            known = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
            raise _error(start, f"unknown placeholder {match[0]}. Known are: {known}")
        yield Placeholder(match[1], start)
        position = match.end()
    yield from _plain_text(text, position, len(text), line)


def _plain_text(text: str, start: int, end: int, line: int) -> Iterator[Text]:
    part, line = text[start:end], line + text.count("\n", 0, start)
    if "{" in part or "}" in part:
        raise _error(line, "a single '{' or '}' stands in the reply. Write a placeholder as {name}, or remove it")
    if part:
        yield Text(part, line)


def _conditions(element: Element) -> dict[str, tuple[str, ...]]:
    conditions: dict[str, tuple[str, ...]] = {}
    own = SENTENCE_ATTRIBUTES if element.name in ("optional", "sentence") else ()
    for name, value in element.attributes.items():
        if name in own:
            continue
        if name not in FACTS:
            also = f". Of its own it has {', '.join(own)}" if own else ""
            raise _error(element.line, f"<{element.name} {name}=…>: unknown fact. Known are: {', '.join(FACTS)}{also}")
        values = tuple(part.strip().casefold() for part in value.split(",") if part.strip())
        if not values:
            raise _error(element.line, f"<{element.name} {name}=…> has no value. Name one, or 'known' or 'unknown'")
        conditions[name] = values
    return conditions


def _pieces(parts: Sequence[Part], facts: Mapping[str, str | None], chosen: Collection[str]) -> Iterator[Piece]:
    for part in parts:
        if isinstance(part, Choice):
            if sentence := part.selected(facts, chosen):
                yield from _pieces(sentence.parts, facts, chosen)
        elif not isinstance(part, Conditional):
            yield part
        elif part.holds(facts) and (not isinstance(part, Sentence) or part.id in chosen):
            pieces = list(_pieces(part.parts, facts, chosen))
            yield from pieces
            if part.gap and pieces:
                yield part.gap


def _open_parts(parts: Sequence[Part], facts: Mapping[str, str | None]) -> Iterator[Sentence | Choice]:
    for part in parts:
        if isinstance(part, Choice):
            yield part
        elif isinstance(part, Conditional) and part.holds(facts):
            if isinstance(part, Sentence):
                yield part
            else:
                yield from _open_parts(part.parts, facts)


def _all_parts(parts: Sequence[Part]) -> Iterator[Part]:
    for part in parts:
        yield part
        if isinstance(part, Choice):
            yield from _all_parts(part.sentences)
        elif isinstance(part, Conditional):
            yield from _all_parts(part.parts)


def _join(pieces: Iterable[Piece], facts: Mapping[str, str | None]) -> str:
    text = "".join([piece.value(facts) for piece in pieces])
    return _BLANK_LINES.sub("\n\n", _LINE_ENDS.sub("", text)).strip()


def _misplaced_error(element: Element, parent: Element, allowed: tuple[str, ...]) -> MarkupError:
    known = ", ".join(f"<{name}>" for name in allowed)
    return _error(element.line, f"<{element.name}> cannot stand inside <{parent.name}>. What may is: text, {known}")


def _error(line: int, message: str) -> MarkupError:
    return MarkupError(message, "instruction_template_invalid", {"line": line})
