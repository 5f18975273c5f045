"""What the agent read in a mail, as a trace has it: names and values for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from guarantee_email_agent.reporting.terminal import pluralize
from guarantee_email_agent.utils.text import printable, truncate

_MAX_VALUE = 500


def reading_fields(
    read: Mapping[str, Any], mail: Mapping[str, Any], response: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """Language, topic, numbers with the line that each stands in, look-up, and the scenario with why it was chosen."""
    for name in ("language", "topic"):
        if name in read:
            yield name, _text(read[name])
    if "numbers" in read:
        kind = str(read.get("number_kind", "number")).replace("_", " ")
        for number in read["numbers"]:
            yield kind, _evidence(str(number), mail)
        if not read["numbers"]:
            yield kind, "none"
    if "look_up" in read:
        asked = f" of {printable(str(read['number']))}" if "number" in read else ""
        yield "look-up", f"{printable(str(read['look_up']))}{asked} → {printable(str(read.get('status', 'no answer')))}"
    if "skip_reason" in read:
        yield "not answered", _text(read["skip_reason"])
    if response.get("hand_over_reasons"):
        yield "for a person", _text(response["hand_over_reasons"])
    if response.get("scenario_used"):
        yield "scenario", f"{printable(str(response['scenario_used']))}{_why(read, response)}"


def _why(read: Mapping[str, Any], response: Mapping[str, Any]) -> str:
    """What the trigger of a scenario has to go by."""
    if "skip_reason" in read:
        return ", for mail that must not be answered"
    if response.get("hand_over_reasons"):
        return ", for mail that a person is to see"
    parts = [f"topic {read['topic']}"] if "topic" in read else []
    if "numbers" in read:
        parts.append(pluralize(len(read["numbers"]), str(read.get("number_kind", "number")).replace("_", " ")))
    if "status" in read:
        parts.append(f"status {read['status']}")
    return f", by {printable(', '.join(parts))}" if parts else ""


def _evidence(number: str, mail: Mapping[str, Any]) -> str:
    """A number with the line of the mail that it stands in."""
    for name in ("body", "subject"):
        for line in str(mail.get(name) or "").splitlines():
            if number.casefold() in line.casefold():
                at = line.casefold().index(number.casefold())
                start = max(0, at - 60)
                excerpt = line[start : at + len(number) + 60].strip()
                return f"{printable(number)}, in {printable(excerpt)!r}"
    return printable(number)


def _text(value: object) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
    return printable(truncate(text, _MAX_VALUE))
