"""`mcp-server`: our own services for the MCP clients of others."""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path

from guarantee_email_agent.cli import arguments
from guarantee_email_agent.utils.distribution import require_extra
from guarantee_email_agent.utils.process import gc_paused

_EXIT_CODES = """\
  0    the client closed stdin, or SIGTERM came; calls in work were finished
  1    general failure
  2    bad usage, or what an option names is missing or bad
"""


def add_mcp_server(commands: arguments.Commands) -> None:
    parser = arguments.add_command(
        commands,
        "mcp-server",
        _run,
        purpose="serve our mailbox, warranty list, table or tickets to other MCP clients",
        description="Serve one of our own services to an MCP client, on stdin and stdout: a mailbox, a warranty list, "
        "any other table, or a ticket database. 'mcp-server NAME --help' lists its options.",
        exit_codes=_EXIT_CODES,
    )
    parser.add_argument("server", choices=("mail", "warranty", "table", "ticketing"), help="which one")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="OPTION", help="the server's own options")
    parser.set_defaults(json_file=Path("-"))  # as for a report on stdout: nothing else goes there


def _run(options: argparse.Namespace) -> int:
    require_extra("mcp", "mcp-server", "mcp", "pydantic")
    with gc_paused():
        server = importlib.import_module(f"guarantee_email_agent.mcp_servers.{options.server}")
    code: int = server.main(options.arguments)
    return code
