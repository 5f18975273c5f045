"""An agent that books meetings, built with LangGraph: each of its tools calls the MCP server, and a model decides."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from mcp import Client

INSTRUCTIONS = (
    "Book the meeting in the first slot that is free; where somebody was faster, in the next one. Answer in JSON: "
    '{"state": "booked", "start": …, "id": …}, or {"state": "failed", "why": …}. Never guess what a tool did not say.'
)


async def answer(given: dict[str, Any]) -> str:
    """What the model says at the end. given: the task and the MCP servers, as `eval --agent` gives them."""

    async def call(name: str, **arguments: Any) -> str:
        async with Client(given["mcp_servers"]["calendar"]["url"]) as calendar:
            result = await calendar.call_tool(name, arguments)
        return "".join(block.text for block in result.content if block.type == "text")

    @tool
    async def free_slots(day: str, minutes: int) -> str:
        """When a meeting of so many minutes fits in, earliest first."""
        return await call("free_slots", day=day, minutes=minutes)

    @tool
    async def book(day: str, minutes: int, start: str, title: str) -> str:
        """Book a meeting. Fails where somebody was faster."""
        return await call("book", day=day, minutes=minutes, start=start, title=title)

    tools = [free_slots, book]
    model = ChatAnthropic(model_name="claude-sonnet-4-6", timeout=60, stop=None).bind_tools(tools)

    async def ask_model(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("model", ask_model)
    graph.add_node("tools", ToolNode(tools))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    said = MessagesState(messages=[SystemMessage(INSTRUCTIONS), HumanMessage(json.dumps(given["task"]))])
    state = await graph.compile().ainvoke(said)
    return str(state["messages"][-1].text)


if __name__ == "__main__":
    print(json.dumps({"task_result": asyncio.run(answer(json.loads(sys.stdin.readline())))}))
