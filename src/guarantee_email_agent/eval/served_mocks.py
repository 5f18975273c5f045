"""The mocks of one scenario as MCP servers: `mail`, `warranty`, `ticketing`, and every other that the scenario names.

Names and arguments of the first three are those of our own servers, over the stores of `mock_stores`. What reaches
them is kept where the checks look for it, and every call with its answer in `tools.calls`.
"""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any, Final

from mcp_types import CallToolResult, ContentBlock, TextContent, Tool
from pydantic import ConfigDict

from guarantee_email_agent.eval.mock_stores import MockMailStore, MockTicketStore
from guarantee_email_agent.eval.mocks import Mocks
from guarantee_email_agent.eval.models import EvalTestCase
from guarantee_email_agent.eval.tool_mocks import (
    MALFORMED_ANSWER,
    RefusedCallError,
    ToolAnswer,
    ToolMocks,
    UnknownCallError,
)
from guarantee_email_agent.eval.world import World
from guarantee_email_agent.mcp_servers.loopback import PublishedTools
from guarantee_email_agent.mcp_servers.mailbox_tools import MailboxTools
from guarantee_email_agent.mcp_servers.server import (
    Dispatcher,
    ServerTool,
    ToolOutput,
    error_result,
    structured_result,
    text_result,
)
from guarantee_email_agent.mcp_servers.ticketing import TicketingTools
from guarantee_email_agent.mcp_servers.warranty import CheckWarranty, WarrantyTools
from guarantee_email_agent.services.call_errors import ERROR_META_KEY, ToolError
from guarantee_email_agent.utils.text import head_and_tail

MAX_CALLS: Final = 1000
"""Of one scenario; an agent that makes more runs in a circle."""

MAX_REQUEST_BYTES: Final = 8_000_000
MAX_ARGUMENT_CHARS: Final = 32_000_000  # of all calls of one scenario together
MAX_ANSWER_CHARS: Final = 65_536  # of one answer that are kept
SLOW_S: Final = 3.0  # that a slow tool takes to answer

_PIXEL: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNgAAAAAgAB5Sfe/AAAAABJRU5ErkJggg=="
"""A picture (PNG) where a scenario has none of its own."""

_SERVICES: Final = {"mail": "gmail", "warranty": "warranty_api", "ticketing": "ticketing"}


class ServedMocks:
    """mocks: hold what was sent, created and called, as those of a run in process do. world: the tables.

    stopped_by: why the agent has to stop at once; None as long as it need not.
    """

    def __init__(self, test_case: EvalTestCase) -> None:
        self.world = World(test_case.input.world)
        self.tools = ToolMocks(test_case.input.mock_responses, test_case.servers, self.world.apply)
        # Each call is noted once, as it comes in.
        self.mocks = replace(Mocks.of(test_case, ToolMocks({})), tools=self.tools)
        self.stopped_by: str | None = None
        self._left = MAX_ARGUMENT_CHARS
        answers = test_case.input.mock_responses
        self.mailbox = MockMailStore(test_case, self.mocks.mail)
        own = {
            "mail": MailboxTools(self.mailbox, 0).tools(),
            "warranty": [_warranty_tool(answers.get("warranty_api", {}))],
            "ticketing": TicketingTools(MockTicketStore(self.mocks.ticketing)).tools(),
        }
        self.servers: dict[str, PublishedTools] = {
            name: _OwnServer(self, name, tools, answers.get(_SERVICES[name], {}).get("error"))
            for name, tools in own.items()
            if _is_named(test_case, name)
        }
        self.servers |= {name: _MockedServer(self, name) for name in self.tools.servers}

    def admit(self, size: int) -> None:
        """Count a call. size: of its arguments. Raises ToolError where the agent made too many, or too large ones."""
        self._left -= size
        if len(self.tools.calls) >= MAX_CALLS:
            self.stop(f"the agent made more than {MAX_CALLS} calls")
        elif self._left < 0:
            self.stop(f"the arguments of all calls are over {MAX_ARGUMENT_CHARS // 1_000_000} MB")
        if self.stopped_by is not None:
            raise ToolError("mock_stopped", self.stopped_by)

    def stop(self, reason: str) -> None:
        self.stopped_by = self.stopped_by or reason

    async def fail(self, server: str, error: object) -> None:
        """A time-out lasts until the scenario is over."""
        if error == "timeout":
            await asyncio.Event().wait()
        raise ToolError(f"{_SERVICES.get(server, server)}_unavailable", "the service is not available", retryable=True)


def _is_named(case: EvalTestCase, server: str) -> bool:
    """Whether an agent is given this server of ours: each for a mail, for a task those that the scenario names."""
    named = set[str]()
    for expected in (case.expected_output, *(turn.expected_output for turn in case.turns)):
        named |= {call.server for call in expected.calls} | {call.server for call in expected.never_called}
        if any(value is not None for value in (expected.email_sent, expected.draft_stored)):
            named.add("mail")
        if any(value is not None for value in (expected.ticket_created, expected.note_added)):
            named.add("ticketing")
    return case.input.has_email or server in named or _SERVICES[server] in case.input.mock_responses


