"""Grounding: every claim in a reply must be supported by this mail's facts.

The literal words of the instruction's own templates count as supported, since a person wrote and approved them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from guarantee_email_agent.instructions.template import TICKET_PLACEHOLDER

MAX_REPLY_LENGTH = 5_000

_MONTH = (
    "(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    "|nov(?:ember)?|dec(?:ember)?)"
)
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_DATES = (
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}",
    r"\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}",
    rf"{_DAY}\.? {_MONTH}\b(?:,? \d{{4}})?",
    rf"{_MONTH}\.? (?:\d{{4}}|{_DAY})\b(?:,? \d{{4}})?",
)
_COUNT = "(?:one|two|three|four|five|six|seven|eight|nine|ten|twelve|fourteen|twenty|thirty)"
_PROMISES = (
    r"\b(?:free of charge|at no (?:extra )?(?:cost|charge)|for free|refund\w*|reimburs\w*|money back|compensat\w*"
    rf"|replacement|we will replace|{_COUNT} (?:business |working )?(?:hour|day|week|month|year)s?)\b"
)
_CLAIMS = (
    ("date", re.compile(rf"\b(?:{'|'.join(_DATES)})", re.IGNORECASE)),
    ("amount", re.compile(r"[€$£] ?\d[\d.,]*|\b\d[\d.,]* ?(?:€|\$|£|%|EUR\b|USD\b|GBP\b|PLN\b|zł)", re.IGNORECASE)),
    ("link", re.compile(r"\b(?:https?://|www\.)\S+|\b[\w.+-]+@[\w-]+\.[\w.-]+\b", re.IGNORECASE)),
    ("promise", re.compile(_PROMISES, re.IGNORECASE)),
    # Any other word with a digit in it could pass for a serial number, a ticket number or a promise in days.
    ("number", re.compile(r"\b(?=[A-Z0-9/._-]{0,60}\d)(?:[A-Z0-9]+(?:[-/._][A-Z0-9]+)*)\b", re.IGNORECASE)),
)
_STATUS_WORDS: Mapping[str | None, re.Pattern[str]] = {
    "valid": re.compile(r"expired|not in our records|not found|invalid|no longer valid|not valid", re.IGNORECASE),
    "expired": re.compile(r"valid|not in our records|not found|fully covered|still covered", re.IGNORECASE),
    "not_found": re.compile(r"valid|expired|covered", re.IGNORECASE),
    None: re.compile(
        r"is (?:still |no longer |not )?valid|has expired|is expired|invalid|fully covered|(?:is|are) (?:not )?covered"
        r"|not in our records",
        re.IGNORECASE,
    ),
}
_FULLY_COVERED = re.compile(r"fully\s+covered", re.IGNORECASE)
_ABOUT_WARRANTY = re.compile(r"warrant|guarantee|covered", re.IGNORECASE)
_CONTROL_CHARACTERS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True, slots=True)
class GroundingFacts:
    """What a reply may say. `facts` as in the draft request; `approved_text` is the literal text of the templates."""

    facts: Mapping[str, str | None]
    approved_text: str
    has_ticket: bool
    allows_warranty_mentions: bool


def find_unsupported_claims(reply: str, grounding: GroundingFacts) -> tuple[str, ...]:
    """What in `reply` is not supported, as sentences for the model; empty for a grounded reply."""
    if not reply.strip():
        return ("The reply is empty.",)
    if len(reply) > MAX_REPLY_LENGTH:
        return (f"The reply is longer than {MAX_REPLY_LENGTH} characters.",)
    if not grounding.has_ticket and TICKET_PLACEHOLDER in reply:
        return (f"There is no ticket: do not write {TICKET_PLACEHOLDER}.",)
    # What is left without the facts must not hold any claim of its own.
    text = reply.replace(TICKET_PLACEHOLDER, " ")
    for name in ("serial_number", "expiration_date"):
        if value := grounding.facts.get(name):
            text = _remove_value(text, value)
    status, is_full = grounding.facts.get("warranty_status"), grounding.facts.get("coverage") == "full"
    return _find_claims(text, status, is_full, grounding.allows_warranty_mentions, grounding.approved_text)


@lru_cache(maxsize=256)
def _find_claims(
    text: str, status: str | None, is_full: bool, allows_warranty_mentions: bool, approved_text: str
) -> tuple[str, ...]:
    """Claims in a reply whose facts were removed. Pure, and most replies differ in their facts alone, hence cached."""
    found: list[str] = []
    if _CONTROL_CHARACTERS.search(text):
        found.append("The reply holds control characters.")
    found.extend(f"'{mark}' looks like an unfilled placeholder." for mark in ("{", "}", "[[", "]]") if mark in text)
    if match := _STATUS_WORDS.get(status, _STATUS_WORDS[None]).search(text):
        found.append(f"The facts do not say '{match[0]}'.")
    if not is_full and _FULLY_COVERED.search(text):
        found.append("The facts do not say 'fully covered'.")
    if not allows_warranty_mentions and (match := _ABOUT_WARRANTY.search(text)):
        found.append(f"This reply says nothing about a warranty: leave out '{match[0]}'.")
    approved_text = approved_text.lower()
    for kind, pattern in _CLAIMS:
        found.extend(
            f"The {kind} '{match[0]}' stands in no fact."
            for match in pattern.finditer(text)
            if match[0].lower() not in approved_text
        )
        text = pattern.sub(" ", text)
    return tuple(dict.fromkeys(found))


def find_missing_facts(reply: str, grounding: GroundingFacts) -> tuple[str, ...]:
    """Facts that a model's draft leaves out. A template may do so: its author decided it."""
    found = []
    if grounding.has_ticket and TICKET_PLACEHOLDER not in reply:
        found.append(f"Write {TICKET_PLACEHOLDER} where the ticket number goes.")
    if grounding.facts.get("warranty_status") in ("valid", "expired", "not_found"):
        found.extend(
            f"The reply must hold the {name.replace('_', ' ')} {value} exactly so."
            for name in ("serial_number", "expiration_date")
            if (value := grounding.facts.get(name)) and _remove_value(reply, value) == reply
        )
    return tuple(found)


def _remove_value(text: str, value: str) -> str:
    """The text with a blank for `value`, except where it is part of something longer: SN12345-B is not SN12345."""
    first, *others = text.split(value)
    for other in others:
        is_part = first[-1:].isalnum() or other[:1].isalnum() or (other[:1] in ("-", "/", "_") and other[1:2].isalnum())
        first = f"{first}{value if is_part else ' '}{other}"
    return first
