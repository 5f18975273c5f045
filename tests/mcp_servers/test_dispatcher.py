"""What all our servers do alike, and tell of their arguments, asked by the official SDK's client in memory."""

import asyncio
import math
import threading
from datetime import date
from typing import Annotated, Any, Literal, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp import Client
from mcp_calls import CallError, call, in_memory
from pydantic import Field, ValidationError

from guarantee_email_agent.mcp_servers import server
from guarantee_email_agent.mcp_servers.mailbox_tools import MailboxTools
from guarantee_email_agent.mcp_servers.server import (
    Dispatcher,
    ServerTool,
    ToolArguments,
    ToolOutput,
    format_problems,
    in_thread,
)
from guarantee_email_agent.mcp_servers.table import TableTools
from guarantee_email_agent.mcp_servers.ticketing import TicketingTools
from guarantee_email_agent.mcp_servers.warranty import WarrantyTools
from guarantee_email_agent.services.call_errors import ToolError
from guarantee_email_agent.services.mail.maildir import Maildir

pytestmark = pytest.mark.anyio


class SampleArguments(ToolArguments):
    name: str = Field(min_length=2, max_length=5)
    kind: Literal["a", "b"] = "a"
    count: int = Field(3, ge=1, le=9)
    seconds: float = 0
    headers: dict[str, Annotated[str, Field(max_length=3)]] = Field({})


def problems(arguments: dict[str, Any]) -> str:
    with pytest.raises(ValidationError) as caught:
        SampleArguments.model_validate(arguments)
    return format_problems(caught.value, SampleArguments)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"name": "abcdef"}, "'name': String should have at most 5 characters"),
        ({"count": "2"}, "'count': Input should be a valid integer"),
        ({"seconds": math.nan}, "'seconds': Input should be a finite number"),
        ({"headers": {"X-A": 1}}, "'headers'['X-A']: Input should be a valid string"),
        ({"nmae": "x"}, "unknown argument 'nmae'; its arguments are name, kind, count, seconds, headers"),
        ({"kind": "c", "count": 0}, "'kind': Input should be 'a' or 'b'; 'count': Input should be greater than or equ"),
    ],
)
def test_wrong_arguments_are_one_line(arguments: dict[str, Any], told: str) -> None:
    assert problems({"name": "ab", **arguments}).startswith(told)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from([*SampleArguments.model_fields, "other"]) | st.text(), JSON))
def test_whatever_comes_is_valid_or_refused_without_its_values(arguments: dict[str, Any]) -> None:
    arguments["name"] = "a customer's own words"
    told = problems(arguments)
    assert told.isprintable()
    assert "customer" not in told


class Text(ToolArguments):
    text: str
    times: int = 2


class Echo(ToolOutput):
    text: str
    times: int = 0


class Tools:
    async def echo(self, arguments: Text) -> Echo:
        """Says it
        again."""
        return Echo(text=arguments.text, times=arguments.times)

    async def large(self, _: ToolArguments) -> Echo:
        return Echo(text="x" * 100_000)

    async def half(self, _: ToolArguments) -> Echo:
        return Echo(text="half a character: \udcff")

    async def fail(self, _: ToolArguments) -> ToolOutput:
        raise ToolError("sample_full", "no room\nat all", retryable=True, uncertain=True)

    async def bug(self, _: ToolArguments) -> ToolOutput:
        raise KeyError("what a customer wrote")

    def tools(self) -> list[ServerTool]:
        return [ServerTool(self.echo, read_only=True), *map(ServerTool, (self.large, self.half, self.fail, self.bug))]


@pytest.fixture
def client() -> Client:
    return in_memory("sample", Tools().tools())


@pytest.mark.parametrize(("mode", "version"), [("auto", "2026-07-28"), ("legacy", "2025-11-25")])
async def test_tools_are_declared_and_called_in_both_forms_of_the_protocol(mode: str, version: str) -> None:
    async with in_memory("sample", Tools().tools(), mode=mode) as client:
        assert client.protocol_version == version
        echo = (await client.list_tools()).tools[0]
        assert (echo.title, echo.description) == ("Echo", "Says it again.")
        assert (echo.input_schema["required"], echo.output_schema and echo.output_schema["required"]) == (["text"],) * 2
        assert echo.annotations
        assert echo.annotations.read_only_hint is True
        result: Any = await client.call_tool("echo", {"text": "Grüße"})
        assert result.structured_content == {"text": "Grüße", "times": 2}
        assert result.content[0].text == '{"text":"Grüße","times":2}'


