"""Numbers looked up in this process, in a list that somebody keeps: of warranties, or of anything."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Final, Generic, Literal, cast

from guarantee_email_agent.instructions.look_up import FOUND, WARRANTY, LookUp
from guarantee_email_agent.services.blocking import BlockingService
from guarantee_email_agent.services.call_errors import ToolError
from guarantee_email_agent.services.clients import LookUpClient
from guarantee_email_agent.services.look_up_answer import is_quotable
from guarantee_email_agent.services.table.table import (
    CsvTable,
    Row,
    SqliteTable,
    Table,
    TableError,
    TableLayout,
    is_sqlite,
)
from guarantee_email_agent.utils.clock import Clock

Status = Literal["valid", "expired"]
SERVER: Final = "warranty_api"  # as its error codes begin

_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")


@dataclass(frozen=True, slots=True)
class WarrantyRecord:
    """status: as the list gives it, whatever the date; None where the date decides. owner_email: who alone is told."""

    serial_number: str
    expiration_date: date | None
    coverage: str | None
    status: Status | None
    owner_email: str | None = None

    def status_on(self, day: date) -> Status:
        """Covered through the last day itself."""
        if self.status is not None:
            return self.status
        assert self.expiration_date is not None
        return "valid" if day <= self.expiration_date else "expired"


def parse_record(values: Mapping[str, str]) -> WarrantyRecord:
    """values: by column, empty where there is nothing. Raises TableError without the place."""
    columns = ("serial_number", "status", "coverage", "owner_email")
    serial_number, status, coverage, owner = (values.get(column, "").strip() for column in columns)
    status = status.casefold()
    if status not in ("", "valid", "expired"):
        raise TableError("status must be valid or expired, or empty where the date decides")
    expiration_date = _date(values.get("expiration_date", "").strip(), required=not status)
    if coverage and not is_quotable(coverage):  # the agent would leave it out, for each mail anew
        raise TableError(
            "coverage must be at most 40 of A-Z, a-z, 0-9, spaces and . , : / + ( ) _ -, without a word such as "
            "valid or expired: it is repeated to customers"
        )
    known_status = cast("Status", status) if status else None
    return WarrantyRecord(serial_number, expiration_date, coverage or None, known_status, owner or None)


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
    optional=("coverage", "status", "owner_email"),
    parse=parse_record,
)


def open_table(file: Path, layout: TableLayout[Row]) -> Table[Row]:
    """Raises ToolError."""
    try:
        return SqliteTable(file, layout) if is_sqlite(file) else CsvTable(file, layout, time.time)
    except TableError as error:
        raise ToolError(f"{layout.server}_invalid_table", str(error)) from None


class LocalLookUp(LookUpClient, Generic[Row]):
    """answer: the row, or that there is none, as the look-up reads it."""

    def __init__(
        self,
        service: BlockingService[Table[Row]],
        tool: str,
        answer: Callable[[str, Row | None], dict[str, Any]],
        clock: Clock,
        look_up: LookUp,
    ) -> None:
        super().__init__(service.name, tool, clock, look_up)
        self._service = service
        self._answer = answer

    async def _ask(self, number: str) -> dict[str, Any]:
        return self._answer(number, await self._service.call(self.tool, lambda table: table.find(number)))

    async def test_connection(self) -> bool:
        await self._service.open()
        return True

    async def close(self) -> None:
        await self._service.close()


def warranty_look_up(file: Path, timeout_s: float, clock: Clock) -> LocalLookUp[WarrantyRecord]:
    """In a warranty list, by today's date: the shop's own day decides."""

    def answer(number: str, record: WarrantyRecord | None) -> dict[str, Any]:
        return warranty_answer(number, record, date.today())  # noqa: DTZ011

    service = BlockingService(WARRANTIES.server, "warranties.file", lambda: open_table(file, WARRANTIES), timeout_s)
    return LocalLookUp(service, "check_warranty", answer, clock, WARRANTY)


def warranty_answer(number: str, record: WarrantyRecord | None, today: date) -> dict[str, Any]:
    """`{"serial_number", "status", "expiration_date", "coverage", "owner_email"}`, the last three where known."""
    if record is None:
        return {"serial_number": number, "status": "not_found"}
    expiration_date = record.expiration_date.isoformat() if record.expiration_date else None
    known = {"expiration_date": expiration_date, "coverage": record.coverage, "owner_email": record.owner_email}
    return {
        "serial_number": record.serial_number,
        "status": record.status_on(today),
        **{name: value for name, value in known.items() if value is not None},
    }


def table_look_up(
    file: Path, key: str, timeout_s: float, clock: Clock, look_up: LookUp
) -> LocalLookUp[Mapping[str, str]]:
    """In any table. key: the column with the number."""
    name, read = look_up.name, [fact.name for fact in look_up.facts]
    read += [look_up.status_key] if look_up.statuses != (FOUND,) else []
    # Without the column of owners that somebody named, anybody would be told.
    read += [look_up.owner_key] if look_up.owner_key != WARRANTY.owner_key else []
    layout = table_layout(name, file.stem, key, *read)
    service = BlockingService(name, f"look_ups.{name}.table", lambda: open_table(file, layout), timeout_s)
    return LocalLookUp(service, "find_row", lambda _, row: row_answer(row), clock, look_up)


def row_answer(row: Mapping[str, str] | None) -> dict[str, Any]:
    """The row's columns that are filled in, with the `status` that it has, or `found`; else `not_found` alone."""
    return {"status": "not_found"} if row is None else {"status": "found", **row}


def table_layout(server: str, name: str, key: str, *read: str) -> TableLayout[Mapping[str, str]]:
    """Of a table with any columns beside its key and those that are read."""
    folded = key.strip().casefold()
    return TableLayout(server, name, folded, folded.replace("_", " "), (folded, *read), None, _filled)


def _filled(values: Mapping[str, str]) -> Mapping[str, str]:
    return {column: stripped for column, value in values.items() if (stripped := value.strip())}
