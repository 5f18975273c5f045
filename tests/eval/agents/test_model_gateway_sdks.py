"""The vendors' own SDKs in the agent, in this process: their calls are recorded, counted, and replayed offline."""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from messages_server import CHAT_USAGE, USAGE, MessagesServer, Reply, answer, completion, error_reply, text

from guarantee_email_agent import Evaluation, evaluate
from guarantee_email_agent.config.settings import Config, Llm, Secrets

pytestmark = pytest.mark.slow

Ask = Callable[[Any, list[Any]], Awaitable[str | None]]

SCENARIO: Final = """\
scenario_id: talk_001
description: The agent says what its model says, asked twice
category: talk
created: 2026-11-27
input: {task: "What is free?"}
expected_output: {answer: {json: {first: "10:00 is free", second: "10:00 is free"}}}
at_most: {tokens: 54, usd: 0.01}
"""
CLAUDE: Final = {"model": "claude-haiku-4-5", "max_tokens": 50}
GPT: Final = "gpt-5-mini"
ASKED: Final = {"role": "user", "content": "What is free?"}
SAID: Final = "10:00 is free"
MESSAGE: Final = answer(text(SAID), stop_reason="end_turn", model=CLAUDE["model"])


def events(*payloads: Mapping[str, Any], end: str = "") -> Reply:
    body = "".join(f"event: {each.get('type')}\ndata: {json.dumps(each)}\n\n" for each in payloads)
    return Reply((body + end).encode(), headers={"content-type": "text/event-stream"})


def streamed_message() -> Reply:
    started = {**json.loads(MESSAGE.body), "content": [], "stop_reason": None, "usage": {**USAGE, "output_tokens": 1}}
    return events(
        {"type": "message_start", "message": started},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "ping"},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": SAID}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}},
        {"type": "message_stop"},
    )


def chunks() -> Reply:
    head = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": GPT, "usage": None}
    choices = [{"index": 0, "delta": {"content": said}, "finish_reason": None} for said in ("10:00", " is free")]
    choices.append({"index": 0, "delta": {}, "finish_reason": "stop"})
    told = {**head, "choices": [], "usage": CHAT_USAGE}
    return events(*({**head, "choices": [choice]} for choice in choices), told, end="data: [DONE]\n\n")


PART: Final = {"type": "output_text", "text": SAID, "annotations": []}
ITEM: Final = {"type": "message", "id": "m_1", "role": "assistant", "status": "completed", "content": [PART]}
RESPONSE: Final[dict[str, Any]] = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "model": GPT,
    "output": [ITEM],
    "status": "completed",
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "error": None,
    "usage": {
        "input_tokens": 22,
        "output_tokens": 5,
        "total_tokens": 27,
        "input_tokens_details": {"cached_tokens": 7},
        "output_tokens_details": {"reasoning_tokens": 0},
    },
}


def streamed_response() -> Reply:
    head: dict[str, Any] = {"output_index": 0, "item_id": "m_1", "content_index": 0, "logprobs": []}
    payloads: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**RESPONSE, "status": "in_progress", "output": [], "usage": None}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**ITEM, "content": []}},
        {"type": "response.content_part.added", **head, "part": {**PART, "text": ""}},
        {"type": "response.output_text.delta", **head, "delta": SAID},
        {"type": "response.output_text.done", **head, "text": SAID},
        {"type": "response.output_item.done", "output_index": 0, "item": ITEM},
        {"type": "response.completed", "response": RESPONSE},
    ]
    return events(*({**each, "sequence_number": number} for number, each in enumerate(payloads)))


async def anthropic_plain(client: Any, messages: list[Any]) -> str | None:
    return (await client.messages.create(**CLAUDE, messages=messages)).content[0].text


async def anthropic_streamed(client: Any, messages: list[Any]) -> str | None:
    async with client.messages.stream(**CLAUDE, messages=messages) as stream:
        return await stream.get_final_text()


async def chat_plain(client: Any, messages: list[Any]) -> str | None:
    return (await client.chat.completions.create(model=GPT, messages=messages)).choices[0].message.content


async def chat_streamed(client: Any, messages: list[Any]) -> str | None:
    asked = {"model": GPT, "stream_options": {"include_usage": True}, "messages": messages}
    async with client.chat.completions.stream(**asked) as stream:
        return (await stream.get_final_completion()).choices[0].message.content


async def responses_plain(client: Any, messages: list[Any]) -> str | None:
    return (await client.responses.create(model=GPT, input=messages)).output_text


