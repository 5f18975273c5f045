"""An agent that books meetings: a task in, calls of an MCP server named calendar, an answer out. No mail, no model.

It is started once for each task, reads it from stdin, and prints its answer as the last line.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from typing import Any

from mcp import Client, MCPError


async def work(task: Mapping[str, Any], calendar: Client) -> dict[str, Any]:
    """The first slot that is free and stays so; the calendar may be faster than we are."""
    asked = {"day": task["day"], "minutes": task["minutes"]}
    free = await calendar.call_tool("free_slots", asked)
    if free.is_error or free.structured_content is None:
        return {"state": "failed", "why": "the calendar does not answer"}
    for start in free.structured_content["slots"]:
        booked = await calendar.call_tool("book", {**asked, "start": start, "title": task["title"]})
        if not booked.is_error and booked.structured_content is not None:
            return {"state": "booked", "start": start, "id": booked.structured_content["id"]}
    return {"state": "failed", "why": "no slot is free"}


async def answer(given: Mapping[str, Any]) -> dict[str, Any]:
    """given: the task and the MCP servers, as `eval --agent` gives them."""
    try:
        async with Client(given["mcp_servers"]["calendar"]["url"]) as calendar:
            return {"task_result": await work(given["task"], calendar)}
    except MCPError as error:
        return {"task_result": {"state": "failed", "why": str(error)}}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(answer(json.loads(sys.stdin.readline())))))
