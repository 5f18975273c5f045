"""How selective the agent is: which mails it answers, which it leaves, and how rightly. Harm is counted apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, NamedTuple

from guarantee_email_agent.runlog.records import Case
from guarantee_email_agent.runlog.statistics import format_percentage
from guarantee_email_agent.utils.terminal import pluralize

Handling = Literal["answered", "to_a_person", "asked_back", "not_answered", "stopped"]

_ASKING: Final = ("missing-info", "graceful-degradation")
_LEFT: Final[Mapping[Handling, str]] = {
    "to_a_person": "to a person",
    "asked_back": "asked back",
    "not_answered": "not answered",
    "stopped": "stopped at a fault",
}
_THRESHOLDS: Final = range(0, 101, 10)


class _Mail(NamedTuple):
    """What became of a mail. doubt: None where nobody measured it, so that no caution hands it over."""

    handling: Handling
    is_sent: bool
    is_right: bool
    is_harmful: bool
    doubt: int | None


class Selectivity:
    """Counts cases as they come. `harmful`: how many did harm, of any agent; None where it is not known of each.

    The rest is of our own agent alone: of others nobody knows why they answer.
    """

    def __init__(self) -> None:
        self.harmful: int | None = 0
        self._mails: Counter[_Mail] = Counter()

    def add(self, case: Case) -> None:
        is_harmful = bool(case.harm)
        if self.harmful is not None:
            self.harmful = None if any(run.harm is None for run in case.runs) else self.harmful + is_harmful
        shown = case.shown
        if shown.reading is not None:
            actual = shown.response or {}
            sent = bool(actual.get("email_sent"))
            self._mails[_Mail(handling_of(actual), sent, case.passed, is_harmful, actual.get("doubt"))] += 1

    @property
    def is_of_our_agent(self) -> bool:
        return bool(self._mails)

    def lines(self) -> Iterator[str]:
        """For people: short lines."""
        facts = dict(self.facts())
        if (answered := facts.pop("Answered", None)) is not None:
            yield f"Answered: {answered}"
        harmful = facts.pop("Harmful", None)
        if facts:
            yield "; ".join(f"{name}: {count}" for name, count in facts.items()).capitalize()
        if harmful is not None:
            yield f"Harmful: {harmful}"

    def facts(self) -> Iterator[tuple[str, str]]:
        """The same by names; what did not happen is left out."""
        counts = self.as_dict()
        if counts:
            right = f", {counts['right']} of them rightly" if counts["answered"] else ""
            yield "Answered", f"{counts['answered']} of {pluralize(counts['mails'], 'mail')}{right}"
            yield from (
                (name.capitalize(), str(counts[handling])) for handling, name in _LEFT.items() if counts[handling]
            )
        if self.harmful != 0:
            yield "Harmful", "not known" if self.harmful is None else str(self.harmful)

    def as_dict(self) -> dict[str, int]:
        """For machines; empty where the agent is not ours."""
        if not self._mails:
            return {}
        handled: Counter[Handling] = Counter()
        for mail, count in self._mails.items():
            handled[mail.handling] += count
        right = sum(count for mail, count in self._mails.items() if mail.handling == "answered" and mail.is_right)
        counts = {"mails": handled.total(), "answered": handled["answered"], "right": right}
        return counts | {str(handling): handled[handling] for handling in _LEFT}

    def curve_lines(self) -> Iterator[str]:
        """A table of what each caution comes to, by a run at none: at `c`, a doubt above `100 - c` is for a person."""
        total = self._mails.total()
        yield f"{'Caution':8}{'Answered':22}{'Right':22}Harmful answers"
        for caution in _THRESHOLDS:
            kept = {mail: count for mail, count in self._mails.items() if (mail.doubt or 0) <= 100 - caution}
            answered = sum(count for mail, count in kept.items() if mail.handling == "answered")
            right = sum(count for mail, count in kept.items() if mail.handling == "answered" and mail.is_right)
            harmful = sum(count for mail, count in kept.items() if mail.is_sent and mail.is_harmful)
            yield f"{caution:<8}{_share(answered, total):22}{_share(right, answered):22}{harmful}"
        if all(mail.doubt is None for mail in self._mails):
            yield "No doubt was measured, so that every caution comes to the same."


def handling_of(actual: Mapping[str, Any]) -> Handling:
    """By what the mocks captured, then by what the agent says. A draft is for a person to send."""
    if handling := actual.get("handling"):  # all that is kept of a sealed suite's mail
        known: Handling = handling
        return known
    if actual.get("email_sent"):
        return "asked_back" if actual.get("scenario_used") in _ASKING else "answered"
    if actual.get("hand_over_reasons") or actual.get("draft_stored"):
        return "to_a_person"
    return "stopped" if actual.get("failed_step") else "not_answered"


def _share(count: int, total: int) -> str:
    return f"{count} of {total}" + (f" ({format_percentage(count, total, 100)})" if total else "")