async def test_the_text_of_a_large_result_is_a_pointer(client: Client) -> None:
    async with client:
        result: Any = await client.call_tool("large", {})
    assert len(result.structured_content["text"]) == 100_000
    assert result.content[0].text == "over 65536 characters of JSON: see the structured content"


async def test_a_tool_error_is_a_typed_result(client: Client) -> None:
    async with client:
        with pytest.raises(CallError, match=r"^sample_full: no room\\nat all\Z") as caught:
            await call(client, "fail")
    assert (caught.value.code, caught.value.retryable, caught.value.uncertain) == ("sample_full", True, True)


@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        ("fail", {"a": 1}, "sample_invalid_argument: fail: unknown argument 'a'; its arguments are none"),
        ("ehco", {}, "sample_unknown_tool: there is no tool 'ehco'; there are echo, large, half, fail, bug"),
        ("half", {}, "sample_internal: half: the answer cannot be written as JSON"),
    ],
)
async def test_a_bad_call_is_told_in_one_line(client: Client, tool: str, arguments: dict[str, Any], told: str) -> None:
    async with client:
        with pytest.raises(CallError) as caught:
            await call(client, tool, **arguments)
        assert (await call(client, "echo", text="on"))["text"] == "on"
    assert str(caught.value) == told
    assert not caught.value.retryable


async def test_an_error_of_the_server_itself_tells_the_place_and_not_the_text(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    async with client:
        with pytest.raises(CallError) as caught:
            await call(client, "bug")
    assert (caught.value.code, caught.value.uncertain) == ("sample_internal", True)
    assert "KeyError at test_dispatcher.py:" in caught.value.message
    assert "sample: bug: unexpected KeyError at test_dispatcher.py:" in caplog.text
    assert "customer" not in caplog.text + caught.value.message


async def test_a_call_given_up_before_a_thread_was_free_is_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MAX_THREADS", 1)
    server._limiter.set(None)
    go_on, done = threading.Event(), []

    async def hold(_: ToolArguments) -> ToolOutput:
        await in_thread(go_on.wait)
        return ToolOutput()

    async def write(arguments: Text) -> ToolOutput:
        await in_thread(done.append, arguments.text)
        return ToolOutput()

    sample = Dispatcher("sample", [ServerTool(hold), ServerTool(write)])
    calls = [
        asyncio.create_task(sample.dispatch(*each))
        for each in (("hold", {}), ("write", {"text": "given up"}), ("write", {"text": "waited for"}))
    ]
    await asyncio.sleep(0.1)  # each call has come to its thread
    calls[1].cancel()
    await asyncio.wait([calls[1]])
    go_on.set()
    await sample.drain()
    assert done == ["waited for"]
    assert not (await calls[2]).is_error


NOTHING = cast("Any", None)
TOOLS = {
    tool.name: tool
    for tool in (
        *MailboxTools(Maildir.__new__(Maildir), 0).tools(),  # whose tools depend on what such a mailbox can do
        *TicketingTools(NOTHING).tools(),
        *WarrantyTools(NOTHING, date.today).tools(),
        *TableTools(NOTHING).tools(),
    )
}


def test_an_argument_is_declared_with_its_type_and_limits_and_no_other_is_taken() -> None:
    schema = TOOLS["list_unprocessed"].declaration().input_schema
    assert schema["properties"]["limit"] == {"type": "integer", "minimum": 1, "maximum": 100_000, "default": 100}
    assert (schema["type"], schema["additionalProperties"]) == ("object", False)
    assert schema.keys() <= {"type", "properties", "required", "additionalProperties"}
    assert TOOLS["add_note"].declaration().input_schema["required"] == ["ticket_id", "note", "idempotency_key"]


def test_clients_are_told_that_every_tool_can_be_called_again() -> None:
    for tool in TOOLS.values():
        declared = tool.declaration()
        assert declared.title == tool.name.replace("_", " ").capitalize()
        assert declared.annotations
        assert (declared.annotations.idempotent_hint, declared.annotations.destructive_hint) == (True, False)


def test_results_are_objects_with_what_is_always_there() -> None:
    required = {name: (tool.declaration().output_schema or {}).get("required", []) for name, tool in TOOLS.items()}
    assert required["list_unprocessed"] == ["messages", "total"]
    assert required["mark"] == []
    assert required["check_warranty"] == ["serial_number", "status"]


def test_the_others_only_read() -> None:
    writing = {"send_reply", "save_draft", "mark", "unmark", "claim_mailbox", "create_ticket", "add_note"}
    assert {tool.name for tool in TOOLS.values() if not tool.read_only} == writing
