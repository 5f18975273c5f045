"""The `<reply>` elements of an instruction file, parsed to templates.

`<optional>`, `<choose>` and `<sentence>` stand in `<reply>` and `<if>`, `<sentence>` in `<choose>`, too, and `<if>`
anywhere but in that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from guarantee_email_agent.instructions.markup import Element, MarkupError, parse_elements
from guarantee_email_agent.instructions.phrases import InvalidPhraseError, PhrasePattern, parse_phrase
from guarantee_email_agent.instructions.template import (
    PLACEHOLDER,
    Choice,
    ChoosableSentence,
    Conditional,
    Part,
    Piece,
    Placeholder,
    ReplyTemplate,
    Sentence,
    Text,
)

SENTENCE_ATTRIBUTES = ("id", "use", "hints")
LANGUAGE_CODE = re.compile(r"[a-z]{2,3}(?:-[a-z]{2,8})?")
"""A language as mails name theirs, in lower case (RFC 5646): "de", "pt-br"."""
UNTRANSLATED = "[translate]"
"""Stands before each text that nobody has translated yet. No file with it is read, so that no customer sees it."""

_PARTS = ("if", "choose", "optional", "sentence")
_OWN_ATTRIBUTES = {"optional": SENTENCE_ATTRIBUTES, "sentence": SENTENCE_ATTRIBUTES}
_SENTENCE_ID = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_MAX_ID_LENGTH = 40
_REST_OF_LINE = re.compile(r"[ \t]*\n")


@lru_cache(maxsize=64)
def parse_templates(text: str) -> tuple[ReplyTemplate, ...]:
    """The `<reply>` elements of an instruction text; pure, hence cached.

    Raises MarkupError, with the line, for one that cannot be used.
    """
    elements = parse_elements(text)
    if lost := next((element for element in elements if element.name in _PARTS), None):
        raise _error(lost.line, f"<{lost.name}> stands outside of <reply>, so that nobody reads it. Move it into one")
    return tuple(_template(element) for element in elements if element.name == "reply")


def split_hints(hints: str) -> list[str]:
    return [stripped for hint in hints.split(",") if (stripped := " ".join(hint.split()))]


@lru_cache(maxsize=1024)
def parse_hint(hint: str) -> PhrasePattern[str]:
    """A hint as a phrase to look for, whose payload is itself; cached, since sentences share most of theirs.

    Raises InvalidPhraseError.
    """
    return parse_phrase(hint, hint)


def _template(element: Element) -> ReplyTemplate:
    if "lang" in element.attributes:
        problem = "<reply lang=…>: replies in another language stand in a file of their own now"
        raise _error(element.line, f"{problem}. Move it into SCENARIO.LANGUAGE.md, without the attribute")
    parts = tuple(_parts(element, _PARTS))
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
        part = _conditional(content, allowed) if content.name == "if" else _sentence(content)
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
        raise _error(element.line, '<if> has no condition. Add one, such as <if serial_number="known">')
    return Conditional(conditions, tuple(_parts(element, allowed)), element.line)


def _choice(element: Element) -> Choice:
    if element.attributes:
        raise _error(element.line, '<choose> takes no attributes. Put conditions around it, as <if fact="value">')
    for content, line in zip(element.content, element.content_lines, strict=True):
        if isinstance(content, str) and content.strip():
            line += content[: len(content) - len(content.lstrip())].count("\n")
            raise _error(line, "text stands in <choose> outside of a <sentence>. Put it into one")
        if isinstance(content, Element) and content.name != "sentence":
            raise _error(content.line, f"<{content.name}> cannot stand inside <choose>. Put it into a <sentence>")
    sentences = tuple(_choosable(child, needs_use=index > 0) for index, child in enumerate(element.children))
    if len(sentences) < 2:
        raise _error(
            element.line, "<choose> needs at least two <sentence>s to choose from. Add one, or write it plainly"
        )
    return Choice(sentences, element.line)


def _choosable(element: Element, *, needs_use: bool = True) -> ChoosableSentence:
    """needs_use: not for the first of a `<choose>`, which is said unless another fits."""
    use, sentence = " ".join(element.attributes.get("use", "").split()), _plain_sentence(element)
    if needs_use and not use:
        raise _error(
            element.line, f'<{element.name} id="{sentence.id}"> does not say when it fits. Add use="the customer …"'
        )
    return ChoosableSentence(sentence.conditions, sentence.parts, sentence.line, sentence.id, use, _hints(element))


def _sentence(element: Element) -> Sentence:
    """An `<optional>`, or a `<sentence>` that is always said."""
    if element.name == "optional":
        return _choosable(element)
    if ignored := element.attributes.keys() & {"use", "hints"}:
        problem = f"<{element.name}> has '{min(ignored)}' but stands outside of <choose>, so it is always said"
        raise _error(element.line, f"{problem}. Remove it, or write <optional>")
    return _plain_sentence(element)


def _plain_sentence(element: Element) -> Sentence:
    sentence_id = element.attributes.get("id", "")
    if not _SENTENCE_ID.fullmatch(sentence_id) or len(sentence_id) > _MAX_ID_LENGTH:
        raise _error(
            element.line,
            f"<{element.name}> needs an id of up to {_MAX_ID_LENGTH} lower-case letters, digits and hyphens, such as "
            'id="thanks"',
        )
    parts = list(_parts(element, ("if",)))
    if isinstance(first := parts[0] if parts else None, Text):
        text = first.text.lstrip()
        parts[0] = Text(text, first.line + first.text[: len(first.text) - len(text)].count("\n"))
    if isinstance(last := parts[-1] if parts else None, Text):
        parts[-1] = Text(last.text.rstrip(), last.line)
    if not any(part.text if isinstance(part, Text) else True for part in parts):
        raise _error(element.line, f'<{element.name} id="{sentence_id}"> is empty. Write the sentence into it')
    return Sentence(_conditions(element), tuple(parts), element.line, sentence_id)


def _hints(element: Element) -> str:
    hints = element.attributes.get("hints", "")
    for hint in split_hints(hints):
        try:
            parse_hint(hint)
        except InvalidPhraseError as error:
            raise _error(element.line, f"hint '{hint}' {error}") from None
    return ", ".join(split_hints(hints))


def _pieces_of_text(text: str, line: int) -> Iterator[Piece]:
    position = 0
    for match in PLACEHOLDER.finditer(text):
        yield from _plain_text(text, position, match.start(), line)
        start = line + text.count("\n", 0, match.start())
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
    own = _OWN_ATTRIBUTES.get(element.name, ())
    for name, value in element.attributes.items():
        if name in own:
            continue
        values = tuple(part.strip().casefold() for part in value.split(",") if part.strip())
        if not values:
            raise _error(element.line, f"<{element.name} {name}=…> has no value. Name one, or 'known' or 'unknown'")
        conditions[name] = values
    return conditions


def _misplaced_error(element: Element, parent: Element, allowed: tuple[str, ...]) -> MarkupError:
    known = ", ".join(f"<{name}>" for name in allowed)
    return _error(element.line, f"<{element.name}> cannot stand inside <{parent.name}>. What may is: text, {known}")


def _error(line: int, message: str) -> MarkupError:
    return MarkupError(message, "instruction_template_invalid", {"line": line})
