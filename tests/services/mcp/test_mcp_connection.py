"""A session with an HTTP server that keeps sessions, and does what servers should not."""

import gzip
import json
import threading
from collections.abc import Iterator
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from mcp_sessions import Servers, failure
from waiting import PATIENCE_S

from guarantee_email_agent.services.mcp.mcp_session import McpSession
from guarantee_email_agent.services.mcp.server_launch import ServerLaunch
from guarantee_email_agent.utils.errors import MCPConnectionError

LIMIT = 10_000  # bytes of an answer
pytestmark = pytest.mark.anyio


class SessionServer(ThreadingHTTPServer):
    """Hands out session ids, and never answers when one is given back. Its tool `big` gives `size` letters."""

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.session_deleted = threading.Event()
        self.stopped = threading.Event()
        self.received: list[Message] = []
        """The headers of each request."""
        self.stream = False
        self.compressed = False
        self.silent_after = ""  # a method
        self.url = f"http://127.0.0.1:{self.server_address[1]}/mcp"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: SessionServer

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.received.append(self.headers)
        if "id" not in message:
            self._answer(202, b"")
            return
        if message["method"] == self.server.silent_after:
            self.server.stopped.wait()
        result = self._result(message["method"], message.get("params", {}))
        outcome = {"error": {"code": -32601, "message": "no"}} if result is None else {"result": result}
        self._answer(200, json.dumps({"jsonrpc": "2.0", "id": message["id"], **outcome}).encode())

    def do_GET(self) -> None:
        self._answer(405, b"")

    def do_DELETE(self) -> None:
        self.server.session_deleted.set()
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


@pytest.fixture
def session(servers: Servers, http: SessionServer) -> McpSession:
    return servers.session(ServerLaunch("mcp.x", url=http.url), max_answer_bytes=LIMIT, exit_grace_s=0.2)


async def big(session: McpSession, size: int) -> int:
    return len((await session.call("big", {"size": size}, PATIENCE_S))["raw"])


async def test_an_end_of_session_that_is_never_answered_is_not_waited_for(
    session: McpSession, http: SessionServer
) -> None:
    assert await big(session, 1) == 1
    await session.close()
    assert http.session_deleted.is_set()


async def test_nor_a_start_that_came_to_nothing(servers: Servers, http: SessionServer) -> None:
    http.silent_after = "tools/list"
    session = servers.session(ServerLaunch("mcp.x", url=http.url), exit_grace_s=0.2, start_timeout_s=0.5)
    with pytest.raises(MCPConnectionError, match=r"did not answer within 0\.5 s"):
        await session.list_tools()


@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_beyond_the_limit_is_malformed_and_ends_the_connection(
    session: McpSession, http: SessionServer, stream: bool
) -> None:
    http.stream = stream
    assert await big(session, LIMIT - 200) == LIMIT - 200
    error = await failure(big(session, LIMIT))
    assert error.code == "oracle_malformed"
    assert error.message == f"oracle: big: the server wrote a message of more than {LIMIT} bytes"
    assert error.uncertain
    assert await big(session, 1) == 1


async def test_nothing_is_decompressed_since_that_could_be_of_any_size(
    session: McpSession, http: SessionServer
) -> None:
    await session.list_tools()
    http.compressed = True
    await failure(big(session, 100 * LIMIT))
    assert {headers["Accept-Encoding"] for headers in http.received} == {"identity"}


async def test_every_request_bears_the_headers(servers: Servers, http: SessionServer) -> None:
    await servers.session(ServerLaunch("mcp.x", url=http.url, headers={"Authorization": "Bearer token"})).list_tools()
    assert {headers["Authorization"] for headers in http.received} == {"Bearer token"}


async def test_no_proxy_stands_before_this_machine(session: McpSession, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")  # nothing answers there
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    assert await big(session, 1) == 1


@pytest.mark.parametrize("value", ["half a character: \ud800", float("nan")])
async def test_a_call_that_cannot_be_written_is_not_sent_and_harms_no_other(
    session: McpSession, servers: Servers, value: object
) -> None:
    for each in (session, servers.session()):
        await each.list_tools()
        connection = each._connection
        error = await failure(each.call("big", {"size": 1, "other": value}, PATIENCE_S))
        assert error.code == "oracle_invalid_argument"
        assert (error.retryable, error.uncertain, error.outage) == (False, False, False)
        assert await big(each, 1) == 1
        assert each._connection is connection
