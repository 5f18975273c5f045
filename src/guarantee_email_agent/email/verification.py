"""Verify what a model extracted against the mail itself."""

from __future__ import annotations

import re
from collections.abc import Sequence

from guarantee_email_agent.email.parsing.email import Email

_ASCII_PUNCTUATION = {code: None for code in range(128) if not chr(code).isalnum()}
_NOT_ALPHANUMERIC = re.compile(r"[\W_]+")
_PLAUSIBLE = re.compile(r"(?=.{0,59}[0-9])[A-Z0-9](?:[A-Z0-9]|[-/._ ](?=[A-Z0-9])){1,58}")


def verify_serial_numbers(candidates: Sequence[str], email: Email) -> tuple[str, ...]:
    """The different serial numbers among `candidates` that really stand in the mail, upper case.

    What stands in the newly written text (and in a subject of its own) counts before what stands in quoted text or the
    signature. A model's invention stands nowhere, and is dropped.
    """
    if not candidates:
        return ()
    new, rest = email.new_text, f"{email.quoted_text} {email.signature_text}"
    if email.is_answer:
        rest = f"{email.subject} {rest}"
    else:
        new = f"{email.subject} {new}"
    new, rest = _alphanumeric(new), _alphanumeric(rest)
    in_new: dict[str, str] = {}
    in_rest: dict[str, str] = {}
    for candidate in candidates:
        written = candidate.strip().upper()
        if not _PLAUSIBLE.fullmatch(written):
            continue
        key = _alphanumeric(written)
        if key in new:
            in_new.setdefault(key.removeprefix("SN"), written)
        elif key in rest:
            in_rest.setdefault(key.removeprefix("SN"), written)
    return tuple((in_new or in_rest).values())


def _alphanumeric(text: str) -> str:
    upper = text.upper()
    return upper.translate(_ASCII_PUNCTUATION) if text.isascii() else _NOT_ALPHANUMERIC.sub("", upper)
