"""Which scenario a mail belongs to, decided from its situation and the triggers in the instruction files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from guarantee_email_agent.instructions.look_up import (
    NOT_FOUND,
    OTHER_STATUS,
    WARRANTY,
    WITHHELD_STATUS,
    LookUp,
    look_up_of,
)
from guarantee_email_agent.instructions.markup import Element, MarkupError, parse_elements

NumberCount = Literal["none", "one", "several"]
WarrantyStatus = Literal["valid", "expired", "not_found", "other", "withheld"]

OTHER_TOPIC: Final = "other"
"""The topic of what fits no other one, where an instruction file declares it."""

UNCLEAR: Final = "unclear"
"""The topic of a mail that does not decide between the declared ones; always there, and reserved."""

NUMBER_COUNTS: tuple[NumberCount, ...] = ("none", "one", "several")


class Situation(NamedTuple):
    """All that routing depends on. `numbers` count where a look-up serves the topic; `status` is known for just one.

    `withheld`: the sender may not be told what the service says.
    """

    automatic: bool = False
    topic: str | None = None
    numbers: NumberCount | None = None
    status: str | None = None
    hand_over: bool = False

    @property
    def warranty_status(self) -> str | None:
        """What the warranty system says."""
        return self.status if self.topic in WARRANTY.topics else None

    def __str__(self) -> str:
        if self.automatic:
            return "automatic: true"
        if self.hand_over:
            return "hand_over: true"
        is_warranty = self.topic in WARRANTY.topics
        numbers, status = ("serial_numbers", "warranty_status") if is_warranty else ("numbers", "status")
        count = f", {numbers}: {self.numbers}" if self.numbers else ""
        decided = f", {status}: {self.status}" if self.status else ""
        return f"topic: {self.topic}{count}{decided}"


@dataclass(frozen=True, slots=True)
class Condition:
    """One way to trigger a scenario: every part that is given must hold."""

    automatic: bool = field(default=False, metadata={"doc": "the mail was sent by a machine and must not be answered"})
    hand_over: bool = field(default=False, metadata={"doc": "a person is wanted or needed"})
    topic: str | None = field(
        default=None, metadata={"doc": "what the mail is about: a topic that an instruction file declares, or unclear"}
    )
    serial_numbers: NumberCount | None = field(
        default=None, metadata={"doc": "how many different usable serial numbers it names"}
    )
    warranty_status: tuple[WarrantyStatus, ...] = field(
        default=(), metadata={"doc": "what the warranty system says of the one serial number"}
    )
    numbers: NumberCount | None = field(
        default=None, metadata={"doc": "how many different numbers of the topic's look-up it names"}
    )
    status: tuple[str, ...] = field(default=(), metadata={"doc": "what the look-up says of the one number"})

    def holds(self, situation: Situation) -> bool:
        return (
            self.automatic == situation.automatic
            and self.hand_over == situation.hand_over
            and self.topic in (None, situation.topic)
            and (self.numbers or self.serial_numbers) in (None, situation.numbers)
            and (not (statuses := self.status or self.warranty_status) or situation.status in statuses)
        )


def all_situations(topics: Iterable[str], look_ups: Sequence[LookUp] = (WARRANTY,)) -> Iterator[Situation]:
    """The whole, finite space of situations that a mail can be in. topics: the declared ones."""
    yield Situation(automatic=True)
    yield Situation(hand_over=True)
    for topic in (*topics, UNCLEAR):
        look_up = look_up_of(topic, look_ups)
        if look_up is None:
            yield Situation(False, topic)
            continue
        for numbers in NUMBER_COUNTS:
            for status in look_up.situations if numbers == "one" else (None,):
                yield Situation(False, topic, numbers, status)


class Routing(NamedTuple):
    """When each instruction of a set is used, by its name. look_ups: of the set."""

    situations: Mapping[str, Sequence[Situation]]
    look_ups: Sequence[LookUp] = (WARRANTY,)

    def look_up(self, server: str) -> LookUp | None:
        """The one that calls of a server are of."""
        wanted = WARRANTY.name if server == "warranty" else server
        return next((each for each in self.look_ups if each.name == wanted), None)


def _of_one(*statuses: str) -> list[Situation]:
    return [Situation(topic="warranty", numbers="one", status=each) for each in statuses]


SHIPPED_ROUTING: Final = Routing(
    {
        "valid-warranty": _of_one("valid"),
        "invalid-warranty": _of_one("expired", NOT_FOUND),
        "unverified-sender": _of_one(WITHHELD_STATUS),
        "missing-info": [Situation(topic="warranty", numbers="none")],
        "graceful-degradation": [Situation(topic="warranty", numbers="several"), *_of_one(OTHER_STATUS)],
        "out-of-scope": [Situation(topic=OTHER_TOPIC)],
        "hand-over": [Situation(hand_over=True)],
        "no-reply": [Situation(automatic=True)],
    }
)
"""What other agents' scenarios may name."""


def is_triggered(trigger: Iterable[Condition], situation: Situation) -> bool:
    """Whether any of a scenario's conditions holds."""
    return any(condition.holds(situation) for condition in trigger)


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