class _Server(ABC):
    """What the servers of a scenario share: counting, capturing, and what a client is answered."""

    def __init__(self, mocks: ServedMocks, name: str) -> None:
        self._mocks = mocks
        self._name = name

    async def dispatch(self, tool_name: str, arguments: Mapping[str, Any]) -> CallToolResult:
        text = json.dumps(arguments, ensure_ascii=False)
        try:
            self._mocks.admit(len(text))
        except ToolError as error:
            return error_result(error)
        plain = json.loads(text, parse_constant=str)  # a report cannot hold a number that JSON lacks
        with self._mocks.tools.noting(self._name, tool_name, plain) as call:
            try:
                if plain != arguments:
                    raise ToolError("mock_invalid_argument", "NaN and infinity are no JSON")
                result = await self._answer(tool_name, arguments)
            except ToolError as error:
                result = error_result(error)
            content = result.structured_content
            text = "".join(map(_as_text, result.content))
            answer = text if content is None else json.dumps(content, ensure_ascii=False)
            call.answered(head_and_tail(answer, MAX_ANSWER_CHARS))
            call.is_error = result.is_error
            error_data = (result.meta or {}).get(ERROR_META_KEY)
            call.refused = error_data is not None and not (error_data["retryable"] or error_data["uncertain"])
        return result

    @abstractmethod
    async def _answer(self, tool_name: str, arguments: Mapping[str, Any]) -> CallToolResult:
        """Raises ToolError."""

    def refused_too_large(self) -> None:
        self._mocks.stop(f"a request to {self._name} was over {MAX_REQUEST_BYTES // 1_000_000} MB")


class _OwnServer(_Server):
    """One of ours, with the fault that the scenario gives it."""

    def __init__(self, mocks: ServedMocks, name: str, tools: list[ServerTool], error: object) -> None:
        super().__init__(mocks, name)
        self._dispatcher = Dispatcher(name, tools)
        self._error = error

    def declarations(self) -> list[Tool]:
        return self._dispatcher.declarations()

    async def _answer(self, tool_name: str, arguments: Mapping[str, Any]) -> CallToolResult:
        if tool_name not in self._dispatcher.tools:
            self._mocks.tools.note_unknown_tool(self._name, tool_name)
        elif self._error is not None:
            # A note is taken where tickets come back malformed, as in a run in process.
            if self._error != "malformed":
                await self._mocks.fail(self._name, self._error)
            elif self._name == "mail":
                return text_result("unexpected answer")
            elif tool_name != "add_note":
                return structured_result(MALFORMED_ANSWER)
        return await self._dispatcher.dispatch(tool_name, arguments)

    async def drain(self) -> None:
        await self._dispatcher.drain()


class _MockedServer(_Server):
    """A server that only the scenario knows."""

    async def drain(self) -> None:
        """Nothing goes on without its caller."""

    def declarations(self) -> list[Tool]:
        """Where it is not declared, which arguments a tool takes only its calls tell, so any are accepted."""
        if declared := self._mocks.tools.declared.get(self._name):
            return [Tool.model_validate(asdict(each), by_name=True) for each in declared.tools]
        tools = []
        for tool, entries in self._mocks.tools.servers[self._name].items():
            names: dict[str, Any] = {name: {} for entry in entries for name in entry.when or ()}
            schema = {"type": "object", "properties": names, "additionalProperties": True}
            tools.append(Tool(name=tool, description=f"{tool} of {self._name}, mocked.", input_schema=schema))
        return tools

    async def _answer(self, tool_name: str, arguments: Mapping[str, Any]) -> CallToolResult:
        try:
            given = self._mocks.tools.answer(self._name, tool_name, arguments)
        except UnknownCallError as unknown:
            raise ToolError("mock_unknown_call", str(unknown)) from None
        except RefusedCallError as refused:
            raise ToolError("mock_invalid_argument", str(refused)) from None
        if given.error == "slow":
            await asyncio.sleep(SLOW_S)
        elif given.error is not None and given.error != "malformed":
            await self._mocks.fail(self._name, given.error)
        result = _result_of(given)
        result.is_error = given.is_error
        return result


def _result_of(given: ToolAnswer) -> CallToolResult:
    """What is neither text nor a mapping is wrapped as the SDK's own servers do, since clients take nothing else."""
    if given.content is not None:
        picture = {"mime_type": "image/png", "data": _PIXEL}
        said = [{name: value for name, value in asdict(each).items() if value is not None} for each in given.content]
        blocks = [picture | block if block["type"] == "image" else block for block in said]
        return CallToolResult.model_validate({"content": blocks}, by_alias=True, by_name=True)
    if isinstance(given.answer, str):
        return text_result(given.answer)
    if isinstance(given.answer, Mapping):
        return structured_result(given.answer)
    text = json.dumps(given.answer, ensure_ascii=False)
    return CallToolResult(content=[TextContent(text=text)], structured_content={"result": given.answer})


def _as_text(block: ContentBlock) -> str:
    """As the record keeps it: of a picture its type."""
    if isinstance(block, TextContent):
        return block.text
    return f"[{block.type} {getattr(block, 'mime_type', None) or ''}]".replace(" ]", "]")


class _AnyAnswer(ToolOutput):
    """Whatever the scenario says, without the limits of our own server."""

    model_config = ConfigDict(frozen=True, extra="allow")


def _warranty_tool(answer: Mapping[str, object]) -> ServerTool:
    said = {key: value for key, value in answer.items() if key != "error"} or {"status": "not_found"}

    async def check_warranty(arguments: CheckWarranty) -> _AnyAnswer:  # noqa: ARG001 - one answer for any number
        return _AnyAnswer(**said)

    check_warranty.__doc__ = WarrantyTools.check_warranty.__doc__
    return ServerTool(check_warranty, read_only=True)
