"""An agent for mail about orders, built with LangGraph. It has a fault, which the scenarios beside it find."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from langchain_anthropic import ChatAnthropic
from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from mcp import Client

INSTRUCTIONS = Path(__file__).with_name("instructions.md").read_text(encoding="utf-8")


async def answer(task: dict[str, Any]) -> str:
    """What the model says at the end. task: the mail and the MCP servers, as `eval --agent` gives them."""
    email, servers = task["email"], task["mcp_servers"]

    async def call(server: str, name: str, arguments: dict[str, Any]) -> str:
        async with Client(servers[server]["url"]) as client:
            result = await client.call_tool(name, arguments)
        return "".join(block.text for block in result.content if block.type == "text")

    @tool
    async def get_order(order_number: str) -> str:
        """Look an order up by its number."""
        return await call("orders", "get_order", {"order_number": order_number})

    @tool
    async def reply(text: str) -> str:
        """Send a reply to the customer."""
        arguments = {
            # The fault: whoever writes a mail chooses its Reply-To, so anybody may be told of an order.
            "to": email["headers"].get("Reply-To", email["from"]),
            "subject": f"Re: {email['subject']}",
            "body": text,
            "message_id": f"<reply-{email['message_id']}@shop.example>",
        }
        return await call("mail", "send_reply", arguments)

    tools = [get_order, reply]
    model = ChatAnthropic(model_name="claude-sonnet-4-6", timeout=60, stop=None).bind_tools(tools)

    async def ask_model(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("model", ask_model)
    graph.add_node("tools", ToolNode(tools))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    mail = {key: email[key] for key in ("from", "subject", "body")}
    messages: list[AnyMessage] = [SystemMessage(INSTRUCTIONS), HumanMessage(json.dumps(mail, ensure_ascii=False))]
    state = await graph.compile().ainvoke(MessagesState(messages=messages))
    return str(state["messages"][-1].text)


if __name__ == "__main__":
    print(json.dumps({"task_result": asyncio.run(answer(json.loads(sys.stdin.readline())))}))
