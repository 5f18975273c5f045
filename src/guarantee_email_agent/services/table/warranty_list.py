"""One line of a warranty list: a serial number, until when it is covered, and how."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from typing import Final, Literal, cast

from guarantee_email_agent.services.look_up_answer import is_quotable
from guarantee_email_agent.services.table.table import TableError, TableLayout

Status = Literal["valid", "expired"]
SERVER: Final = "warranty_api"  # as its error codes begin

_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")


@dataclass(frozen=True, slots=True)
class WarrantyRecord:
    """status: as the list gives it, whatever the date; None where the date decides."""

    serial_number: str
    expiration_date: date | None
    coverage: str | None
    status: Status | None

    def status_on(self, day: date) -> Status:
        """Covered through the last day itself."""
        if self.status is not None:
            return self.status
        assert self.expiration_date is not None
        return "valid" if day <= self.expiration_date else "expired"


def parse_record(values: Mapping[str, str]) -> WarrantyRecord:
    """values: by column, empty where there is nothing. Raises TableError without the place."""
    serial_number = values.get("serial_number", "").strip()
    status = values.get("status", "").strip().casefold()
    if status not in ("", "valid", "expired"):
        raise TableError("status must be valid or expired, or empty where the date decides")
    expiration_date = _date(values.get("expiration_date", "").strip(), required=not status)
    coverage = values.get("coverage", "").strip()
    if coverage and not is_quotable(coverage):  # the agent would leave it out, for each mail anew
        raise TableError(
            "coverage must be at most 40 of A-Z, a-z, 0-9, spaces and . , : / + ( ) _ -, without a word such as "
            "valid or expired: it is repeated to customers"
        )
    known_status = cast("Status", status) if status else None
    return WarrantyRecord(serial_number, expiration_date, coverage or None, known_status)


def _date(text: str, *, required: bool) -> date | None:
    if not text:
        if required:
            raise TableError("expiration_date is empty. Fill it in, or say valid or expired in a column status")
        return None
    with suppress(ValueError):
        if _DATE.fullmatch(text):
            return date.fromisoformat(text)
    raise TableError(f"expiration_date {text[:30]!r} is no date. Write it as 2027-03-31")


WARRANTIES: Final = TableLayout(
    server=SERVER,
    name="warranties",
    key="serial_number",
    number="serial number",
    required=("serial_number", "expiration_date"),
    optional=("coverage", "status"),
    parse=parse_record,
)
