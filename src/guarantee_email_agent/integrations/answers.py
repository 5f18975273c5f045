"""Check what a service answered before anything of it reaches a customer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from guarantee_email_agent.instructions.router import WarrantyStatus
from guarantee_email_agent.utils.errors import IntegrationError

_PLAIN_VALUE = re.compile(r"[\w .,:/+()-]{1,40}")
_STATUS_WORD = re.compile(r"valid|expire", re.IGNORECASE)
_TICKET_ID = re.compile(r"[\w./#-]{1,64}")
_STATUSES: Mapping[str, WarrantyStatus] = {"valid": "valid", "expired": "expired", "not_found": "not_found"}


@dataclass(frozen=True, slots=True)
class WarrantyAnswer:
    """What the warranty system says of one serial number; dates and coverage in its own words."""

    status: WarrantyStatus
    expiration_date: str | None
    coverage: str | None


def warranty_answer(raw: object) -> WarrantyAnswer:
    """Raises IntegrationError `warranty_api_malformed` for anything that could not be repeated to a customer."""
    if not isinstance(raw, Mapping):
        raise _malformed("warranty_api", "is no mapping")
    status = raw.get("status")
    if not isinstance(status, str) or not status.strip():
        raise _malformed("warranty_api", "has no status")
    known = _STATUSES.get(status.strip().casefold().replace(" ", "_").replace("-", "_"), "other")
    return WarrantyAnswer(known, _plain(raw, "expiration_date"), _plain(raw, "coverage"))


def ticket_id(raw: object) -> str:
    """Raises IntegrationError `ticketing_malformed` for an answer without a usable ticket number."""
    value = raw.get("ticket_id") if isinstance(raw, Mapping) else None
    if not isinstance(value, str) or not _TICKET_ID.fullmatch(value):
        raise _malformed("ticketing", "has no usable ticket_id")
    return value


def _plain(raw: Mapping[str, object], name: str) -> str | None:
    value = raw.get(name)
    if value is None or value == "":
        return None
    if not isinstance(value, str) or not _PLAIN_VALUE.fullmatch(value) or _STATUS_WORD.search(value):
        raise _malformed("warranty_api", f"has an unusable {name}")
    return value


def _malformed(port: str, what: str) -> IntegrationError:
    return IntegrationError(f"The answer of {port} {what}. Check the service", f"{port}_malformed")
