"""Which scenario a mail belongs to, decided from its situation and the triggers in the instruction files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, Literal, Self

SerialCount = Literal["none", "one", "several"]
WarrantyStatus = Literal["valid", "expired", "not_found", "other", "withheld"]

UNCLEAR: Final = "unclear"
"""The topic of a mail that does not decide between the declared ones; always there, and reserved."""

LOOK_UP_TOPIC: Final = "warranty"
"""The topic whose mails need a look-up: what happens depends on their serial numbers. Of any other it does not."""

SERIAL_COUNTS: tuple[SerialCount, ...] = ("none", "one", "several")
WARRANTY_STATUSES: tuple[WarrantyStatus, ...] = ("valid", "expired", "not_found", "other", "withheld")


@dataclass(frozen=True, slots=True)
class Situation:
    """All that routing depends on.

    `serial_numbers` count in a mail on the warranty alone, and `warranty_status` is known for just one of them.

    `withheld`: the sender may not be told what the warranty system says.
    """

    automatic: bool = False
    hand_over: bool = field(default=False, kw_only=True)
    topic: str | None = None
    serial_numbers: SerialCount | None = None
    warranty_status: WarrantyStatus | None = None

    @classmethod
    def of_mail(cls, topic: str, serial_numbers: SerialCount, warranty_status: WarrantyStatus | None) -> Self:
        """That of a mail which is to be answered, whatever numbers it holds."""
        return cls(False, topic, serial_numbers, warranty_status) if topic == LOOK_UP_TOPIC else cls(False, topic)

    def __str__(self) -> str:
        if self.automatic:
            return "automatic: true"
        if self.hand_over:
            return "hand_over: true"
        count = f", serial_numbers: {self.serial_numbers}" if self.serial_numbers else ""
        status = f", warranty_status: {self.warranty_status}" if self.warranty_status else ""
        return f"topic: {self.topic}{count}{status}"


@dataclass(frozen=True, slots=True)
class Condition:
    """One way to trigger a scenario: every part that is given must hold."""

    automatic: bool = field(default=False, metadata={"doc": "the mail was sent by a machine and must not be answered"})
    hand_over: bool = field(default=False, metadata={"doc": "a person is wanted or needed"})
    topic: str | None = field(
        default=None, metadata={"doc": "what the mail is about: a topic that an instruction file declares, or unclear"}
    )
    serial_numbers: SerialCount | None = field(
        default=None, metadata={"doc": "how many different usable serial numbers it names"}
    )
    warranty_status: tuple[WarrantyStatus, ...] = field(
        default=(), metadata={"doc": "what the warranty system says of the one serial number"}
    )

    def holds(self, situation: Situation) -> bool:
        return (
            self.automatic == situation.automatic
            and self.hand_over == situation.hand_over
            and self.topic in (None, situation.topic)
            and self.serial_numbers in (None, situation.serial_numbers)
            and (not self.warranty_status or situation.warranty_status in self.warranty_status)
        )


def all_situations(topics: Iterable[str]) -> Iterator[Situation]:
    """The whole, finite space of situations that a mail can be in. topics: the declared ones."""
    yield Situation(automatic=True)
    yield Situation(hand_over=True)
    for topic in (*topics, UNCLEAR):
        for serial_numbers in SERIAL_COUNTS if topic == LOOK_UP_TOPIC else (None,):
            for status in WARRANTY_STATUSES if serial_numbers == "one" else (None,):
                yield Situation(False, topic, serial_numbers, status)


def is_triggered(trigger: Iterable[Condition], situation: Situation) -> bool:
    """Whether any of a scenario's conditions holds."""
    return any(condition.holds(situation) for condition in trigger)
