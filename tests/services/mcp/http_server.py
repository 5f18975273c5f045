"""An MCP server over streamable HTTP on loopback, made with the SDK.

    python http_server.py MODE PORT

It prints its port, a free one for port 0. MODE: `stream` or `json`, the two forms of an answer. A request whose text is
a number from 400 to 599 is answered with that HTTP status; one that begins with "400: " with 400 and a JSON-RPC error.
"""

# ruff: noqa: T201  # it is a program
import json
import os
import re
import socket
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import uvicorn
from mcp.server.mcpserver import MCPServer

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

server = MCPServer("http-test", log_level="CRITICAL")


@server.tool()
def echo(text: str) -> dict[str, str]:
    return {"said": text}


@server.tool()
def about() -> dict[str, Any]:
    return {"pid": os.getpid()}


@server.tool()
def die() -> dict[str, str]:
    os._exit(1)


class Gate:
    """Answers in the application's place where a request asks for a status."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        if (told := re.search(rb'"text": ?"400: ([^"]*)"', body)) is not None:
            error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": told[1].decode()}}
            headers = [(b"content-type", b"application/json")]
            await send({"type": "http.response.start", "status": 400, "headers": headers})
            await send({"type": "http.response.body", "body": json.dumps(error).encode()})
            return
        for status in range(400, 600):
            if b'"text":"%d"' % status in body.replace(b" ", b""):
                await send({"type": "http.response.start", "status": status, "headers": []})
                await send({"type": "http.response.body", "body": b"no"})
                return
        messages = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def again() -> MutableMapping[str, Any]:
            return next(messages, None) or await receive()

        await self._app(scope, again, send)


def main() -> None:
    app = Gate(server.streamable_http_app(json_response=sys.argv[1] == "json"))
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", int(sys.argv[2])))
    listener.listen()
    print(listener.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="critical")).run(sockets=[listener])


if __name__ == "__main__":
    main()
