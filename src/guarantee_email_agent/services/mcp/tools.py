"""The tools of a server, what they answer, and how a call fails, in our own terms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from mcp_types import Tool


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """name, and the JSON schemas of its arguments and of its answer. read_only: whether it says that it only reads."""

    name: str
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any] | None = None
    read_only: bool = False
    description: str = ""

    @classmethod
    def of(cls, tool: Tool) -> Self:
        read_only = tool.annotations is not None and tool.annotations.read_only_hint is True
        return cls(tool.name, tool.input_schema, tool.output_schema, read_only, tool.description or "")

    @property
    def parameters(self) -> frozenset[str] | None:
        """The names of its arguments; None where it takes any."""
        properties = self.input_schema.get("properties")
        return frozenset(properties) if isinstance(properties, Mapping) else None

    @property
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
    """What a tool answered. text: its text content, the blocks joined by line breaks. content: all blocks, of the SDK.

    declared: what it says of a failure, for programs (see `declared_error`).
    """

    failed: bool
    structured: Any
    text: str
    declared: Any = None
    content: Sequence[Any] = ()


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
