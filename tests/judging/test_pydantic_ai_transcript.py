"""Messages that Pydantic AI makes here."""

import asyncio
import json

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, ImageUrl, ModelRetry, NativeToolCallPart, NativeToolReturnPart
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ThinkingPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from guarantee_email_agent.judging import record_from_pydantic_ai
from guarantee_email_agent.utils.errors import TaskError


class Price(BaseModel):
    amount: float


def test_a_run_as_objects_and_as_json() -> None:
    def look_up(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if len(messages) > 1:
            return ModelResponse([ThinkingPart("hm"), TextPart("5.00")], finish_reason="stop")
        calls = [ToolCallPart("look", '{"at": 1}', "a"), ToolCallPart("look", {"at": 2}, "b")]
        return ModelResponse([TextPart("I look."), *calls])

    agent = Agent(FunctionModel(look_up), system_prompt="Be short.")

    @agent.tool_plain(retries=2)
    def look(at: int) -> list[float]:
        if at == 2:
            raise ModelRetry("not there")
        return [5.0]

    messages = asyncio.run(agent.run(["How much?", ImageUrl("http://shop.example/1.png")])).all_messages()
    record = record_from_pydantic_ai(messages)
    stored = json.loads(
        asyncio.run(agent.run(["How much?", ImageUrl("http://shop.example/1.png")])).all_messages_json()
    )
    assert record == record_from_pydantic_ai(stored) == record_from_pydantic_ai({"messages": stored})
    assert (record["task_result"], record["status"], record["iterations"]) == ("5.00", "success", 2)
    assert [(message["role"], message["content"]) for message in record["conversation"]] == [
        ("system", "Be short."),
        ("user", "How much?\n[image-url]"),
        ("assistant", "I look."),
        ("tool", "[5.0]"),
        ("tool", "not there"),
        ("assistant", "5.00"),
    ]
    found, missing = record["execution_trace"]
    assert found == {"action": {"at": 1, "action_type": "look"}, "feedback": {"done": False, "message": "[5.0]"}}
    assert missing["feedback"]["error"] is True


def test_the_answer_of_an_output_tool_is_the_one_that_was_accepted() -> None:
    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        amount: object = "five" if len(messages) == 1 else 5
        return ModelResponse([ToolCallPart(info.output_tools[0].name, {"amount": amount})])

    agent = Agent(FunctionModel(answer), output_type=Price, instructions="Answer.")
    record = record_from_pydantic_ai(asyncio.run(agent.run("How much?")).all_messages())
    assert (record["task_result"], record["status"]) == ('{"amount": 5}', "success")
    assert record["execution_trace"][0]["feedback"]["error"] is True
    assert [message["role"] for message in record["conversation"]].count("system") == 1


def test_a_tool_that_ran_at_the_provider_and_an_empty_text() -> None:
    parts = [NativeToolCallPart("search", {}, "a"), NativeToolReturnPart("search", "found", "a"), TextPart("5.00")]
    record = record_from_pydantic_ai([ModelResponse(parts)])
    assert (record["task_result"], record["status"]) == ("5.00", "success")
    assert (record["iterations"], record["execution_trace"][0]["feedback"]["message"]) == (1, "found")
    assert record_from_pydantic_ai([ModelResponse([TextPart("")])])["status"] == "failed"


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"finish_reason": "length"}, "length"),
        ({"finish_reason": "error"}, "error"),
        ({"state": "interrupted"}, "interrupted"),
        ({"finish_reason": "tool_call", "parts": [{"part_kind": "tool-call", "tool_name": "look"}]}, None),
    ],
)
def test_what_was_cut_off_is_no_answer(fields: dict[str, object], why: str | None) -> None:
    parts = [{"part_kind": "text", "content": "5"}]
    record = record_from_pydantic_ai([{"kind": "response", "parts": parts, **fields}])
    assert (record["status"], record["task_result"]) == ("failed", "")
    assert record.get("reason", {}).get("message") == (why and f"the model's answer was cut off: {why}")


@pytest.mark.parametrize(
    ("transcript", "problem"),
    [
        ([], "the transcript has no messages"),
        ("text", "the transcript is a text, not a list"),
        ([None], "message 1 is null, not an object"),
        ([{"role": "user", "content": "x"}], "message 1 has the kind null, which is neither request nor response"),
        ([{"kind": "response", "parts": 7}], "'parts' of message 1 is 7, not a list"),
        ([{"kind": "response", "parts": [{"part_kind": "tool-call"}]}], "message 1 has a tool call without a name"),
    ],
)
def test_what_is_no_transcript(transcript: object, problem: str) -> None:
    with pytest.raises(TaskError) as caught:
        record_from_pydantic_ai(transcript)
    assert problem in caught.value.message
