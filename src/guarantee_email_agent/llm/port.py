"""The port to a language model: the shape of the Anthropic Messages API.

`await client.messages.create(...)` is all that the agent ever calls, so the official SDK's client fits as it is, and so
does anything that answers the same requests.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import add
from typing import Any, Final, Literal, Protocol, Self

from guarantee_email_agent.utils.errors import LLMError

OFFLINE_MODEL: Final = "instruction-interpreter"
"""The name under which the instruction interpreter answers."""

_TOO_MANY: Final = 1_000_000_000_000
_REFUSAL_CATEGORY: Final = r"[a-z_]{1,40}"


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
    """Any other kind of block, such as the model's thinking: `data` is the block as it came."""

    type: str
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Tokens of one exchange or of many. `input_tokens`: without those that the prompt cache gave or took.

    uncounted: answers that do not say what they took, which the counts lack.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_input_tokens: int = 0
    cache_creation_input_tokens: int = 0
    uncounted: int = 0

    @classmethod
    def of(cls, counts: Sequence[Any]) -> TokenUsage:
        """What an answer says, in this order; `uncounted` where a count is missing or odd, or all are 0."""
        is_odd = any(type(count) is not int or not 0 <= count < _TOO_MANY for count in counts)
        return cls(uncounted=1) if is_odd or not any(counts) else cls(*counts)

    @property
    def total(self) -> int:
        """Every token that was sent or received, cached ones too."""
        return sum(self._counts)

    def __add__(self, other: TokenUsage) -> TokenUsage:
        return TokenUsage(*[*map(add, self._counts, other._counts), self.uncounted + other.uncounted])

    def as_dict(self) -> dict[str, int]:
        """The counts as our reports name them."""
        return dict(zip(("input", "output", "cache_read", "cache_write"), self._counts, strict=True))

    @property
    def _counts(self) -> tuple[int, int, int, int]:
        return self.input_tokens, self.output_tokens, self.cache_read_input_tokens, self.cache_creation_input_tokens


NO_TOKENS: Final = TokenUsage()


@dataclass(frozen=True, slots=True)
class StopDetails:
    """Why a model refused. category: a word of the API's own. explanation: the model's words."""

    category: str | None
    explanation: str | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """A model's answer, with the attribute names of the SDK's own type."""

    id: str
    model: str
    content: Sequence[TextBlock | ToolUseBlock | OtherBlock]
    stop_reason: str
    usage: TokenUsage = NO_TOKENS
    role: Literal["assistant"] = "assistant"
    type: Literal["message"] = "message"
    stop_details: Any = None
    service_tier: object = None
    fallback_reason: LLMError | None = None
    """Why the model that was asked did not answer, and this one did."""


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


class ModelClient:
    """Base of a LanguageModel that is its own `messages`; a subclass has `create`."""

    @property
    def messages(self) -> Self:
        return self


class ClosableModel(LanguageModel, Protocol):
    """A model that may hold connections."""

    async def aclose(self) -> None: ...


class WrongShapeError(LLMError):
    """The model answered, but not through the tool as asked: it may do so when asked again.

    `objection` is what to tell the model. Nothing that it wrote stands in it, since that may be the customer's words.
    """

    @property
    def objection(self) -> str:
        return str(self.details["objection"])


def tool_input(answer: Any, tool: str, is_valid: Callable[[object], bool]) -> Mapping[str, Any]:
    """The input of the first call of `tool` that `is_valid`.

    Raises WrongShapeError where there is none, and LLMError where asking again cannot help: `llm_refused`,
    `llm_truncated` (a call that was cut off may look complete), `llm_request_too_large`.
    """
    if answer.stop_reason == "refusal":
        category = getattr(getattr(answer, "stop_details", None), "category", None)
        why = f" ({category})" if isinstance(category, str) and re.fullmatch(_REFUSAL_CATEGORY, category) else ""
        raise LLMError(f"The model refuses to deal with this mail{why}. Answer it yourself", "llm_refused")
    if answer.stop_reason == "max_tokens":
        raise LLMError("The model's answer was cut off. Raise llm.max_tokens", "llm_truncated")
    if answer.stop_reason == "model_context_window_exceeded":
        raise LLMError("The mail is too long for the model. Answer it yourself", "llm_request_too_large")
    objection = "It was text, and no call of the tool."
    for block in answer.content:
        if block.type != "tool_use":
            continue
        if block.name != tool:
            objection = "It was a call of another tool."
        elif is_valid(block.input):
            return block.input  # type: ignore[no-any-return]
        else:
            objection = "The input of the call does not fit the tool's schema."
    raise WrongShapeError(
        f"The model did not answer through {tool} as asked. {objection}", "llm_wrong_shape", {"objection": objection}
    )


PARTS: Final = ("model", "max_tokens", "temperature", "system", "tools", "tool_choice", "messages")
"""Everything that decides an answer. `temperature` is None where none is sent."""


def all_parts(request: Mapping[str, Any]) -> dict[str, Any]:
    """The request with each of its parts, None where it has none."""
    return {part: request.get(part) for part in PARTS}


def request_digest(request: Mapping[str, Any]) -> str:
    """Two requests on the wire are the same if their digests are. One of an agent of somebody else's has a `path`."""
    return digest(request if "path" in request else all_parts(request))


def digest(data: Any) -> str:
    """SHA-256 of plain data, in hexadecimal. Raises TypeError for what JSON does not know."""
    return hashlib.sha256(canonical_json(data).encode("utf-8", "surrogatepass")).hexdigest()


def canonical_json(data: Any) -> str:
    """The one JSON text of plain data."""
    return _ENCODER.encode(data)


_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"))
