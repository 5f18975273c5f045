"""A session with a real server over streamable HTTP on loopback."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from mcp_sessions import Servers, failure
from waiting import PATIENCE_S

from guarantee_email_agent.services.call_errors import forbid_repeat
from guarantee_email_agent.services.mcp.mcp_session import McpSession
from guarantee_email_agent.services.mcp.server_launch import ServerLaunch
from guarantee_email_agent.utils.errors import IntegrationError, MCPConnectionError

SERVER = Path(__file__).parent / "http_server.py"
pytestmark = [pytest.mark.anyio, pytest.mark.slow]


class HttpServer:
    """One server on a port of its own, which it keeps when it is started anew."""

    def __init__(self, mode: str) -> None:
        self._mode = mode
        self._port = "0"
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/mcp"

    def start(self) -> None:
        command = [sys.executable, str(SERVER), self._mode, self._port]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self._port = self._process.stdout.readline().strip()
        assert self._port

    def stop(self) -> None:
        with self._process:
            self._process.kill()


@pytest.fixture(scope="module", params=["stream", "json"])
def http(request: pytest.FixtureRequest) -> Iterator[HttpServer]:
    """For all tests that leave it as it is."""
    server = HttpServer(request.param)
    yield server
    server.stop()


@pytest.fixture
def own_http() -> Iterator[HttpServer]:
    """For one test alone."""
    server = HttpServer("stream")
    yield server
    server.stop()


@pytest.fixture
def session(servers: Servers, http: HttpServer) -> McpSession:
    return servers.session(ServerLaunch("mcp.x", url=http.url))


async def test_calls_are_answered(session: McpSession) -> None:
    answers = await asyncio.gather(*(session.call("echo", {"text": f"n{n}"}, PATIENCE_S) for n in range(20)))
    assert [answer["said"] for answer in answers] == [f"n{n}" for n in range(20)]


@pytest.mark.parametrize(
    ("status", "code", "retryable"), [(401, "oracle_auth", False), (503, "oracle_unavailable", True)]
)
async def test_a_status_tells_what_kind_of_failure_it_is(
    status: int, code: str, retryable: bool, session: McpSession
) -> None:
    works = asyncio.create_task(session.call("echo", {"text": "fine"}, PATIENCE_S))
    error = await failure(session.call("echo", {"text": str(status)}, PATIENCE_S))
    assert error.code == code
    assert error.retryable is retryable
    assert await works == {"said": "fine"}


@pytest.mark.parametrize(
    "told", ["404", "400: Bad Request: No valid session ID provided", "400: Bad Request: Server not initialized"]
)
async def test_a_server_that_forgot_the_session_is_asked_for_a_new_one(session: McpSession, told: str) -> None:
    error = await failure(session.call("echo", {"text": told}, PATIENCE_S))
    assert error.code == "oracle_unavailable"
    assert (error.retryable, error.uncertain, error.outage) == (True, False, True)
    assert await session.call("echo", {"text": "x"}, PATIENCE_S) == {"said": "x"}


async def test_another_error_with_status_400_is_one_of_the_call(session: McpSession) -> None:
    error = await failure(session.call("echo", {"text": "400: too long for a session of yours"}, PATIENCE_S))
    assert error.code == "oracle_failed"


async def test_a_server_that_went_away_is_found_again(servers: Servers, own_http: HttpServer) -> None:
    session = servers.session(ServerLaunch("mcp.x", url=own_http.url))
    first = (await session.call("about", {}, PATIENCE_S))["pid"]
    os.kill(first, signal.SIGKILL)
    own_http.stop()
    for _ in range(2):
        error = await failure(session.call("echo", {"text": "x"}, PATIENCE_S))
        assert error.code == "oracle_unavailable"
        assert error.retryable
    own_http.start()
    await servers.clock.sleep(60)
    assert (await session.call("about", {}, PATIENCE_S))["pid"] != first


async def test_one_that_dies_in_a_call_leaves_it_uncertain(servers: Servers, own_http: HttpServer) -> None:
    session = servers.session(ServerLaunch("mcp.x", url=own_http.url))
    with pytest.raises(IntegrationError) as caught, forbid_repeat():
        await session.call("die", {}, PATIENCE_S)
    assert caught.value.uncertain
    assert not caught.value.retryable


async def test_a_url_where_nothing_answers_is_a_failed_start(servers: Servers) -> None:
    # Port 9, "discard", is free on any machine that is not older than this protocol.
    session = servers.session(ServerLaunch("mcp.warranty_api", url="http://127.0.0.1:9/mcp"))
    with pytest.raises(MCPConnectionError) as caught:
        await session.list_tools()
    assert caught.value.message.startswith("oracle: no MCP server answers (")
    assert caught.value.message.endswith("Correct mcp.warranty_api, or what it needs; asked: http://127.0.0.1:9/mcp")
