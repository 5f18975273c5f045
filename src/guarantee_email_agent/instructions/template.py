"""Reply templates: what an instruction file lets the agent say, with facts filled in by code."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from guarantee_email_agent.instructions.markup import Element, MarkupError, parse_elements

FACTS = ("serial_number", "warranty_status", "expiration_date", "coverage")
"""The facts a condition may ask for."""

TICKET_PLACEHOLDER = "{ticket_number}"
"""Stays in a draft until the ticket exists; only then does code put the number in."""

PLACEHOLDERS = ("serial_number", "expiration_date", "coverage", "ticket_number")
"""The closed set of placeholders. The status has none: a sentence about it belongs to one template."""

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_BLANK_LINES = re.compile(r"\n[ \t]*(?:\n[ \t]*)+")


class MissingFactError(ValueError):
    """A template needs a fact that is not known; `name` is that of the placeholder."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{{{name}}} has no value")
        self.name = name


@dataclass(frozen=True, slots=True)
class Placeholder:
    name: str

    def value(self, facts: Mapping[str, str | None]) -> str:
        if self.name == "ticket_number":
            return TICKET_PLACEHOLDER
        if value := facts.get(self.name):
            return value
        raise MissingFactError(self.name)


@dataclass(frozen=True, slots=True)
class Conditional:
    """Parts that count only where every condition holds; each maps a fact to the values it may have."""

    conditions: Mapping[str, tuple[str, ...]]
    parts: tuple[Part, ...]

    def holds(self, facts: Mapping[str, str | None]) -> bool:
        for name, values in self.conditions.items():
            fact = facts.get(name)
            if not (("known" if fact else "unknown") in values or (fact and fact.casefold() in values)):
                return False
        return True


Part = str | Placeholder | Conditional


@dataclass(frozen=True, slots=True)
class ReplyTemplate(Conditional):
    """One `<reply>` element; without conditions it always holds."""

    line: int

    def render(self, facts: Mapping[str, str | None]) -> str:
        """The reply's text. Raises MissingFactError where a placeholder has no value."""
        parts = _flatten(self.parts, facts)
        text = "".join([part if isinstance(part, str) else part.value(facts) for part in parts])
        return _BLANK_LINES.sub("\n\n", text).strip() + "\n"

    def literal_text(self) -> str:
        """Every word the author wrote, whatever the facts."""
        return " ".join(part for part in _flatten(self.parts) if isinstance(part, str))

    def placeholders(self) -> frozenset[str]:
        return frozenset(part.name for part in _flatten(self.parts) if isinstance(part, Placeholder))


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
    parts = tuple(_parts(element))
    if all(isinstance(part, str) and not part.strip() for part in parts):
        raise _error(element.line, "<reply> is empty. Write the reply into it")
    return ReplyTemplate(_conditions(element), parts, element.line)


def _parts(element: Element) -> Iterator[Part]:
    line = element.line
    for content in element.content:
        if isinstance(content, Element):
            if content.name != "if":
                raise _error(
                    content.line,
                    f'<{content.name}> is not known inside <reply>. Only <if fact="value"> may stand there',
                )
            conditions = _conditions(content)
            if not conditions:
                raise _error(content.line, f"<if> has no condition. Add one of: {', '.join(FACTS)}")
            yield Conditional(conditions, tuple(_parts(content)))
            line = content.line + content.text.count("\n")
            continue
        position = 0
        for match in _PLACEHOLDER.finditer(content):
            if text := content[position : match.start()]:
                yield text
            if match[1] not in PLACEHOLDERS:
                raise _error(
                    line + content.count("\n", 0, match.start()),
                    f"unknown placeholder {match[0]}. Known are: {', '.join(f'{{{name}}}' for name in PLACEHOLDERS)}",
                )
            yield Placeholder(match[1])
            position = match.end()
        rest = content[position:]
        if "{" in rest or "}" in rest:
            raise _error(line, "a single '{' or '}' stands in the reply. Write a placeholder as {name}, or remove it")
        if rest:
            yield rest
        line += content.count("\n")


def _conditions(element: Element) -> dict[str, tuple[str, ...]]:
    conditions: dict[str, tuple[str, ...]] = {}
    for name, value in element.attributes.items():
        if name not in FACTS:
            raise _error(element.line, f"<{element.name} {name}=…>: unknown fact. Known are: {', '.join(FACTS)}")
        values = tuple(part.strip() for part in value.split(",") if part.strip())
        if not values:
            raise _error(element.line, f"<{element.name} {name}=…> has no value. Name one, or 'known' or 'unknown'")
        conditions[name] = values
    return conditions


def _flatten(parts: Sequence[Part], facts: Mapping[str, str | None] | None = None) -> Iterator[str | Placeholder]:
    """Texts and placeholders in order; with `facts`, only those whose conditions hold."""
    for part in parts:
        if not isinstance(part, Conditional):
            yield part
        elif facts is None or part.holds(facts):
            yield from _flatten(part.parts, facts)


def _error(line: int, message: str) -> MarkupError:
    return MarkupError(message, "instruction_template_invalid", {"line": line})
