"""Starts a server, tells its process number, and then ends in one of several ways without closing anything.

python careless_agent.py return|interrupt|kill
"""

# ruff: noqa: T201  # it is a program
import asyncio
import os
import sys
from pathlib import Path

from guarantee_email_agent.services.mcp.mcp_session import McpSession
from guarantee_email_agent.services.mcp.server_launch import ServerLaunch, common_environment


async def main(end: str) -> None:
    server = str(Path(__file__).parent / "stdio_server.py")
    launch = ServerLaunch("mcp.test", sys.executable, (server,), common_environment(os.environ))
    session = McpSession("oracle", launch)
    print((await session.call("process", {}, 30.0))["pid"], flush=True)
    if end != "return":
        await session.call("sleep", {"seconds": 1}, 30.0)


asyncio.run(main(sys.argv[1]))
