"""What can be looked up for a mail: by which number, for which topics, and what is known then."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

FactForm = Literal["date", "amount", "name", "word"]

NOT_FOUND: Final = "not_found"
OTHER_STATUS: Final = "other"
WITHHELD_STATUS: Final = "withheld"
FOUND: Final = "found"
"""The one status of a look-up whose service gives none."""

TICKET_NUMBER: Final = "ticket_number"

_SIMPLE_FORMAT: Final = r"(?i)(?:\\d|\[[A-Z0-9-]+\]|[A-Z0-9]|\{[0-9]+\}|[-/_]|\\[-./])+"
"""Has one length."""
_PIECE: Final = re.compile(r"\\.|\[[^\]]+\]|.")
_OWN_LETTER: Final = re.compile(r"(?i)[A-Z]|\[(?!A-Z\])[A-Z-]+\]")
"""A letter, or one of a few: what tells a format from anybody's."""
_JOINT: Final = r"(?P<others>\[[^\]]+\])|\\?(?P<joint>[-/._])"
_MAX_JOINTS: Final = 4
_MIN_LENGTH: Final = 8


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that a service may tell of a number.

    words: those that a `word` may be; empty: those that some condition names. statuses: with which it means something;
    empty: with each but `not_found` and `other`. required: a reply that tells the status has to hold it, where it is
    known.
    """

    name: str
    form: FactForm
    words: tuple[str, ...] = ()
    statuses: tuple[str, ...] = ()
    required: bool = False


@dataclass(frozen=True, slots=True)
class NumberFormat:
    """How a number is known in a mail.

    patterns: the company's own formats, each for all of a number, case ignored. labels: phrases that stand before it;
    none for serial numbers, whose labels stand in the lexicon.
    """

    name: str
    description: str = ""
    patterns: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()


class NumberPattern:
    """One of a company's own formats. source: checked when the configuration was read."""

    def __init__(self, source: str) -> None:
        self.strict = re.compile(f"(?:{source})", re.IGNORECASE)
        self._joints: list[str] = []
        self._without_joints: re.Pattern[str] | None = None
        if re.fullmatch(_SIMPLE_FORMAT, source) and any(map(_OWN_LETTER.fullmatch, _PIECE.findall(source))):
            loose = re.sub(_JOINT, self._loosen, source)
            if len(self._joints) <= _MAX_JOINTS:
                self._without_joints = re.compile(loose, re.IGNORECASE)

    def respelled(self, written: str) -> str | None:
        """A number as the format has it, where no more is wrong than joints left out, or hyphens put in their place.

        `KT771209` and `KT-771-209` for `KT-77120-9`. None for any other text. A short one needs all joints: PO12345 may
        be an order's.
        """
        if self._without_joints is None or "--" in written or written[-1] == "-":
            return None
        written = written.replace("-", "")
        match = self._without_joints.fullmatch(written)
        if match is None or sum(map(str.isalnum, written)) < _MIN_LENGTH:
            return None
        number, position = "", 0
        for index, joint in enumerate(self._joints):
            start, end = match.span(f"joint{index}")
            number += written[position:start] + joint
            position = end
        return number + written[position:]

    def _loosen(self, match: re.Match[str]) -> str:
        if match["others"]:
            return match["others"]
        self._joints.append(match["joint"])
        return f"(?P<joint{len(self._joints) - 1}>{re.escape(match['joint'])}?)"


@dataclass(frozen=True, slots=True)
class LookUp:
    """One look-up. name: of the service, as its error codes begin and as scenarios mock it.

    number, status: what conditions call the number and the deciding word. statuses: those that the service may give
    besides `not_found`; any other counts as `other`. format: how the number is read. status_key, owner_key: what the
    service calls the status, and the only address that may be told.
    """

    name: str
    topics: tuple[str, ...]
    number: str
    status: str
    statuses: tuple[str, ...]
    facts: tuple[Fact, ...]
    format: NumberFormat = NumberFormat("serial_number")
    status_key: str = "status"
    owner_key: str = "owner_email"

    @property
    def is_of_warranties(self) -> bool:
        """Whether it is the built-in one, whatever the formats of its numbers."""
        return self.topics == WARRANTY.topics

    @property
    def situations(self) -> tuple[str, ...]:
        """Every status that a mail with one number may come to."""
        return (*self.statuses, NOT_FOUND, OTHER_STATUS, WITHHELD_STATUS)

    @property
    def told_statuses(self) -> tuple[str, ...]:
        """Those that say something of the number, so that a reply has to repeat it."""
        return (*self.statuses, NOT_FOUND)

    @property
    def unreadable(self) -> str:
        """The fact that a number stands in the mail, and not all of it was read."""
        return f"unreadable_{self.number}"

    @property
    def unconfirmed(self) -> str:
        """The fact that a number may be the one, though nothing in the mail says so: that number."""
        return f"unconfirmed_{self.number}"

    @property
    def fact_names(self) -> tuple[str, ...]:
        """What a condition may ask for."""
        return (self.number, self.status, *(fact.name for fact in self.facts), self.unreadable, self.unconfirmed)

    @property
    def placeholders(self) -> tuple[str, ...]:
        """What a reply may hold. The status has none: a sentence about it belongs to one template."""
        return (self.number, *(fact.name for fact in self.facts), self.unconfirmed)

    def facts_with(self, status: str) -> tuple[Fact, ...]:
        """The facts that mean something with a status."""
        return tuple(fact for fact in self.facts if status in (fact.statuses or self.statuses))


WARRANTY: Final = LookUp(
    name="warranty_api",
    topics=("warranty",),
    number="serial_number",
    status="warranty_status",
    statuses=("valid", "expired"),
    facts=(
        Fact("expiration_date", "date", statuses=("valid", "expired"), required=True),
        Fact("coverage", "word", statuses=("valid",)),
    ),
)
"""The built-in one."""


def look_up_of(topic: str | None, look_ups: Iterable[LookUp]) -> LookUp | None:
    """The one that serves a topic."""
    return next((look_up for look_up in look_ups if topic in look_up.topics), None)
