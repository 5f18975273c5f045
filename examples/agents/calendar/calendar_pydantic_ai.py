"""An agent that books meetings, built with Pydantic AI: the MCP server is its toolset, and a model decides."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset

INSTRUCTIONS = (
    "Book the meeting in the first slot that is free; where somebody was faster, in the next one. Answer in JSON: "
    '{"state": "booked", "start": …, "id": …}, or {"state": "failed", "why": …}. Never guess what a tool did not say.'
)


async def answer(given: dict[str, Any]) -> str:
    """What the model says at the end. given: the task and the MCP servers, as `eval --agent` gives them."""
    # "failed": an error of the server is told to the model.
    calendar = MCPToolset(given["mcp_servers"]["calendar"]["url"], tool_error_behavior="failed")
    agent = Agent("anthropic:claude-sonnet-4-6", instructions=INSTRUCTIONS, toolsets=[calendar])
    return (await agent.run(json.dumps(given["task"]))).output


if __name__ == "__main__":
    print(json.dumps({"task_result": asyncio.run(answer(json.loads(sys.stdin.readline())))}))
