"""What a mail may be about: the topics that the instruction files declare."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from guarantee_email_agent.instructions.markup import Element, MarkupError, parse_elements
from guarantee_email_agent.instructions.router import UNCLEAR

TOPIC_ELEMENT = "topic"
EXAMPLE_ELEMENT = "example"

_NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")


@dataclass(frozen=True, slots=True)
class Topic:
    """What a mail may be about. `description` and `examples`, sentences of customers, tell a model when it is.

    line: where it is declared, counted from the start of the body.
    """

    name: str
    description: str
    examples: tuple[str, ...] = ()
    line: int = field(default=1, compare=False)


UNCLEAR_TOPIC = Topic(UNCLEAR, "the mail does not say enough to decide between the others")


def parse_topics(body: str) -> tuple[Topic, ...]:
    """The topics that a body declares, in order.

    Raises MarkupError, with the line, for a topic without a usable name or a description, and for what else stands in
    one.
    """
    return tuple(_parse_topic(element) for element in parse_elements(body) if element.name == TOPIC_ELEMENT)


def _parse_topic(element: Element) -> Topic:
    for attribute in element.attributes:
        if attribute != "name":
            raise _error(element.line, f"<{TOPIC_ELEMENT}> has no attribute '{attribute}'. It takes a name alone")
    name = element.attributes.get("name", "").strip()
    if name == UNCLEAR:
        raise _error(
            element.line,
            f"the topic '{UNCLEAR}' is built in, for mails that do not decide between the others. Choose another name",
        )
    if not _NAME.fullmatch(name):
        raise _error(
            element.line,
            f"<{TOPIC_ELEMENT}> has no usable name. Give it one of small letters, digits and hyphens, such as "
            'name="spare-parts"',
        )
    description = _on_one_line("".join(part for part in element.content if isinstance(part, str)))
    if not description:
        raise _error(
            element.line, f"the topic '{name}' has no description. Say in a sentence what such mails are about"
        )
    return Topic(name, description, tuple(_examples(element)), element.line)


def _examples(element: Element) -> Iterator[str]:
    for child in element.children:
        if child.name != EXAMPLE_ELEMENT or child.children or child.attributes:
            raise _error(
                child.line,
                f"<{child.name}> cannot stand inside <{TOPIC_ELEMENT}> like this. Write a customer's sentence as "
                f"<{EXAMPLE_ELEMENT}>…</{EXAMPLE_ELEMENT}>",
            )
        if not (example := _on_one_line(child.text)):
            raise _error(child.line, f"<{EXAMPLE_ELEMENT}> is empty. Write a customer's sentence into it, or remove it")
        yield example


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


def _error(line: int, message: str) -> MarkupError:
    return MarkupError(message, "instruction_topic_invalid", {"line": line})
