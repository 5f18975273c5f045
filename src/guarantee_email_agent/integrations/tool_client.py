"""What a connection needs of a client of the Model Context Protocol, whoever wrote that."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool as its server declares it; the schemas are JSON Schema."""

    name: str
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any] | None = None

    def argument_names(self) -> frozenset[str] | None:
        """None where it takes any."""
        properties = self.input_schema.get("properties")
        return frozenset(properties) if isinstance(properties, Mapping) else None

    def answer_types(self) -> dict[str, frozenset[str]]:
        """Of the fields with a plain `type`; what is put together of other schemas is known by the answers alone."""
        properties = (self.output_schema or {}).get("properties")
        found: dict[str, frozenset[str]] = {}
        for name, schema in properties.items() if isinstance(properties, Mapping) else ():
            match schema:
                case {"type": str(one)}:
                    found[name] = frozenset({one})
                case {"type": [*several]}:
                    found[name] = frozenset(map(str, several))
        return found


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What a tool answered. text: its text content, the blocks joined by line breaks.

    declared: what it says of a failure, for programs (see `declared_error`).
    """

    failed: bool
    structured: Any
    text: str
    declared: Any = None


@dataclass(eq=False)
class CallFailedError(Exception):
    """No answer of the tool came; the message is the server's or the client's. Never for a log above DEBUG.

    code: of JSON-RPC. http_status: of the response that there was instead, 0 without one. ended: the connection is of
    no more use. was_sent: the server may have got the call.
    """

    message: str
    code: int = 0
    http_status: int = 0
    ended: bool = False
    was_sent: bool = True

    def __str__(self) -> str:
        return self.message


class ToolClient(Protocol):
    """A connection that is open."""

    async def list_tools(self) -> list[OfferedTool]:
        """The tools of all pages."""

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> ToolAnswer:
        """Raises CallFailedError where no answer of the tool comes, ValueError where it is not as the tool declares.

        Sets no limit to the waiting. arguments: can be written as JSON.
        """


OpenClient = AbstractAsyncContextManager[ToolClient]
"""Entering connects and negotiates the protocol, leaving ends the connection, and the server if we started it."""
