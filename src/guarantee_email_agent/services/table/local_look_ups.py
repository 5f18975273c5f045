"""Numbers looked up in this process, in a list that somebody keeps."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import date
from pathlib import Path
from typing import Any, Generic

from guarantee_email_agent.services.blocking import BlockingService
from guarantee_email_agent.services.table.open_table import open_table
from guarantee_email_agent.services.table.table import Row, Table, TableError, TableLayout
from guarantee_email_agent.services.table.warranty_list import WARRANTIES, WarrantyRecord
from guarantee_email_agent.services.tool_error import ToolError


class OpenedTable(Generic[Row]):
    """A table, opened for a BlockingService. Raises ToolError."""

    def __init__(self, file: Path, layout: TableLayout[Row]) -> None:
        try:
            self._table: Table[Row] = open_table(file, layout)
        except TableError as error:
            raise ToolError(f"{layout.server}_invalid_table", str(error)) from None

    def find(self, number: str) -> Row | None:
        return self._table.find(number)

    def close(self) -> None:
        """It holds nothing open between two calls."""


class LocalLookUp(Generic[Row]):
    """A LookUpSource. answer: the row, or that there is none, as the look-up reads it."""

    def __init__(
        self, service: BlockingService[OpenedTable[Row]], tool: str, answer: Callable[[str, Row | None], dict[str, Any]]
    ) -> None:
        self.name = service.name
        self.tool = tool
        self._service = service
        self._answer = answer

    async def look_up(self, number: str) -> dict[str, Any]:
        return self._answer(number, await self._service.call(self.tool, lambda table: table.find(number)))

    async def test_connection(self) -> bool:
        await self._service.open()
        return True

    async def test_answer(self, ask: Callable[[str], Awaitable[Mapping[str, Any]]]) -> str:  # noqa: ARG002 - none made
        return ""

    async def close(self) -> None:
        await self._service.close()


def warranty_look_up(file: Path, timeout_s: float) -> LocalLookUp[WarrantyRecord]:
    """In a warranty list, by today's date: the shop's own day decides."""
    service = BlockingService(WARRANTIES.server, "warranties.file", lambda: OpenedTable(file, WARRANTIES), timeout_s)
    return LocalLookUp(service, "check_warranty", lambda number, record: warranty_answer(number, record, date.today()))  # noqa: DTZ011


def warranty_answer(number: str, record: WarrantyRecord | None, today: date) -> dict[str, Any]:
    """`{"serial_number", "status", "expiration_date", "coverage"}`, the last two where they are known."""
    if record is None:
        return {"serial_number": number, "status": "not_found"}
    expiration_date = record.expiration_date.isoformat() if record.expiration_date else None
    known = {"expiration_date": expiration_date, "coverage": record.coverage}
    return {
        "serial_number": record.serial_number,
        "status": record.status_on(today),
        **{name: value for name, value in known.items() if value is not None},
    }


def table_look_up(name: str, file: Path, key: str, timeout_s: float) -> LocalLookUp[Mapping[str, str]]:
    """In any table. name: of the look-up. key: the column with the number."""
    layout = table_layout(name, file.stem, key)
    service = BlockingService(name, f"look_ups.{name}.table", lambda: OpenedTable(file, layout), timeout_s)
    return LocalLookUp(service, "find_row", lambda _, row: row_answer(row))


def row_answer(row: Mapping[str, str] | None) -> dict[str, Any]:
    """The row's columns that are filled in, with the `status` that it has, or `found`; else `not_found` alone."""
    return {"status": "not_found"} if row is None else {"status": "found", **row}


def table_layout(server: str, name: str, key: str) -> TableLayout[Mapping[str, str]]:
    """Of a table with any columns beside its key."""
    folded = key.strip().casefold()
    return TableLayout(server, name, folded, folded.replace("_", " "), (folded,), None, _filled)


def _filled(values: Mapping[str, str]) -> Mapping[str, str]:
    return {column: stripped for column, value in values.items() if (stripped := value.strip())}
