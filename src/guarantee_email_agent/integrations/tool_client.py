"""What a connection needs of a client of the Model Context Protocol, whoever wrote that."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Final, Protocol

from guarantee_email_agent.integrations.offered_tool import OfferedTool

NO_JSON: Final = "is no message in valid JSON"


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


class BadAnswerError(ValueError):
    """An answer that is not as it has to be. The message is a verb phrase about it, without anything it holds."""


class ToolClient(Protocol):
    """A connection that is open."""

    async def list_tools(self) -> list[OfferedTool]:
        """The tools of all pages."""

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> ToolAnswer:
        """Raises CallFailedError where no answer of the tool comes, ValueError where it is not as the tool declares,
        and BadAnswerError where more is known of why.

        Sets no limit to the waiting.
        """


OpenClient = AbstractAsyncContextManager[ToolClient]
"""Entering connects and negotiates the protocol, leaving ends the connection, and the server if we started it."""


def encode_json(message: Mapping[str, Any]) -> bytes:
    """On one line. Raises CallFailedError for half a character (a lone surrogate), and for what is no number."""
    try:
        return json.dumps(message, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except ValueError:
        raise CallFailedError("the arguments cannot be written as JSON", was_sent=False) from None
