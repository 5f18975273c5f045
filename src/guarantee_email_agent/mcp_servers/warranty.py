"""MCP server that looks serial numbers up in a list: `guarantee-email-agent mcp-server warranty`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from typing import Final, Literal

from pydantic import Field

from guarantee_email_agent.mcp_servers.server import (
    CommandLine,
    ServerTool,
    ToolArguments,
    ToolOutput,
    exit_with_error,
    in_thread,
    serve,
)
from guarantee_email_agent.services.call_errors import ToolError
from guarantee_email_agent.services.table.local_look_ups import (
    SERVER,
    WARRANTIES,
    WarrantyRecord,
    open_table,
    warranty_answer,
)
from guarantee_email_agent.services.table.table import Table

_DESCRIPTION: Final = """\
MCP server that tells whether a serial number is under warranty, from a list that you keep: a CSV file whose first line
is serial_number,expiration_date and may go on with coverage, status and owner_email, or an SQLite database with such a
table named warranties. A CSV file is read anew when it changes."""


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
    owner_email: str = Field(default_factory=str)


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
        return CheckedWarranty(**warranty_answer(arguments.serial_number, record, self._today()))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = CommandLine("warranty", _DESCRIPTION)
    parser.add_argument("--file", type=Path, required=True, metavar="FILE", help="the list: CSV or SQLite")
    parser.add_argument("--today", type=_day, metavar="YYYY-MM-DD", help="take this day for today, for demonstrations")
    options = parser.parse_args(arguments)
    try:
        warranties = open_table(options.file, WARRANTIES)
    except ToolError as error:
        exit_with_error(error.message)
    today = lambda: options.today or date.today()  # noqa: E731, DTZ011 - the shop's own day
    return serve(SERVER, WarrantyTools(warranties, today).tools())


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no date; write it as 2027-03-31") from None


if __name__ == "__main__":
    sys.exit(main())
