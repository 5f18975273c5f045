"""Which scenario a mail belongs to, decided from its situation and the triggers in the instruction files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Literal

Intent = Literal["warranty", "other", "unclear"]
SerialCount = Literal["none", "one", "several"]
WarrantyStatus = Literal["valid", "expired", "not_found", "other", "withheld"]

INTENTS: tuple[Intent, ...] = ("warranty", "other", "unclear")
SERIAL_COUNTS: tuple[SerialCount, ...] = ("none", "one", "several")
WARRANTY_STATUSES: tuple[WarrantyStatus, ...] = ("valid", "expired", "not_found", "other", "withheld")


@dataclass(frozen=True, slots=True)
class Situation:
    """All that routing depends on. `warranty_status` is known only for one serial number in a warranty mail.

    `withheld`: the sender may not be told what the warranty system says.
    """

    automatic: bool = False
    hand_over: bool = field(default=False, kw_only=True)
    intent: Intent | None = None
    serial_numbers: SerialCount | None = None
    warranty_status: WarrantyStatus | None = None

    def __str__(self) -> str:
        if self.automatic:
            return "automatic: true"
        if self.hand_over:
            return "hand_over: true"
        status = f", warranty_status: {self.warranty_status}" if self.warranty_status else ""
        return f"intent: {self.intent}, serial_numbers: {self.serial_numbers}{status}"


@dataclass(frozen=True, slots=True)
class Condition:
    """One way to trigger a scenario: every part that is given must hold."""

    automatic: bool = field(default=False, metadata={"doc": "the mail was sent by a machine and must not be answered"})
    hand_over: bool = field(default=False, metadata={"doc": "a person is wanted or needed"})
    intent: Intent | None = field(default=None, metadata={"doc": "what the mail is about"})
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
            and self.intent in (None, situation.intent)
            and self.serial_numbers in (None, situation.serial_numbers)
            and (not self.warranty_status or situation.warranty_status in self.warranty_status)
        )


def all_situations() -> Iterator[Situation]:
    """The whole, finite space of situations that a mail can be in."""
    yield Situation(automatic=True)
    yield Situation(hand_over=True)
    for intent, serial_numbers in product(INTENTS, SERIAL_COUNTS):
        has_status = intent == "warranty" and serial_numbers == "one"
        for status in WARRANTY_STATUSES if has_status else (None,):
            yield Situation(False, intent, serial_numbers, status)


def is_triggered(trigger: Iterable[Condition], situation: Situation) -> bool:
    """Whether any of a scenario's conditions holds."""
    return any(condition.holds(situation) for condition in trigger)
