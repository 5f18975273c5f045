"""MCP server that looks serial numbers up in a list: `python -m guarantee_email_agent.mcp_servers.warranty`."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import Any, Final

from guarantee_email_agent.mcp_servers.command_line import CommandLine, fail
from guarantee_email_agent.mcp_servers.dispatcher import Tool, diagnose, in_thread, serve
from guarantee_email_agent.mcp_servers.warranty.csv_list import CsvList
from guarantee_email_agent.mcp_servers.warranty.sqlite_list import SqliteList, is_sqlite
from guarantee_email_agent.mcp_servers.warranty.warranty_list import WarrantyList, WarrantyListError

NAME: Final = "warranty_api"

DESCRIPTION = """\
MCP server that tells whether a serial number is under warranty, from a list that you keep: a CSV file whose first line
is serial_number,expiration_date and may go on with coverage and status, or an SQLite database with such a table named
warranties. A CSV file is read anew when it changes."""


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    try:
        warranties = _open(options.file)
    except WarrantyListError as error:
        fail(str(error))
    return serve(NAME, [check_warranty(warranties, lambda: options.today or date.today())])  # noqa: DTZ011 - the shop's own day


def check_warranty(warranties: WarrantyList, today: Callable[[], date]) -> Tool:
    """The tool. today: the day that decides whether a warranty has expired."""

    async def call(arguments: Mapping[str, Any]) -> dict[str, Any]:
        asked = arguments["serial_number"]
        record = await in_thread(warranties.find, asked)
        if record is None:
            return {"serial_number": asked, "status": "not_found"}
        answer: dict[str, Any] = {"serial_number": record.serial_number, "status": record.status_on(today())}
        if record.expiration_date is not None:
            answer["expiration_date"] = record.expiration_date.isoformat()
        if record.coverage is not None:
            answer["coverage"] = record.coverage
        return answer

    return Tool(
        name="check_warranty",
        description="Whether a device is under warranty today, by its serial number. Upper and lower case, spaces and "
        "hyphens do not count.",
        input_schema={
            "type": "object",
            "properties": {
                "serial_number": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 100,
                    "description": "As it stands on the device or in the customer's mail.",
                }
            },
            "required": ["serial_number"],
        },
        output_schema={
            "type": "object",
            "properties": {
                "serial_number": {"type": "string", "description": "As it stands in the list; if not found, as asked."},
                "status": {"type": "string", "enum": ["valid", "expired", "not_found"]},
                "expiration_date": {"type": "string", "format": "date", "description": "The last day of the warranty."},
                "coverage": {"type": "string"},
            },
            "required": ["serial_number", "status"],
        },
        call=call,
        read_only=True,
    )


def _open(file: Path) -> WarrantyList:
    return SqliteList(file, NAME) if is_sqlite(file) else CsvList(file, time.time, diagnose)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = CommandLine("warranty", DESCRIPTION)
    parser.add_argument("--file", type=Path, required=True, metavar="FILE", help="the list: CSV or SQLite")
    parser.add_argument("--today", type=_day, metavar="YYYY-MM-DD", help="take this day for today, for demonstrations")
    return parser.parse_args(arguments)


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no date; write it as 2027-03-31") from None


if __name__ == "__main__":
    sys.exit(main())
