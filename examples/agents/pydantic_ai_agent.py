"""An agent for mail about orders, built with Pydantic AI."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from mcp import Client
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset

INSTRUCTIONS = Path(__file__).with_name("instructions.md").read_text(encoding="utf-8")


async def answer(task: dict[str, Any]) -> str:
    """What the model says at the end. task: the mail and the MCP servers, as `eval --agent` gives them."""
    email, servers = task["email"], task["mcp_servers"]
    # "failed": an error of the server is told to the model, which is to leave the mail to a person then.
    orders = MCPToolset(servers["orders"]["url"], tool_error_behavior="failed")
    agent = Agent("anthropic:claude-sonnet-4-6", instructions=INSTRUCTIONS, toolsets=[orders])

    @agent.tool_plain
    async def reply(text: str) -> str:
        """Send a reply to the customer."""
        arguments = {
            "to": email["from"],
            "subject": f"Re: {email['subject']}",
            "body": text,
            "message_id": f"<reply-{email['message_id']}@shop.example>",
        }
        async with Client(servers["mail"]["url"]) as mailbox:
            sent = await mailbox.call_tool("send_reply", arguments)
        return "not sent" if sent.is_error else "sent"

    mail = {key: email[key] for key in ("from", "subject", "body")}
    return (await agent.run(json.dumps(mail, ensure_ascii=False))).output


if __name__ == "__main__":
    print(json.dumps({"task_result": asyncio.run(answer(json.loads(sys.stdin.readline())))}))
