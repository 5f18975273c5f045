"""The real SDK against a server on loopback that speaks `/v1/chat/completions`."""

import asyncio
import json
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest
from messages_server import MessagesServer, Reply, completion, error_reply, openai_config, tool_call

from guarantee_email_agent.config.settings import Secrets
from guarantee_email_agent.llm.openai_client import OpenAiModel
from guarantee_email_agent.llm.port import ToolUseBlock, tool_input
from guarantee_email_agent.llm.usage import cost_usd, has_list_price, usage_of
from guarantee_email_agent.utils.clock import SkippingClock
from guarantee_email_agent.utils.errors import ConfigurationError, LLMError

REQUEST: dict[str, Any] = {
    "model": "gpt-5-mini",
    "max_tokens": 100,
    "temperature": 0.0,
    "system": [{"type": "text", "text": "Be short."}, {"type": "text", "text": "Be kind."}],
    "messages": [{"role": "user", "content": "Hello"}],
    "tools": [{"name": "note", "description": "Note it.", "input_schema": {"type": "object"}}],
    "tool_choice": {"type": "tool", "name": "note", "disable_parallel_tool_use": True},
}


def _text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def _error(status: int, code: str) -> Reply:
    return Reply(json.dumps({"error": {"message": "It went wrong", "type": "some", "code": code}}).encode(), status)


NOTE = tool_call("note", {"number": 1})


def ask(server: MessagesServer, changes: dict[str, Any] | None = None, **llm: Any) -> Any:
    async def once() -> Any:
        async with aclosing(OpenAiModel.of(openai_config(server.url, **llm), clock=SkippingClock())) as model:
            return await model.messages.create(**{**REQUEST, **(changes or {})})

    return asyncio.run(once())


def test_a_request_of_the_port_is_sent_as_a_chat_completion(server: MessagesServer) -> None:
    server.replies = [completion(NOTE)]
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
    result = {"type": "tool_result", "tool_use_id": "c1", "is_error": True, "content": [_text("no file"), image]}
    conversation = [
        {"role": "user", "content": [_text("Look")]},
        {"role": "assistant", "content": [_text("I do"), {**tool_call("look", {"at": "ä"}), "id": "c1"}]},
        {"role": "user", "content": [result, _text("Go on")]},
    ]
    ask(server, {"messages": conversation})
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at":"ä"}'}}
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    assert server.requests == [
        {
            "model": "gpt-5-mini",
            "max_tokens": 100,
            "temperature": 0.0,
            "parallel_tool_calls": False,
            "tools": [
                {
                    "type": "function",
                    "function": {"name": "note", "description": "Note it.", "parameters": {"type": "object"}},
                }
            ],
            "tool_choice": {"type": "function", "function": {"name": "note"}},
            "messages": [
                {"role": "system", "content": "Be short.\n\nBe kind."},
                {"role": "user", "content": "Look"},
                {"role": "assistant", "content": "I do", "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "c1", "content": "Error: no file"},
                {"role": "user", "content": [picture, _text("Go on")]},
            ],
        }
    ]
    assert server.headers[0]["authorization"] == "Bearer test-key"


def test_its_answer_has_the_shape_of_the_port_with_tokens_and_cost(server: MessagesServer) -> None:
    server.replies = [completion(NOTE, content="Noted.")]
    message = ask(server)
    assert message.stop_reason == "tool_use"
    assert [block.type for block in message.content] == ["text", "tool_use"]
    assert message.content[1] == ToolUseBlock("toolu_1", "note", {"number": 1})
    assert message.usage.as_dict() == {"input": 12, "output": 5, "cache_read": 7, "cache_write": 3}
    assert cost_usd(message.model, message.usage) == pytest.approx((15 * 0.25 + 5 * 2 + 7 * 0.025) / 1e6)
    assert has_list_price(message)
    server.replies = [completion(NOTE, service_tier="priority")]
    assert not has_list_price(ask(server))


@pytest.mark.parametrize(
    ("reply", "code", "says"),
    [
        (completion(ending="stop", content="Hello"), "llm_wrong_shape", "It was text, and no call of the tool."),
        (completion(ending="stop", refusal="I cannot"), "llm_refused", "refuses to deal with this mail. Answer"),
        (completion(NOTE, ending="content_filter"), "llm_refused", "(content_filter)"),
        (completion(NOTE, ending="length"), "llm_truncated", "Raise llm.max_tokens"),
        (completion(NOTE, ending="abort"), "llm_bad_answer", "for a reason that is not known: abort"),
        (Reply(b'{"choices": []}'), "llm_bad_answer", "an answer that is no message"),
        (completion(tool_calls=[{"function": {}}]), "llm_bad_answer", "an answer that is no message"),
        (completion(tool_calls=True), "llm_bad_answer", "an answer that is no message"),
        (
            completion(tool_calls=[{"id": "1", "function": {"name": "note", "arguments": '{"num'}}]),
            "llm_wrong_shape",
            "does not fit the tool's schema",
        ),
        (error_reply(404, "no such model"), "llm_model_not_found", "Check llm.model and llm.base_url"),
        (_error(429, "insufficient_quota"), "llm_no_credit", "Buy credit"),
        (_error(400, "context_length_exceeded"), "llm_request_too_large", "Send less at a time"),
        (_error(400, "content_filter"), "llm_refused", "Answer the mail yourself"),
        (Reply(b'{"error": "model is loading"}', 400), "llm_bad_request", "HTTP 400: model is loading."),
    ],
)
def test_what_is_no_answer_is_a_clear_error(server: MessagesServer, reply: Reply, code: str, says: str) -> None:
    server.replies = [reply]
    with pytest.raises(LLMError) as caught:
        tool_input(ask(server), "note", lambda value: isinstance(value, dict))
    assert (caught.value.code, says in caught.value.message) == (code, True), caught.value.message


@pytest.mark.parametrize(
    "usage", [None, {}, {"prompt_tokens": 5}, {"prompt_tokens": -1, "completion_tokens": 2}, {"prompt_tokens": 1}]
)
def test_tokens_that_are_not_told_are_not_none(server: MessagesServer, usage: Any) -> None:
    server.replies = [completion(NOTE, usage=usage)]
    assert usage_of(ask(server)).uncounted == 1


@pytest.mark.parametrize(
    ("key", "wrong"),
    [(None, "is not set"), ("sk-ü", "holds characters that no key has"), ("sk-1\nx", "holds characters")],
)
def test_without_a_key_that_can_be_sent_it_is_told_which(key: str | None, wrong: str) -> None:
    config = openai_config("http://127.0.0.1:1")
    with pytest.raises(ConfigurationError, match=rf"OPENAI_API_KEY {wrong}.*where llm\.base_url names a server"):
        OpenAiModel.of(replace(config, secrets=Secrets(openai_api_key=key)))
