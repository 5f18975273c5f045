"""What a person labels in `view`: items with texts to read and fields to fill in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class LabelField:
    """choices: values with their words; none for a line of text. value: as it is now."""

    name: str
    text: str
    choices: tuple[tuple[str, str], ...] = ()
    value: str = ""


@dataclass(frozen=True, slots=True)
class LabelItem:
    """texts: heading and text of each. labelled: as a person has labelled it, in words; empty for not yet."""

    id: str
    texts: tuple[tuple[str, str], ...]
    fields: tuple[LabelField, ...]
    labelled: str = ""


class LabelSheet(Protocol):
    """Items of one folder. Every method raises AgentError for files that cannot be used."""

    title: str

    def items(self) -> Sequence[LabelItem]:
        """Read anew, in their order."""

    def save(self, item: str, values: Mapping[str, str]) -> None:
        """Label an item. Raises AgentError for what makes no sense, with a line for the person."""
