"""An MCP server in a few lines that does, when asked, what servers should not. Needs nothing but the interpreter.

    python stdio_server.py [HOW IT STARTS [FILE]]

Each call of the tool `effect` adds a line to FILE, whatever becomes of its answer.
"""

# ruff: noqa: T201  # it is a program
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

START = sys.argv[1] if len(sys.argv) > 1 else "well"
FILE = Path(sys.argv[2]) if len(sys.argv) > 2 else None
TOOLS = (
    "echo", "prose", "sleep", "die", "break_promise", "big", "endless", "rubbish", "say",
    "environment", "process", "effect", "spawn", "refuse",
    "odd_pattern", "odd_reference",
)  # fmt: skip


def write(message: object) -> None:
    print(json.dumps(message), flush=True)


def structured(content: object) -> dict[str, object]:
    return {"content": [], "structuredContent": content, "isError": False}


def prose(text: str, failed: bool = False) -> dict[str, object]:
    return {"content": [{"type": "text", "text": text}], "isError": failed}


def answer(tool: str, given: dict) -> dict[str, object]:
    match tool:
        case "echo":
            return structured({"said": given["text"]})
        case "prose":
            return prose(given["text"])
        case "sleep":
            time.sleep(given["seconds"])
            return structured({"slept": given["seconds"]})
        case "die":
            print(given.get("words", ""), file=sys.stderr, flush=True)
            os._exit(given.get("code", 7))
        case "break_promise":
            return structured({"promised": "no number"})
        case "big":
            return structured({"raw": "A" * given["size"]})
        case "endless":
            while True:
                sys.stdout.write("A" * 65_536)
        case "rubbish":
            sys.stdout.buffer.write(b"debug: \x1b[31m\xff\xfe\n{}\n[1]\n\n" + b'{"jsonrpc": "2.0"}\n')
            return structured({"said": "after rubbish"})
        case "say":
            print(given["words"], file=sys.stderr, flush=True)
            return structured({})
        case "environment":
            return structured(dict(os.environ))
        case "process":
            return structured({"pid": os.getpid(), "session": os.getsid(0)})
        case "odd_pattern" | "odd_reference":
            return structured({"id": "x"})
        case "spawn":
            child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
            return structured({"pid": child.pid})
        case "effect":
            with FILE.open("a") as file:
                file.write("done\n")
            return answer(given["then"], {"seconds": 600})
    return prose(f"unknown tool {tool}", failed=True)


def schema(tool: str) -> dict[str, object]:
    described: dict[str, object] = {"name": tool, "inputSchema": {"type": "object"}}
    if tool == "echo":
        described["inputSchema"] = {"type": "object", "properties": {"text": {"type": "string"}}}
    if tool == "break_promise":
        described["outputSchema"] = {"type": "object", "properties": {"promised": {"type": "number"}}}
    if tool == "odd_pattern":  # of JavaScript, which has sets that Python does not know
        described["outputSchema"] = {
            "type": "object",
            "properties": {"id": {"type": "string", "pattern": r"^[\p{L}]$"}},
        }
    if tool == "odd_reference":
        described["outputSchema"] = {"type": "object", "properties": {"id": {"$ref": "#/$defs/Missing"}}}
    return described


def result(method: str, params: dict) -> dict[str, object] | None:
    if method == "initialize":
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "test", "version": "1"},
        }
    if method == "tools/list":  # in pages, as servers with many tools do
        first = int(params.get("cursor", 0))
        page = {"tools": [schema(tool) for tool in TOOLS[first : first + 10]]}
        return page | ({"nextCursor": str(first + 10)} if first + 10 < len(TOOLS) else {})
    if method == "tools/call":
        return answer(params["name"], params.get("arguments", {}))
    return None


def main() -> None:
    if START == "exit":
        print("starting\nthe key file is missing\x1b[0m\n\n", file=sys.stderr, flush=True)
        sys.exit(3)
    if START == "hang":
        time.sleep(600)
    if START == "rubbish":
        sys.stdout.buffer.write(b"Welcome!\n\xff\xfe\x00\nlistening on port 8000\n")
        sys.stdout.buffer.flush()
    if START == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if START == "once" and FILE is not None:
        if FILE.exists():
            sys.exit(4)
        FILE.touch()
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        params = message.get("params", {})
        if params.get("name") == "refuse":
            write({"jsonrpc": "2.0", "id": message["id"], "error": params["arguments"]})
            continue
        found = result(message["method"], params)
        if found is None:
            write({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "Method not found"}})
        else:
            write({"jsonrpc": "2.0", "id": message["id"], "result": found})
    if START == "stubborn":
        time.sleep(600)


main()
