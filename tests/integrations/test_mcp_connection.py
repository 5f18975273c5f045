"""A session with an HTTP server that keeps sessions, and does what servers should not."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from mcp_sessions import PATIENCE_S, Servers

from guarantee_email_agent.integrations.server_launch import ServerLaunch
from guarantee_email_agent.utils.errors import IntegrationError, MCPConnectionError

LIMIT = 10_000  # bytes of an answer
pytestmark = pytest.mark.anyio


class SessionServer(ThreadingHTTPServer):
    """Hands out session ids, and never answers when one is given back. Its tool `big` gives `size` letters."""

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.taking_leave = threading.Event()
        self.stopped = threading.Event()
        self.accepted: list[str | None] = []
        self.stream = False
        self.compressed = False
        self.silent_after = ""  # a method
        self.url = f"http://127.0.0.1:{self.server_address[1]}/mcp"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: SessionServer

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.accepted.append(self.headers["Accept-Encoding"])
        if "id" not in message:
            self._answer(202, b"")
            return
        if message["method"] == self.server.silent_after:
            self.server.stopped.wait()
        result = self._result(message["method"], message.get("params", {}))
        told = {"error": {"code": -32601, "message": "no"}} if result is None else {"result": result}
        self._answer(200, json.dumps({"jsonrpc": "2.0", "id": message["id"], **told}).encode())

    def do_GET(self) -> None:
        self._answer(405, b"")

    def do_DELETE(self) -> None:
        self.server.taking_leave.set()
        self.server.stopped.wait()

    def _result(self, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        match method:
            case "initialize":
                version = {"name": "test", "version": "1"}
                return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": version}
            case "tools/list":
                return {"tools": [{"name": "big", "inputSchema": {"type": "object"}}]}
            case "tools/call":
                return {"content": [], "structuredContent": {"raw": "A" * params["arguments"]["size"]}}
        return None

    def _answer(self, status: int, body: bytes) -> None:
        kind = "application/json"
        if self.server.stream and status == 200:
            kind, body = "text/event-stream", b"event: message\ndata: " + body + b"\n\n"
        self.send_response(status)
        if self.server.compressed:
            body = gzip.compress(body)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Mcp-Session-Id", "one")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def http() -> Iterator[SessionServer]:
    with SessionServer() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server
        server.stopped.set()
        server.shutdown()
        thread.join()


def session(servers: Servers, http: SessionServer, **settings: Any) -> Any:
    return servers.session(ServerLaunch("mcp.x", url=http.url), max_answer_bytes=LIMIT, exit_grace_s=0.2, **settings)


async def big(asked: Any, size: int) -> int:
    return len((await asked.call("big", {"size": size}, PATIENCE_S))["raw"])


async def test_a_leave_taking_that_is_never_answered_keeps_nobody(servers: Servers, http: SessionServer) -> None:
    asked = session(servers, http)
    assert await big(asked, 1) == 1
    await asked.close()
    assert http.taking_leave.is_set()


async def test_nor_does_it_keep_a_new_start(servers: Servers, http: SessionServer) -> None:
    asked = session(servers, http)
    await big(asked, 1)
    asked._connection.end()
    assert await big(asked, 2) == 2
    assert http.taking_leave.is_set()


async def test_nor_a_start_that_came_to_nothing(servers: Servers, http: SessionServer) -> None:
    http.silent_after = "tools/list"

    with pytest.raises(MCPConnectionError, match=r"did not answer within 0\.5 s"):
        await session(servers, http, start_timeout_s=0.5).start()


@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_beyond_the_limit_is_malformed_and_ends_the_connection(
    servers: Servers, http: SessionServer, stream: bool
) -> None:
    http.stream = stream

    asked = session(servers, http)
    assert await big(asked, LIMIT - 200) == LIMIT - 200
    with pytest.raises(IntegrationError) as caught:
        await big(asked, LIMIT)
    assert caught.value.code == "oracle_malformed"
    assert caught.value.message == f"oracle: big: the server wrote a message of more than {LIMIT} bytes"
    assert caught.value.details["uncertain"]
    assert await big(asked, 1) == 1


async def test_nothing_is_decompressed_since_that_could_be_of_any_size(servers: Servers, http: SessionServer) -> None:
    asked = session(servers, http)
    await asked.start()
    http.compressed = True
    with pytest.raises(IntegrationError):
        await big(asked, 100 * LIMIT)
    assert set(http.accepted) == {"identity"}


@pytest.mark.parametrize("value", ["half a character: \ud800", float("nan")])
async def test_a_call_that_cannot_be_written_is_not_sent_and_harms_no_other(
    servers: Servers, http: SessionServer, value: object
) -> None:
    for asked in (session(servers, http), servers.session()):
        await asked.start()
        connection = asked._connection
        with pytest.raises(IntegrationError) as caught:
            await asked.call("big", {"size": 1, "other": value}, PATIENCE_S)
        assert caught.value.code == "oracle_invalid_argument"
        assert caught.value.details == {"retryable": False, "uncertain": False, "outage": False}
        assert await big(asked, 1) == 1
        assert asked._connection is connection
