"""A mail server of somebody else, with our tools' names: what it offers and how it answers is for a test to say.

    python mail_tools_server.py FOLDER

FOLDER/tools.json: the arguments of each tool. FOLDER/answers.json: the structured content that each gives; one with an
`error` is a failed call. Each call is added to FOLDER/calls.jsonl.
"""

# ruff: noqa: T201  # it is a program
from __future__ import annotations

import json
import sys
from pathlib import Path

FOLDER = Path(sys.argv[1])


def answer(method: str, params: dict) -> dict[str, object] | None:
    match method:
        case "initialize":
            return {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "somebody's", "version": "1"},
            }
        case "tools/list":
            tools = json.loads((FOLDER / "tools.json").read_text())
            return {"tools": [{"name": name, "inputSchema": schema(given)} for name, given in tools.items()]}
        case "tools/call":
            return call(params["name"], params.get("arguments", {}))
    return None


def schema(arguments: list[str]) -> dict[str, object]:
    return {"type": "object", "properties": {argument: {} for argument in arguments}}


def call(tool: str, given: dict) -> dict[str, object]:
    with (FOLDER / "calls.jsonl").open("a") as file:
        file.write(json.dumps({"tool": tool, "given": given}) + "\n")
    content = json.loads((FOLDER / "answers.json").read_text()).get(tool, {})
    return {"content": [], "structuredContent": content, "isError": "error" in content}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = answer(message["method"], message.get("params", {}))
        reply = {"result": result} if result else {"error": {"code": -32601, "message": "Method not found"}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **reply}), flush=True)
