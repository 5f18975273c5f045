"""Starts a server, tells its process number, and then ends in one of several ways without closing anything.

    python careless_agent.py return|interrupt|kill
    python careless_agent.py stop FOLDER

stop: it begins to close while a call is in work (FOLDER/begun), and is interrupted in that.
"""

# ruff: noqa: T201  # it is a program
from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from guarantee_email_agent.services.mcp.mcp_session import McpSession
from guarantee_email_agent.services.mcp.server_launch import ServerLaunch, common_environment
from guarantee_email_agent.utils.clock import SystemClock


async def main(end: str) -> None:
    server = str(Path(__file__).parent / "stdio_server.py")
    built_in = end == "stop"
    launch = ServerLaunch("mcp.test", sys.executable, (server,), common_environment(os.environ), built_in=built_in)
    session = McpSession("oracle", launch, SystemClock())
    print((await session.call("process", {}, 30.0))["pid"], flush=True)
    if end == "stop":
        files = {name: str(Path(sys.argv[2]) / name) for name in ("begun", "may_end", "done")}
        call = asyncio.create_task(session.call("finish", files, 30.0))
        while not Path(files["begun"]).exists():
            await asyncio.sleep(0.01)
        closing = asyncio.create_task(session.close())
        for _ in range(20):  # until the server's input is closed; the end of `main` cancels the rest
            await asyncio.sleep(0)
        assert not call.cancelled()
        assert not closing.done()
    elif end != "return":
        await session.call("sleep", {"seconds": 1}, 30.0)


asyncio.run(main(sys.argv[1]))
