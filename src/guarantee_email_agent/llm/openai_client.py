"""The OpenAI API, or any server that speaks `/v1/chat/completions`: the port's requests and answers in its shape.

What a server says that no client knows is no answer: neither an ending of another name, nor half a call.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final

from guarantee_email_agent.llm.api_client import ApiModel, api_error
from guarantee_email_agent.llm.port import Message, StopDetails, TextBlock, TokenUsage, ToolUseBlock, canonical_json
from guarantee_email_agent.utils.text import printable

_STOP_REASONS: Final = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
}
_CHOICES: Final = {"any": "required", "auto": "auto", "none": "none"}


class OpenAiModel(ApiModel):
    package: ClassVar[str] = "openai"
    label: ClassVar[str] = "OpenAI"
    public_address: ClassVar[str] = "https://api.openai.com/v1"

    @classmethod
    def _connect(cls, sdk: Any, **options: Any) -> Any:
        return sdk.AsyncOpenAI(**options)

    async def _send(self, request: Mapping[str, Any]) -> Message | None:
        sent = _chat_request(request, is_own=self.client.base_url.host.endswith((".openai.com", ".azure.com")))
        response = await self.client.chat.completions.with_raw_response.create(**sent)
        return _message(json.loads(response.text))


def _chat_request(request: Mapping[str, Any], *, is_own: bool) -> dict[str, Any]:
    """is_own: whether the API is OpenAI's own, which calls the limit otherwise and may keep what it is sent."""
    choice = request["tool_choice"]
    named = {"type": "function", "function": {"name": choice.get("name")}}
    tools = [
        {
            "type": "function",
            "function": {
                "name": tool["name"],
                "description": tool.get("description", ""),
                "parameters": tool["input_schema"],
            },
        }
        for tool in request["tools"]
    ]
    limit = "max_completion_tokens" if is_own else "max_tokens"
    temperature = request.get("temperature")
    return {
        "model": request["model"],
        "messages": list(_chat_messages(request)),
        "tools": tools,
        "tool_choice": _CHOICES.get(choice["type"], named),
        limit: request["max_tokens"],
        **({} if temperature is None else {"temperature": temperature}),
        **({"parallel_tool_calls": False} if choice.get("disable_parallel_tool_use") else {}),
        **({"store": False} if is_own else {}),
    }


def _chat_messages(request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"role": "system", "content": _joined(request["system"], "\n\n")}
    for message in request["messages"]:
        content = message["content"]
        blocks: Sequence[Mapping[str, Any]]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if message["role"] == "assistant":
            calls = [
                {
                    "id": block["id"],
                    "type": "function",
                    "function": {"name": block["name"], "arguments": canonical_json(block["input"])},
                }
                for block in blocks
                if block["type"] == "tool_use"
            ]
            yield {"role": "assistant", "content": _joined(blocks), **({"tool_calls": calls} if calls else {})}
            continue
        rest = list[Mapping[str, Any]]()
        for block in blocks:
            if block["type"] != "tool_result":
                rest.append(block)
                continue
            said = _joined(block["content"])
            result = f"Error: {said}" if block.get("is_error") else said
            yield {"role": "tool", "tool_call_id": block["tool_use_id"], "content": result}
            rest += [part for part in block["content"] if part["type"] == "image"]  # no tool's message may hold one
        if rest:
            has_image = any(block["type"] == "image" for block in rest)
            yield {"role": "user", "content": list(map(_part, rest)) if has_image else _joined(rest)}


def _joined(blocks: Iterable[Mapping[str, Any]], between: str = "\n") -> str:
    return between.join(block["text"] for block in blocks if block["type"] == "text")


def _part(block: Mapping[str, Any]) -> dict[str, Any]:
    if block["type"] == "text":
        return {"type": "text", "text": block["text"]}
    source = block["source"]
    return {"type": "image_url", "image_url": {"url": f"data:{source['media_type']};base64,{source['data']}"}}


def _message(completion: Any) -> Message | None:
    """The answer in the port's shape; None for what is no chat completion. Raises LLMError for an unknown ending."""
    choices = _at(completion, "choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = _at(choice, "message")
    if not isinstance(message, Mapping):
        return None
    ending, refusal = _at(choice, "finish_reason"), message.get("refusal")
    stop_reason = "refusal" if refusal else _STOP_REASONS.get(ending) if isinstance(ending, str) else None
    if stop_reason is None:
        what = f"ended its answer for a reason that is not known: {printable(str(ending))[:40]}"
        raise api_error("llm_bad_answer", what, retryable=True)
    content: list[TextBlock | ToolUseBlock] = [TextBlock(text)] if (text := _text(message.get("content"))) else []
    if not isinstance(calls := message.get("tool_calls") or [], list):
        return None
    for number, call in enumerate(calls, 1):
        function = _at(call, "function")
        if not isinstance(name := _at(function, "name"), str):
            return None
        content.append(ToolUseBlock(_at(call, "id") or f"call_{number}", name, _arguments(_at(function, "arguments"))))
    details = None
    if stop_reason == "refusal":
        details = StopDetails(None if refusal else "content_filter", refusal if isinstance(refusal, str) else None)
    model = _at(completion, "model")
    return Message(
        str(_at(completion, "id") or "chatcmpl"),
        model if isinstance(model, str) else "",
        tuple(content),
        stop_reason,
        chat_usage(_at(completion, "usage")),
        stop_details=details,
        service_tier=_at(completion, "service_tier"),
    )


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, Sequence) else ()
    return "\n".join(text for part in parts if isinstance(text := _at(part, "text"), str))


def _arguments(text: object) -> Any:
    """A call's arguments; what is no JSON stays as it is, and fits no schema then."""
    if not isinstance(text, str):
        return text
    try:
        return json.loads(text or "{}")
    except (ValueError, RecursionError):
        return text


def chat_usage(usage: object) -> TokenUsage:
    """The counts, without those of the cache among the input; not counted where they are missing, odd or all 0."""
    details = _at(usage, "prompt_tokens_details")
    counts = [
        _at(usage, "prompt_tokens"),
        _at(usage, "completion_tokens"),
        _at(details, "cached_tokens") or 0,
        _at(details, "cache_write_tokens") or 0,
    ]
    found = TokenUsage.of(counts)
    sent = found.input_tokens - found.cache_read_input_tokens - found.cache_creation_input_tokens
    return TokenUsage(uncounted=1) if sent < 0 else replace(found, input_tokens=sent)


def _at(value: object, key: str) -> Any:
    return value.get(key) if isinstance(value, Mapping) else None
