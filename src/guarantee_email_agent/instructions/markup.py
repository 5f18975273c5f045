"""The XML elements in an instruction file's body.

Prose between and inside elements is for the language model. Elements must nest and close, so that what a person edits
and what the agent reads cannot drift apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from guarantee_email_agent.utils.errors import AgentError

MAX_DEPTH = 20
_ROOT = "instructions-root"


class MarkupError(AgentError):
    """A body whose XML does not parse. `details["line"]` is 1-based, counted from the start of the text parsed."""

    @property
    def line(self) -> int:
        return int(self.details["line"])


@dataclass(frozen=True, slots=True)
class Element:
    """One element: `content` holds text and child elements in the order in which they stand.

    line: of its opening tag. content_lines: the line on which each part of the content begins.
    """

    name: str
    attributes: Mapping[str, str]
    line: int
    content: list[str | Element] = field(default_factory=list)
    content_lines: list[int] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Its own text and that of its children."""
        return "".join(part if isinstance(part, str) else part.text for part in self.content)

    @property
    def children(self) -> tuple[Element, ...]:
        return tuple(part for part in self.content if isinstance(part, Element))

    def numbered_lines(self) -> Iterator[tuple[int, str]]:
        """Its non-empty lines with the line number each stands on. Only for elements without children."""
        for offset, line in enumerate(self.text.split("\n")):
            if stripped := line.strip():
                yield self.line + offset, stripped


@lru_cache(maxsize=64)
def parse_elements(text: str) -> tuple[Element, ...]:
    """The top-level elements of `text`.

    Pure, hence cached by content. Raises MarkupError for XML that is not well formed or nests deeper than MAX_DEPTH.
    A DOCTYPE, which could define entities that expand without end, cannot stand in it: a root is put around the text.
    """
    # expat alone loads in 2 ms; xml.etree around it costs five times that.
    from pyexpat import ExpatError, ParserCreate
    from pyexpat.errors import messages

    parser = ParserCreate()
    parser.buffer_text = True
    document = Element("", {}, 0)
    stack = [document]

    def start(name: str, attributes: dict[str, str]) -> None:
        if len(stack) > MAX_DEPTH + 1:
            raise _error(parser.CurrentLineNumber, f"elements nest deeper than {MAX_DEPTH}. Flatten them")
        element = Element(name, attributes, parser.CurrentLineNumber)
        stack[-1].content.append(element)
        stack[-1].content_lines.append(element.line)
        stack.append(element)

    def add_text(text: str) -> None:
        stack[-1].content.append(text)
        # The parser hands over buffered text once it stands behind it.
        stack[-1].content_lines.append(parser.CurrentLineNumber - text.count("\n"))

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _: stack.pop()
    parser.CharacterDataHandler = add_text
    try:
        parser.Parse(f"<{_ROOT}>{text}</{_ROOT}>", True)
    except ExpatError as error:
        reason = messages[error.code]
        if reason == "mismatched tag":
            line, name = stack[-1].line, stack[-1].name
            message = f"<{name}> is never closed. Add </{name}>, or correct its name"
            if name == _ROOT:
                line, message = error.lineno, "what is closed was never opened. Write its beginning, or remove the end"
            raise _error(line, message) from None
        raise _error(
            error.lineno,
            f"the XML does not parse ({reason}). Write &lt; for '<' and &amp; for '&' in text, and attributes as "
            'id="…" with straight quotation marks',
        ) from None
    except ValueError as error:  # a NUL byte or a lone surrogate
        raise _error(1, f"the text cannot be read as XML ({error}). Save the file as UTF-8 text") from None
    (root,) = document.children
    return root.children


def _error(line: int, message: str) -> MarkupError:
    return MarkupError(message, "instruction_markup_invalid", {"line": line})
