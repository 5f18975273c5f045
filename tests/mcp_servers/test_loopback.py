import asyncio
import logging
import threading
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from mcp_by_hand import HEADERS, post
from mcp_types import CallToolResult, Tool

from guarantee_email_agent.mcp_servers.loopback import LoopbackServer


class Tools:
    """`echo` answers its arguments; `hang` never does."""

    def __init__(self) -> None:
        self.too_large = 0
        self.hanging = threading.Event()

    def declarations(self) -> list[Tool]:
        return [Tool(name="echo", input_schema={"type": "object"})]

    async def dispatch(self, tool_name: str, arguments: Mapping[str, Any]) -> CallToolResult:
        if tool_name == "hang":
            self.hanging.set()
            await asyncio.Event().wait()
        return CallToolResult(content=[], structured_content=dict(arguments))

    async def drain(self) -> None:
        return

    def refused_too_large(self) -> None:
        self.too_large += 1


@pytest.fixture(scope="module")
def server() -> Iterator[LoopbackServer]:
    server = LoopbackServer(100_000)
    server.start()
    yield server
    server.stop()


def status_of(url: str, data: bytes | None = b"{}", **headers: str) -> int:
    with pytest.raises(HTTPError) as caught:
        urlopen(Request(url, data, {**HEADERS, **headers}))
    with caught.value as error:
        return error.code


def test_a_published_server_lists_and_calls_its_tools(server: LoopbackServer) -> None:
    urls = server.publish({"one": Tools(), "two": Tools()})
    assert [tool["name"] for tool in post(urls["two"], "tools/list")["tools"]] == ["echo"]
    assert post(urls["one"], "tools/call", name="echo", arguments={"a": 1})["structuredContent"] == {"a": 1}
    server.withdraw(urls)


def test_only_the_whole_path_leads_to_it(server: LoopbackServer) -> None:
    urls = server.publish({"one": Tools()})
    token = urls["one"].split("/")[3]
    assert len(token) == 32
    for wrong in (urls["one"][:-1], urls["one"].replace("one", "two"), urls["one"].replace(token, token[:-1] + "~")):
        assert status_of(wrong) == 404
    assert status_of(urls["one"], None) == 405
    server.withdraw(urls)


def test_a_withdrawn_server_is_gone_and_calls_that_hang_are_cut_off(server: LoopbackServer) -> None:
    tools = Tools()
    urls, others = server.publish({"one": tools}), server.publish({"one": Tools()})
    failed = threading.Event()

    def call() -> None:
        with pytest.raises(OSError):
            post(urls["one"], "tools/call", name="hang", arguments={})
        failed.set()

    thread = threading.Thread(target=call)
    thread.start()
    assert tools.hanging.wait(10)
    server.withdraw(urls)
    thread.join(10)
    assert failed.is_set()
    assert status_of(urls["one"]) == 404
    assert post(others["one"], "tools/list")["tools"]
    server.withdraw(others)


def test_a_request_over_the_limit_is_refused_and_told_of(server: LoopbackServer) -> None:
    tools = Tools()
    urls = server.publish({"one": tools})
    assert status_of(urls["one"], b" " * 200_000) == 413
    assert tools.too_large == 1
    server.withdraw(urls)


def test_another_host_name_is_refused(server: LoopbackServer) -> None:
    """So that a page in a browser cannot reach it by a name that resolves to this machine."""
    urls = server.publish({"one": Tools()})
    assert status_of(urls["one"], Host="evil.example") == 421
    server.withdraw(urls)


def test_what_libraries_log_of_its_requests_is_dropped_and_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    libraries = ("mcp", "uvicorn", "sse_starlette")
    for name in (None, *libraries):
        caplog.set_level(logging.DEBUG, name)
    server = LoopbackServer(100_000)
    server.start()
    post(server.publish({"one": Tools()})["one"], "tools/call", name="echo", arguments={"a": "a customer's words"})
    logging.getLogger("mcp.client").warning("the caller's own")
    logging.getLogger("uvicorn.error").warning("of another server")
    server.stop()
    told = [record for record in caplog.records if record.name.partition(".")[0] in ("mcp", "uvicorn")]
    assert [record.getMessage() for record in told] == ["the caller's own", "of another server"]
    assert [logging.getLogger(name).level for name in libraries] == [logging.DEBUG] * 3
    assert [server._is_logged in logging.getLogger(name).filters for name in libraries] == [False] * 3
