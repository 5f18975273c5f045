"""MCP server that keeps tickets in an SQLite database: `python -m guarantee_email_agent.mcp_servers.ticketing`."""

from __future__ import annotations

import sys
from pathlib import Path

from guarantee_email_agent.mcp_servers.command_line import CommandLine, exit_on_signals, exit_with_error
from guarantee_email_agent.services.ticket_store import SERVER, TicketStore, TicketStoreError
from guarantee_email_agent.utils.process import gc_paused

DESCRIPTION = """\
MCP server that keeps tickets in an SQLite database, made where it is missing. Several of these servers may use one
database at a time. Nothing is stored but what create_ticket and add_note take, and when each was called."""


def main() -> int:
    exit_on_signals()
    parser = CommandLine("ticketing", DESCRIPTION)
    parser.add_argument("--database", type=Path, required=True, metavar="FILE", help="the SQLite database")
    options = parser.parse_args()
    try:
        store = TicketStore(options.database)
    except TicketStoreError as error:
        exit_with_error(str(error))
    with gc_paused():
        from guarantee_email_agent.mcp_servers.dispatcher import serve
        from guarantee_email_agent.mcp_servers.ticketing.ticketing_tools import TicketingTools
    try:
        return serve(SERVER, TicketingTools(store).tools())
    finally:
        store.close()


if __name__ == "__main__":
    sys.exit(main())
