"""An MCP server that does what a file says, which may change while it runs. Needs nothing but the interpreter.

    python scripted_tools.py FILE

FILE holds `{"tools": [as in tools/list], "answers": {tool: of tools/call, an error, null for none}, "notify": bool}`.
Each call is a line of FILE.calls. notify: it says before each answer that its tools changed. With `later`, which is the
same once more, that holds from the second call on.
"""

# ruff: noqa: T201  # it is a program
import json
import sys
from pathlib import Path

FILE = Path(sys.argv[1])
CALLS = Path(f"{FILE}.calls")


def write(message: object) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    script = json.loads(FILE.read_text())
    if CALLS.exists():
        script = script.get("later", script)
    params = message.get("params", {})
    match message["method"]:
        case "initialize":
            answer = {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {"listChanged": True}},
                "serverInfo": {"name": "test", "version": "1"},
            }
        case "tools/list":
            names = [each["name"] for each in script["tools"]]
            answer = {"tools": script["tools"], **({"nextCursor": "more"} if "endless" in names else {})}
        case "tools/call":
            with CALLS.open("a") as calls:
                calls.write(json.dumps([params["name"], params.get("arguments")]) + "\n")
            if script.get("notify"):
                write({"method": "notifications/tools/list_changed"})
            unknown = {"content": [{"type": "text", "text": f"Tool {params['name']} not found"}], "isError": True}
            answer = script["answers"].get(params["name"], unknown)
            if answer is None:
                continue
            if "code" in answer:
                write({"id": message["id"], "error": answer})
                continue
        case _:
            write({"id": message["id"], "error": {"code": -32601, "message": "Method not found"}})
            continue
    write({"id": message["id"], "result": answer})
