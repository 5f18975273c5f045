"""MCP server that looks numbers up in any table: `python -m guarantee_email_agent.mcp_servers.table`."""

from __future__ import annotations

import sys
from pathlib import Path

from guarantee_email_agent.mcp_servers.command_line import CommandLine, exit_on_signals, exit_with_error
from guarantee_email_agent.services.table.open_table import open_table
from guarantee_email_agent.services.table.table import TableError
from guarantee_email_agent.utils.process import gc_paused

DESCRIPTION = """\
MCP server that finds a row by its number, in a table that you keep: a CSV file whose first line names the columns, or
a table of an SQLite database. A CSV file is read anew when it changes."""


def main() -> int:
    exit_on_signals()
    parser = CommandLine("table", DESCRIPTION)
    parser.add_argument("--file", type=Path, required=True, metavar="FILE", help="the table: CSV or SQLite")
    parser.add_argument("--key", required=True, metavar="COLUMN", help="the column with the number")
    parser.add_argument("--table", metavar="NAME", help="the table of an SQLite database, by default the file's name")
    options = parser.parse_args()
    if not options.key.strip():
        exit_with_error("--key is blank. Name the column with the number")
    with gc_paused():
        from guarantee_email_agent.mcp_servers.dispatcher import serve
        from guarantee_email_agent.mcp_servers.table.table_tools import SERVER, TableTools, table_layout
    try:
        table = open_table(options.file, table_layout(options.table or options.file.stem, options.key))
    except TableError as error:
        exit_with_error(str(error))
    return serve(SERVER, TableTools(table).tools())


if __name__ == "__main__":
    sys.exit(main())
