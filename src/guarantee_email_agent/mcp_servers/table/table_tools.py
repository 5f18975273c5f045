"""The look-up in any table as an MCP tool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pydantic import ConfigDict, Field

from guarantee_email_agent.mcp_servers.dispatcher import ServerTool, ToolArguments, ToolOutput, in_thread
from guarantee_email_agent.services.table.table import Table, TableLayout

SERVER: Final = "table"  # as its error codes begin


class FindRow(ToolArguments):
    number: str = Field(min_length=1, max_length=100, description="As the customer wrote it.")


class FoundRow(ToolOutput):
    model_config = ConfigDict(frozen=True, extra="allow")

    status: str = Field(description="The row's own, or found where the table has no such column; else not_found.")


class TableTools:
    """The tool over one table."""

    def __init__(self, table: Table[Mapping[str, str]]) -> None:
        self._table = table

    def tools(self) -> list[ServerTool]:
        return [ServerTool(self.find_row, read_only=True)]

    async def find_row(self, arguments: FindRow) -> FoundRow:
        """The row of a number, one key for each column that is filled in.

        Upper and lower case, spaces and hyphens do not count.
        """
        row = await in_thread(self._table.find, arguments.number)
        return FoundRow(status="not_found") if row is None else FoundRow(**{"status": "found", **row})


def table_layout(name: str, key: str) -> TableLayout[Mapping[str, str]]:
    """Of a table with any columns beside its key."""
    folded = key.strip().casefold()
    return TableLayout(SERVER, name, folded, folded.replace("_", " "), (folded,), None, _filled)


def _filled(values: Mapping[str, str]) -> Mapping[str, str]:
    return {column: stripped for column, value in values.items() if (stripped := value.strip())}