async def responses_streamed(client: Any, messages: list[Any]) -> str | None:
    async with client.responses.stream(model=GPT, input=messages) as stream:
        return (await stream.get_final_response()).output_text


WAYS: Final[dict[Ask, Reply]] = {
    anthropic_plain: MESSAGE,
    anthropic_streamed: streamed_message(),
    chat_plain: completion(ending="stop", content=SAID),
    chat_streamed: chunks(),
    responses_plain: Reply(json.dumps(RESPONSE).encode()),
    responses_streamed: streamed_response(),
}


def options(task: dict[str, Any], vendor: str) -> dict[str, Any]:
    given = task["environment"]
    return {"base_url": given[f"{vendor}_BASE_URL"], "api_key": given[f"{vendor}_API_KEY"], "max_retries": 0}


async def talk(task: dict[str, Any], ask: Ask = chat_plain) -> object:
    from anthropic import AsyncAnthropic
    from openai import AsyncOpenAI

    is_claude = ask in (anthropic_plain, anthropic_streamed)
    make: Any = AsyncAnthropic if is_claude else AsyncOpenAI
    async with make(**options(task, "ANTHROPIC" if is_claude else "OPENAI")) as client:
        first = await ask(client, [ASKED])
        second = await ask(client, [ASKED, {"role": "assistant", "content": first}, ASKED])
    return {"task_result": {"first": first, "second": second}}


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


@pytest.mark.parametrize("ask", WAYS, ids=lambda ask: ask.__name__)
def test_calls_of_an_sdk_are_recorded_counted_and_replayed(ask: Ask, suite: Path, server: MessagesServer) -> None:
    agent = partial(talk, ask=ask)
    server.replies = [WAYS[ask]]
    config = config_for(server)
    recorded = evaluate(suite, agent=agent, llm="record", config=config, max_cost_usd=1)
    assert (failures(recorded), len(server.requests)) == ([], 2)
    assert len(list((suite.parent / "agent-recordings" / "talk_001").iterdir())) == 2
    replayed = evaluate(suite, agent=agent, llm="replay", config=replace(config, secrets=Secrets()))
    assert failures(replayed) == []


def test_what_a_limit_stops_is_not_passed_and_says_so(suite: Path, server: MessagesServer) -> None:
    (suite / "talk_002.yaml").write_text(SCENARIO.replace("talk_001", "talk_002"))
    server.replies = [WAYS[chat_plain]]
    evaluation = evaluate(suite, agent=talk, llm="live", config=config_for(server), max_cost_usd=0.00001)
    assert (len(evaluation.results), evaluation.gate, evaluation.passed) == (1, "inconclusive", False)
    assert "Stopped: 1 of 2 scenarios ran, the gate is not decided: $" in evaluation.format_for_display()


def test_what_is_not_recorded_is_told_as_a_function_can_be_recorded(suite: Path) -> None:
    (recording := suite.parent / "agent-recordings" / "talk_001").mkdir(parents=True)
    (recording / "run1-01-messages-0123456789ab.yaml").write_text("{}")
    (failure, *_) = failures(evaluate(suite, agent=talk, llm="replay"))
    assert failure.startswith("agent: ")
    assert failure.endswith("Record it anew: evaluate(…, llm='record')")


async def transcribed(task: dict[str, Any]) -> object:
    from openai import OpenAI

    with OpenAI(**options(task, "OPENAI")) as client:
        said = client.audio.transcriptions.create(model="whisper-1", file=("said.wav", b"RIFF"))
    return {"task_result": {"first": said.text, "second": said.text}}


@pytest.mark.parametrize(
    ("llm", "found"),
    [
        ("live", ["at_most.tokens: what it took", "at_most.usd: what it took"]),
        ("record", ["agent: the function raised"]),
    ],
)
def test_an_upload_passes_and_is_not_recorded(llm: Any, found: list[str], suite: Path, server: MessagesServer) -> None:
    server.replies = [Reply(json.dumps({"text": SAID}).encode())]
    told = failures(evaluate(suite, agent=transcribed, llm=llm, config=config_for(server)))
    assert all(map(str.startswith, told, found)), told
    assert ("RIFF" in str(server.requests), "neither be recorded" in told[0]) == (llm == "live", llm == "record")


def test_an_error_of_the_api_reaches_the_agent_as_its_sdk_has_it(suite: Path, server: MessagesServer) -> None:
    server.replies = [error_reply(429, "slow down", retry_after="0")]
    (failure, *_) = failures(evaluate(suite, agent=talk, llm="live", config=config_for(server)))
    assert failure.startswith("agent: the function raised RateLimitError: Error code: 429")
