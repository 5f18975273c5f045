"""The protocol without a process: lines in, lines out."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp import Client, StdioServerParameters, stdio_client

from guarantee_email_agent.mcp_servers.messages import ToolDeclaration, ToolResult, structured_result
from guarantee_email_agent.mcp_servers.protocol import ServerSession

CLIENT = {"name": "test", "version": "1"}
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": CLIENT,
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Tools:
    """`echo` answers its arguments, once it may."""

    def __init__(self) -> None:
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    def declarations(self) -> list[ToolDeclaration]:
        return [ToolDeclaration("echo", "Says it again.", {"type": "object"})]

    async def dispatch(self, tool_name: str, arguments: Mapping[str, Any]) -> ToolResult:
        await self.may_answer.wait()
        return structured_result(arguments)


class Conversation:
    def __init__(self) -> None:
        self.tools = Tools()
        self.answers: list[dict[str, Any]] = []
        self.session = ServerSession("test", self.tools, lambda line: self.answers.append(json.loads(line)), "Be kind.")

    def say(self, method: str, identity: object = None, **params: Any) -> None:
        has_id = {} if identity is None else {"id": identity}
        self.session.receive(json.dumps({"jsonrpc": "2.0", **has_id, "method": method, "params": params}).encode())

    def initialize(self, version: str = "2025-11-25") -> None:
        self.say("initialize", 0, protocolVersion=version, capabilities={}, clientInfo=CLIENT)

    def ask(self, method: str, identity: object = 1, **params: Any) -> dict[str, Any]:
        """The result, or the error."""
        self.say(method, identity, **params)
        answer = self.answers[-1]
        assert (answer["jsonrpc"], answer["id"]) == ("2.0", identity)
        return dict(answer["result"] if "result" in answer else answer["error"])


@pytest.fixture
def talk() -> Conversation:
    return Conversation()


pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("asked", "agreed"),
    [("2024-11-05", "2024-11-05"), ("2025-06-18", "2025-06-18"), ("2026-07-28", "2025-11-25"), ("1", "2025-11-25")],
)
async def test_a_handshake_agrees_on_the_clients_version_or_our_latest(
    talk: Conversation, asked: str, agreed: str
) -> None:
    talk.initialize(asked)
    assert talk.answers[-1]["result"] == {
        "protocolVersion": agreed,
        "serverInfo": {"name": "test", "version": talk.session._info["version"]},
        "capabilities": {"tools": {"listChanged": False}},
        "instructions": "Be kind.",
    }


async def test_tools_are_listed_and_called_after_a_handshake(talk: Conversation) -> None:
    talk.initialize()
    tools = [{"name": "echo", "description": "Says it again.", "inputSchema": {"type": "object"}}]
    assert talk.ask("tools/list") == {"tools": tools}
    talk.say("tools/call", "a", name="echo", arguments={"text": "Grüße"})
    await talk.session.finish()
    content = [{"type": "text", "text": '{"text":"Grüße"}'}]
    result = {"content": content, "isError": False, "structuredContent": {"text": "Grüße"}}
    assert talk.answers[-1] == {"jsonrpc": "2.0", "id": "a", "result": result}


async def test_without_a_handshake_each_request_brings_what_it_takes_for_granted(talk: Conversation) -> None:
    about = talk.ask("server/discover", _meta=ENVELOPE)
    assert about["supportedVersions"] == ["2026-07-28"]
    listed = talk.ask("tools/list", _meta=ENVELOPE)
    assert (listed["resultType"], listed["ttlMs"], listed["tools"][0]["name"]) == ("complete", 0, "echo")
    talk.say("tools/call", 2, name="echo", arguments={}, _meta=ENVELOPE)
    await talk.session.finish()
    assert talk.answers[-1]["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "test"


async def test_an_envelope_names_a_version_that_we_know(talk: Conversation) -> None:
    unknown = {**ENVELOPE, "io.modelcontextprotocol/protocolVersion": "2099-01-01"}
    refused = talk.ask("server/discover", _meta=unknown)
    assert (refused["code"], refused["data"]) == (-32022, {"supported": ["2026-07-28"], "requested": "2099-01-01"})


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("tools/list", {}, -32602),  # an envelope, once one was sent
        ("tools/list", {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}, -32602),
        ("tools/list", {"_meta": {**ENVELOPE, "io.modelcontextprotocol/clientInfo": "me"}}, -32602),
        ("ping", {"_meta": ENVELOPE}, -32601),
        ("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": CLIENT}, -32022),
    ],
)
async def test_a_connection_with_envelopes_takes_nothing_else(
    talk: Conversation, method: str, params: dict[str, Any], code: int
) -> None:
    talk.ask("server/discover", _meta=ENVELOPE)
    assert talk.ask(method, **params)["code"] == code


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("tools/list", {"_meta": ENVELOPE}, -32600),
        ("tools/list", {"cursor": "next"}, -32602),
        ("tools/call", {}, -32602),
        ("tools/call", {"name": "echo", "arguments": ["a"]}, -32602),
        ("prompts/list", {}, -32601),
        ("initialize", {"protocolVersion": 3}, -32602),
    ],
)
async def test_what_does_not_belong_on_a_connection_with_a_handshake(
    talk: Conversation, method: str, params: dict[str, Any], code: int
) -> None:
    talk.initialize()
    assert talk.ask(method, **params)["code"] == code


async def test_before_a_handshake_only_ping_is_answered(talk: Conversation) -> None:
    assert talk.ask("tools/list")["code"] == -32602
    assert talk.ask("ping") == {}


async def test_two_calls_at_a_time_cannot_have_one_id(talk: Conversation) -> None:
    talk.initialize()
    talk.tools.may_answer.clear()
    talk.say("tools/call", 7, name="echo", arguments={"call": 1})
    assert talk.ask("tools/call", 7, name="echo")["code"] == -32600
    talk.tools.may_answer.set()
    await talk.session.finish()
    assert talk.answers[-1]["result"]["structuredContent"] == {"call": 1}


async def test_a_call_that_was_cancelled_gets_no_answer(talk: Conversation) -> None:
    talk.initialize()
    talk.tools.may_answer.clear()
    talk.say("tools/call", 7, name="echo")
    talk.say("notifications/cancelled", requestId=8)
    talk.say("notifications/cancelled", requestId=7)
    await talk.session.finish()
    assert [answer["id"] for answer in talk.answers] == [0]


VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.integers(), max_size=2)
METHODS = st.sampled_from(
    ["initialize", "tools/list", "tools/call", "server/discover", "ping", "notifications/cancelled"]
)


@given(
    st.lists(
        st.binary(max_size=20)
        | st.fixed_dictionaries(
            {"jsonrpc": st.just("2.0"), "method": METHODS},
            optional={"id": VALUES, "params": VALUES | st.dictionaries(st.sampled_from(["_meta", "name"]), VALUES)},
        ).map(lambda message: json.dumps(message).encode()),
        max_size=6,
    )
)
def test_whatever_comes_is_answered_once_or_not_at_all(lines: list[bytes]) -> None:
    async def converse() -> None:
        talk = Conversation()
        for number, line in enumerate(lines, 1):
            talk.session.receive(line)
            await talk.session.finish()
            assert len(talk.answers) <= number

    asyncio.run(converse())


async def test_the_official_client_speaks_its_newest_version_with_a_server_of_ours(tmp_path: Path) -> None:
    table = tmp_path / "warranties.csv"
    table.write_text("serial_number,expiration_date\nSN12345,2099-12-31\n")
    arguments = ["-m", "guarantee_email_agent.mcp_servers.warranty", "--file", str(table)]
    server = stdio_client(StdioServerParameters(command=sys.executable, args=arguments))
    async with Client(server) as client:
        assert client.protocol_version == "2026-07-28"
        assert [tool.name for tool in (await client.list_tools()).tools] == ["check_warranty"]
        result = await client.call_tool("check_warranty", {"serial_number": "SN12345"})
    assert result.structured_content is not None
    assert result.structured_content["status"] == "valid"
