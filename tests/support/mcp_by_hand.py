"""Programs that speak MCP with nothing but the standard library, for agents under test."""

import json
import sys
import textwrap
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}

_PRELUDE = """
import json, os, sys, time, urllib.request
task = json.loads(sys.stdin.readline())
def call(server, tool, **arguments):
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    request = urllib.request.Request(task["mcp_servers"][server]["url"], json.dumps(body).encode(), headers)
    return json.loads(urllib.request.urlopen(request).read())["result"]
def send(to="customer@example.com", message_id="<1@example.com>", body="Hello", **more):
    return call("mail", "send_reply", to=to, subject="Re", body=body, message_id=message_id, **more)
"""


def write_program(folder: Path, body: str, name: str = "agent.py") -> str:
    """A command that runs `body`, which may `call` tools and `send` mails."""
    file = folder / name
    file.write_text(_PRELUDE + textwrap.dedent(body), encoding="utf-8")
    return f"{sys.executable} {file}"


def post(url: str, method: str, **params: Any) -> Any:
    """The result of one request."""
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    with urlopen(Request(url, json.dumps(body).encode(), HEADERS)) as response:
        return json.loads(response.read())["result"]
