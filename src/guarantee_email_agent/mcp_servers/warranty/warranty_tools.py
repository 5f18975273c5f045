"""The look-up in a warranty list as an MCP tool."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Literal

from pydantic import Field

from guarantee_email_agent.mcp_servers.dispatcher import ServerTool, ToolArguments, ToolOutput, in_thread
from guarantee_email_agent.services.table.table import Table
from guarantee_email_agent.services.table.warranty_list import WarrantyRecord


class CheckWarranty(ToolArguments):
    serial_number: str = Field(
        min_length=1, max_length=100, description="As it stands on the device or in the customer's mail."
    )


class CheckedWarranty(ToolOutput):
    serial_number: str = Field(description="As it stands in the list; if not found, as asked.")
    status: Literal["valid", "expired", "not_found"]
    expiration_date: str = Field(
        default_factory=str, description="The last day of the warranty.", json_schema_extra={"format": "date"}
    )
    coverage: str = Field(default_factory=str)  # a default that the schema does not show


class WarrantyTools:
    """The tool over one list. today: the day that decides whether a warranty has expired."""

    def __init__(self, warranties: Table[WarrantyRecord], today: Callable[[], date]) -> None:
        self._warranties = warranties
        self._today = today

    def tools(self) -> list[ServerTool]:
        return [ServerTool(self.check_warranty, read_only=True)]

    async def check_warranty(self, arguments: CheckWarranty) -> CheckedWarranty:
        """Whether a device is under warranty today, by its serial number.

        Upper and lower case, spaces and hyphens do not count.
        """
        record = await in_thread(self._warranties.find, arguments.serial_number)
        if record is None:
            return CheckedWarranty(serial_number=arguments.serial_number, status="not_found")
        expiration_date = record.expiration_date.isoformat() if record.expiration_date else None
        optional = {"expiration_date": expiration_date, "coverage": record.coverage}
        known = {name: value for name, value in optional.items() if value is not None}
        return CheckedWarranty(serial_number=record.serial_number, status=record.status_on(self._today()), **known)
