"""MCP server that looks serial numbers up in a list: `python -m guarantee_email_agent.mcp_servers.warranty`."""

from __future__ import annotations

import argparse
import sys
from datetime import date
from pathlib import Path

from guarantee_email_agent.mcp_servers.command_line import CommandLine, exit_on_signals, exit_with_error
from guarantee_email_agent.services.table.open_table import open_table
from guarantee_email_agent.services.table.table import TableError
from guarantee_email_agent.services.table.warranty_list import SERVER, WARRANTIES
from guarantee_email_agent.utils.process import gc_paused

DESCRIPTION = """\
MCP server that tells whether a serial number is under warranty, from a list that you keep: a CSV file whose first line
is serial_number,expiration_date and may go on with coverage and status, or an SQLite database with such a table named
warranties. A CSV file is read anew when it changes."""


def main() -> int:
    exit_on_signals()
    parser = CommandLine("warranty", DESCRIPTION)
    parser.add_argument("--file", type=Path, required=True, metavar="FILE", help="the list: CSV or SQLite")
    parser.add_argument("--today", type=_day, metavar="YYYY-MM-DD", help="take this day for today, for demonstrations")
    options = parser.parse_args()
    try:
        warranties = open_table(options.file, WARRANTIES)
    except TableError as error:
        exit_with_error(str(error))
    with gc_paused():
        from guarantee_email_agent.mcp_servers.dispatcher import serve
        from guarantee_email_agent.mcp_servers.warranty.warranty_tools import WarrantyTools
    today = lambda: options.today or date.today()  # noqa: E731, DTZ011 - the shop's own day
    return serve(SERVER, WarrantyTools(warranties, today).tools())


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no date; write it as 2027-03-31") from None


if __name__ == "__main__":
    sys.exit(main())
