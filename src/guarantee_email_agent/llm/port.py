"""The port to a language model: the shape of the Anthropic Messages API.

`await client.messages.create(...)` is all that the agent ever calls, so the official SDK's client fits as it is, and so
does anything that answers the same requests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

OFFLINE_MODEL: Final = "instruction-interpreter"
"""The name under which the instruction interpreter answers."""


@dataclass(frozen=True, slots=True)
class TextBlock:
    text: str
    type: Literal["text"] = "text"


@dataclass(frozen=True, slots=True)
class ToolUseBlock:
    id: str
    name: str
    input: Mapping[str, Any]
    type: Literal["tool_use"] = "tool_use"


@dataclass(frozen=True, slots=True)
class OtherBlock:
    """What a model says besides, its thinking for one: `data` is the block as it came."""

    type: str
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens counted for one exchange. `input_tokens`: without those that the prompt cache gave or took."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_input_tokens: int = 0
    cache_creation_input_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Message:
    """A model's answer, with the attribute names of the SDK's own type."""

    id: str
    model: str
    content: Sequence[TextBlock | ToolUseBlock | OtherBlock]
    stop_reason: str
    usage: Usage = Usage()
    role: Literal["assistant"] = "assistant"
    type: Literal["message"] = "message"
    stop_details: Any = None


class Messages(Protocol):
    """The `messages` attribute of a client."""

    async def create(
        self,
        *,
        model: str,
        max_tokens: int,
        system: Sequence[Mapping[str, Any]],
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]],
        tool_choice: Mapping[str, Any],
        temperature: float = ...,
    ) -> Any:
        """An answer with `content` blocks and `stop_reason`. Raises whatever the client raises."""


class LanguageModel(Protocol):
    """Anything that answers Messages requests: the SDK's AsyncAnthropic, the interpreter, a recording."""

    @property
    def messages(self) -> Messages: ...


class ClosableModel(LanguageModel, Protocol):
    """A model that may hold connections."""

    async def aclose(self) -> None: ...
