"""The vendors' own SDKs in the agent, in this process: their calls are recorded, counted, and replayed offline."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from messages_server import (
    CHAT_USAGE,
    USAGE,
    MessagesServer,
    Reply,
    answer,
    completion,
    error_reply,
    running_messages_server,
    text,
    tool_call,
)

from guarantee_email_agent import Evaluation, evaluate
from guarantee_email_agent.config.settings import Config, Llm, Secrets

Agent = Callable[[dict[str, Any]], Awaitable[object]]

SCENARIO: Final = """\
scenario_id: talk_001
description: The agent says what its model says, once that has heard its tool
category: talk
created: 2026-11-27
input: {task: "What is free?"}
expected_output: {answer: {json: {asked: Monday, said: "10:00 is free"}}}
at_most: {tokens: 54, usd: 0.01}
"""
SCHEMA: Final = {"type": "object", "properties": {"day": {"type": "string"}}}
CLAUDE: Final = {"model": "claude-haiku-4-5", "max_tokens": 50}
ANTHROPIC_TOOLS: Final = [{"name": "free", "description": "Free slots", "input_schema": SCHEMA}]
GPT: Final = "gpt-5-mini"
FUNCTION: Final = {"name": "free", "description": "Free slots", "parameters": SCHEMA}
CHAT_TOOLS: Final = [{"type": "function", "function": FUNCTION}]
RESPONSE_TOOLS: Final = [{"type": "function", **FUNCTION}]
ASKED: Final = {"role": "user", "content": "What is free?"}
DAY: Final = {"day": "Monday"}
SAID: Final = "10:00 is free"


def events(*payloads: Mapping[str, Any], named: bool = True) -> Reply:
    names = (f"event: {each['type']}\n" if named else "" for each in payloads)
    lines = [f"{name}data: {json.dumps(each)}\n\n" for name, each in zip(names, payloads, strict=True)]
    end = "" if named else "data: [DONE]\n\n"
    return Reply(("".join(lines) + end).encode(), headers={"content-type": "text/event-stream"})


def streamed_message(block: Mapping[str, Any]) -> Reply:
    whole = json.loads(answer(model=CLAUDE["model"]).body)
    started = {**whole, "stop_reason": None, "usage": {**USAGE, "output_tokens": 1}}
    is_text = block["type"] == "text"
    delta = {"type": "text_delta", "text": SAID} if is_text else {"type": "input_json_delta", "partial_json": ""}
    deltas = [delta] if is_text else [{**delta, "partial_json": part} for part in ('{"day": ', '"Monday"}')]
    empty = {**block, **({"text": ""} if is_text else {"input": {}})}
    ending = {"stop_reason": "end_turn" if is_text else "tool_use", "stop_sequence": None}
    return events(
        {"type": "message_start", "message": started},
        {"type": "content_block_start", "index": 0, "content_block": empty},
        {"type": "ping"},
        *({"type": "content_block_delta", "index": 0, "delta": each} for each in deltas),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": ending, "usage": {"output_tokens": 5}},
        {"type": "message_stop"},
    )


def chunks(deltas: Iterable[Mapping[str, Any]], ending: str) -> Reply:
    head = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": GPT, "usage": None}
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": ending})
    told = {**head, "choices": [], "usage": CHAT_USAGE}
    return events(*({**head, "choices": [choice]} for choice in choices), told, named=False)


def called(arguments: str, **more: str) -> dict[str, Any]:
    return {"tool_calls": [{"index": 0, "type": "function", "function": {"arguments": arguments, **more}, "id": "c9"}]}


def response(item: Mapping[str, Any], status: str = "completed") -> dict[str, Any]:
    counts = {"input_tokens": 22, "output_tokens": 5, "total_tokens": 27}
    details = {"input_tokens_details": {"cached_tokens": 7}, "output_tokens_details": {"reasoning_tokens": 0}}
    whole = {"id": "resp_1", "object": "response", "created_at": 1, "model": GPT, "output": [item], "status": status}
    settings = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "error": None}
    return {**whole, **settings, "usage": {**counts, **details}}


FUNCTION_CALL: Final = {"type": "function_call", "id": "fc_1", "call_id": "c9", "name": "free", "status": "completed"}
CALL_ITEM: Final = {**FUNCTION_CALL, "arguments": json.dumps(DAY)}
PART: Final = {"type": "output_text", "text": SAID, "annotations": []}
TEXT_ITEM: Final = {"type": "message", "id": "m_1", "role": "assistant", "status": "completed", "content": [PART]}


def streamed_response(item: Mapping[str, Any]) -> Reply:
    head: dict[str, Any] = {"output_index": 0, "item_id": item["id"]}
    is_text = item["type"] == "message"
    empty = {**item, "status": "in_progress", **({"content": []} if is_text else {"arguments": ""})}
    kind = "output_text" if is_text else "function_call_arguments"
    text = SAID if is_text else json.dumps(DAY)
    place = {"content_index": 0, "logprobs": []} if is_text else {}
    part: list[dict[str, Any]] = [
        {"type": "response.content_part.added", **head, "content_index": 0, "part": {**PART, "text": ""}}
    ]
    done = {"type": f"response.{kind}.done", **head, **place, **({"text": text} if is_text else {"arguments": text})}
    begun = {**response(item, "in_progress"), "output": [], "usage": None}
    payloads = (
        {"type": "response.created", "response": begun},
        {"type": "response.output_item.added", "output_index": 0, "item": empty},
        *(part if is_text else ()),
        {"type": f"response.{kind}.delta", **head, **place, "delta": text},
        done,
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": response(item)},
    )
    return events(*({**each, "sequence_number": number} for number, each in enumerate(payloads)))


def options(task: dict[str, Any], vendor: str) -> dict[str, Any]:
    given = task["environment"]
    return {"base_url": given[f"{vendor}_BASE_URL"], "api_key": given[f"{vendor}_API_KEY"], "max_retries": 0}


def result(asked: Mapping[str, Any], said: str | None) -> dict[str, Any]:
    return {"task_result": {"asked": asked["day"], "said": said}}


async def anthropic_plain(task: dict[str, Any]) -> object:
    from anthropic import Anthropic

    with Anthropic(**options(task, "ANTHROPIC")) as client:
        first = client.messages.create(**CLAUDE, tools=ANTHROPIC_TOOLS, messages=[ASKED])
        (call,) = first.content
        found = {"type": "tool_result", "tool_use_id": call.id, "content": "10:00"}
        more = [{"role": "assistant", "content": [call.model_dump()]}, {"role": "user", "content": [found]}]
        second = client.messages.create(**CLAUDE, tools=ANTHROPIC_TOOLS, messages=[ASKED, *more])
        return result(call.input, second.content[0].text)


async def anthropic_streamed(task: dict[str, Any]) -> object:
    from anthropic import AsyncAnthropic

    async with AsyncAnthropic(**options(task, "ANTHROPIC")) as client:
        async with client.messages.stream(**CLAUDE, tools=ANTHROPIC_TOOLS, messages=[ASKED]) as stream:
            call = (await stream.get_final_message()).content[0]
        found = {"type": "tool_result", "tool_use_id": call.id, "content": "10:00"}
        more = [{"role": "assistant", "content": [call.model_dump()]}, {"role": "user", "content": [found]}]
        async with client.messages.stream(**CLAUDE, tools=ANTHROPIC_TOOLS, messages=[ASKED, *more]) as stream:
            return result(call.input, "".join([part async for part in stream.text_stream]))


async def chat_plain(task: dict[str, Any]) -> object:
    from openai import OpenAI

    with OpenAI(**options(task, "OPENAI")) as client:
        first = client.chat.completions.create(model=GPT, tools=CHAT_TOOLS, messages=[ASKED]).choices[0].message
        call = first.tool_calls[0]
        more = [first.model_dump(exclude_none=True), {"role": "tool", "tool_call_id": call.id, "content": "10:00"}]
        second = client.chat.completions.create(model=GPT, tools=CHAT_TOOLS, messages=[ASKED, *more])
        return result(json.loads(call.function.arguments), second.choices[0].message.content)


async def chat_streamed(task: dict[str, Any]) -> object:
    from openai import AsyncOpenAI

    async with AsyncOpenAI(**options(task, "OPENAI")) as client:
        asked = {"model": GPT, "tools": CHAT_TOOLS, "stream_options": {"include_usage": True}}
        async with client.chat.completions.stream(**asked, messages=[ASKED]) as stream:
            first = (await stream.get_final_completion()).choices[0].message
        call = first.tool_calls[0]
        more = [{"role": "assistant", "content": "", "tool_calls": [{"id": call.id, "type": "function"}]}]
        more[0]["tool_calls"][0]["function"] = {"name": "free", "arguments": call.function.arguments}
        more.append({"role": "tool", "tool_call_id": call.id, "content": "10:00"})
        said = await client.chat.completions.create(**asked, messages=[ASKED, *more], stream=True)
        parts = [each.choices[0].delta.content or "" async for each in said if each.choices]
        return result(json.loads(call.function.arguments), "".join(parts))


async def responses_plain(task: dict[str, Any]) -> object:
    from openai import OpenAI

    with OpenAI(**options(task, "OPENAI")) as client:
        call = client.responses.create(model=GPT, tools=RESPONSE_TOOLS, input=[ASKED]).output[0]
        more = [
            call.model_dump(exclude_none=True),
            {"type": "function_call_output", "call_id": "c9", "output": "10:00"},
        ]
        second = client.responses.create(model=GPT, tools=RESPONSE_TOOLS, input=[ASKED, *more])
        return result(json.loads(call.arguments), second.output_text)


async def responses_streamed(task: dict[str, Any]) -> object:
    from openai import AsyncOpenAI

    async with AsyncOpenAI(**options(task, "OPENAI")) as client:
        async with client.responses.stream(model=GPT, tools=RESPONSE_TOOLS, input=[ASKED]) as stream:
            call = (await stream.get_final_response()).output[0]
        more = [CALL_ITEM, {"type": "function_call_output", "call_id": call.call_id, "output": "10:00"}]
        said = await client.responses.create(model=GPT, tools=RESPONSE_TOOLS, input=[ASKED, *more], stream=True)
        parts = [event.delta async for event in said if event.type == "response.output_text.delta"]
        return result(json.loads(call.arguments), "".join(parts))


MESSAGE_CALL: Final = tool_call("free", DAY)
WAYS: Final[dict[Agent, list[Reply]]] = {
    anthropic_plain: [
        answer(MESSAGE_CALL, model=CLAUDE["model"]),
        answer(text(SAID), stop_reason="end_turn", model=CLAUDE["model"]),
    ],
    anthropic_streamed: [streamed_message(MESSAGE_CALL), streamed_message(text(SAID))],
    chat_plain: [completion(MESSAGE_CALL), completion(ending="stop", content=SAID)],
    chat_streamed: [
        chunks([called("", name="free"), called('{"day": '), called('"Monday"}')], "tool_calls"),
        chunks([{"role": "assistant", "content": "10:00"}, {"content": " is free"}], "stop"),
    ],
    responses_plain: [Reply(json.dumps(response(item)).encode()) for item in (CALL_ITEM, TEXT_ITEM)],
    responses_streamed: [streamed_response(CALL_ITEM), streamed_response(TEXT_ITEM)],
}


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    pytest.importorskip("openai", reason="openai is not installed: uv sync --group ci")
    pytest.importorskip("anthropic", reason="anthropic is not installed: uv sync --group ci")
    (tmp_path / "talk").mkdir()
    (tmp_path / "talk" / "talk_001.yaml").write_text(SCENARIO)
    return tmp_path / "talk"


def config_for(server: MessagesServer) -> Config:
    return Config(secrets=Secrets("sk-1", server.url, "sk-2", f"{server.url}/v1"), llm=Llm())


def failures(evaluation: Evaluation) -> list[str]:
    return [failure for each in evaluation.results for failure in each.failures]


@pytest.mark.parametrize("agent", WAYS, ids=lambda agent: agent.__name__)
def test_calls_of_an_sdk_are_recorded_counted_and_replayed_offline(agent: Agent, suite: Path) -> None:
    with running_messages_server() as server:
        server.replies = list(WAYS[agent])
        config = config_for(server)
        recorded = evaluate(suite, agent=agent, llm="record", config=config, max_cost_usd=1)
    assert (failures(recorded), len(server.requests)) == ([], 2)
    assert len(list((suite.parent / "agent-recordings" / "talk_001").iterdir())) == 2
    replayed = evaluate(suite, agent=agent, llm="replay", config=replace(config, secrets=Secrets()))
    assert failures(replayed) == []


def test_what_a_limit_stops_is_not_passed_and_says_so(suite: Path) -> None:
    (suite / "talk_002.yaml").write_text(SCENARIO.replace("talk_001", "talk_002"))
    with running_messages_server() as server:
        server.replies = list(WAYS[chat_plain])
        evaluation = evaluate(suite, agent=chat_plain, llm="live", config=config_for(server), max_cost_usd=0.00001)
    assert (len(evaluation.results), evaluation.gate, evaluation.passed) == (1, "inconclusive", False)
    assert "Stopped: 1 of 2 scenarios ran, the gate is not decided: $" in evaluation.format_for_display()


def test_what_is_not_recorded_is_told_as_a_function_can_be_recorded(suite: Path) -> None:
    (recording := suite.parent / "agent-recordings" / "talk_001").mkdir(parents=True)
    (recording / "run1-01-messages-0123456789ab.yaml").write_text("{}")
    (failure, *_) = failures(evaluate(suite, agent=chat_plain, llm="replay"))
    assert failure.startswith("agent: ")
    assert failure.endswith("Record it anew: evaluate(…, llm='record')")


async def transcribed(task: dict[str, Any]) -> object:
    from openai import OpenAI

    with OpenAI(**options(task, "OPENAI")) as client:
        said = client.audio.transcriptions.create(model="whisper-1", file=("said.wav", b"RIFF"))
    return {"task_result": {**DAY, "asked": "Monday", "said": said.text}}


@pytest.mark.parametrize(
    ("llm", "found"),
    [
        ("live", ["at_most.tokens: what it took", "at_most.usd: what it took"]),
        ("record", ["agent: the function raised"]),
    ],
)
def test_an_upload_passes_and_is_never_recorded(llm: Any, found: list[str], suite: Path) -> None:
    with running_messages_server() as server:
        server.replies = [Reply(json.dumps({"text": SAID}).encode())]
        told = failures(evaluate(suite, agent=transcribed, llm=llm, config=config_for(server)))
    assert all(map(str.startswith, told, found)), told
    assert ("RIFF" in str(server.requests), "neither be recorded" in told[0]) == (llm == "live", llm == "record")


def test_an_error_of_the_api_reaches_the_agent_as_its_sdk_has_it(suite: Path) -> None:
    with running_messages_server() as server:
        server.replies = [error_reply(429, "slow down", retry_after="0")]
        (failure, *_) = failures(evaluate(suite, agent=chat_plain, llm="live", config=config_for(server)))
    assert failure.startswith("agent: the function raised RateLimitError: Error code: 429")
