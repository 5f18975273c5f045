"""MCP server that looks numbers up in any table: `guarantee-email-agent mcp-server table`."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final

from pydantic import ConfigDict, Field

from guarantee_email_agent.mcp_servers.server import (
    CommandLine,
    ServerTool,
    ToolOutput,
    exit_with_error,
    in_thread,
    serve,
)
from guarantee_email_agent.services.call_errors import ToolError
from guarantee_email_agent.services.table.local_look_ups import open_table, row_answer, table_layout
from guarantee_email_agent.services.table.table import Table

SERVER: Final = "table"  # as its error codes begin

_DESCRIPTION: Final = """\
MCP server that finds a row by its number, in a table that you keep: a CSV file whose first line names the columns, or
a table of an SQLite database. A CSV file is read anew when it changes."""


class FoundRow(ToolOutput):
    model_config = ConfigDict(frozen=True, extra="allow")

    status: str = Field(description="The row's own, or found where the table has no such column; else not_found.")


class TableTools:
    """The tool over one table."""

    def __init__(self, table: Table[Mapping[str, str]]) -> None:
        self._table = table

    def tools(self) -> list[ServerTool]:
        return [ServerTool(self.find_row, read_only=True)]

    async def find_row(
        self, number: Annotated[str, Field(min_length=1, max_length=100, description="As the customer wrote it.")]
    ) -> FoundRow:
        """The row of a number, one key for each column that is filled in.

        Upper and lower case, spaces and hyphens do not count.
        """
        return FoundRow(**row_answer(await in_thread(self._table.find, number)))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = CommandLine("table", _DESCRIPTION)
    parser.add_argument("--file", type=Path, required=True, metavar="FILE", help="the table: CSV or SQLite")
    parser.add_argument("--key", required=True, metavar="COLUMN", help="the column with the number")
    parser.add_argument("--table", metavar="NAME", help="the table of an SQLite database, by default the file's name")
    options = parser.parse_args(arguments)
    if not options.key.strip():
        exit_with_error("--key is blank. Name the column with the number")
    try:
        table = open_table(options.file, table_layout(SERVER, options.table or options.file.stem, options.key))
    except ToolError as error:
        exit_with_error(error.message)
    return serve(SERVER, TableTools(table).tools())


if __name__ == "__main__":
    sys.exit(main())
