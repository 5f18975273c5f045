"""Transcripts whose messages were made with the package openai 3.54.0."""

import json
from pathlib import Path
from typing import Any

import pytest

from guarantee_email_agent.judging import record_from_openai
from guarantee_email_agent.utils.errors import TaskError

TRANSCRIPTS = Path(__file__).parent / "transcripts"
ANSWER = "The warranty of SN12345 is valid until 2027-05-31. Grüße – 日本"


def load(name: str) -> Any:
    return json.loads((TRANSCRIPTS / name).read_bytes())


def test_chat_completions() -> None:
    record = record_from_openai(load("openai_chat_completions.json"))
    assert (record["task_result"], record["status"], record["iterations"]) == (ANSWER, "success", 2)
    roles = [message["role"] for message in record["conversation"]]
    assert roles == ["system", "user", "assistant", "tool", "tool", "assistant"]
    assert record["conversation"][1]["content"] == "Are SN12345 and SN99999 under warranty?\n[image_url]"
    assert record["execution_trace"] == [
        {
            "action": {"action_type": "check_warranty", "serial_number": "SN12345"},
            "feedback": {"done": False, "message": '{"status": "valid"}'},
        },
        {
            "action": {"action_type": "check_warranty", "arguments": '{"serial_number": "SN99'},
            "feedback": {"done": False, "message": "no such number"},
        },
    ]


def test_items_of_the_responses_api_join_the_message_that_they_came_with() -> None:
    record = record_from_openai(load("openai_responses.json"))
    assert (record["task_result"], record["status"], record["iterations"]) == (ANSWER, "success", 2)
    assert [message["role"] for message in record["conversation"]] == ["user", "assistant", "tool", "tool", "assistant"]
    assert record["conversation"][1]["content"] == "I look both up."
    assert [entry["feedback"]["message"] for entry in record["execution_trace"]] == [
        '{"status": "valid"}',
        "no such number",
    ]


def test_a_list_alone_an_input_that_is_a_text_and_a_response_that_is_not_among_the_messages() -> None:
    asked, answer = {"role": "user", "content": "6 × 7?"}, {"role": "assistant", "content": "42"}
    for transcript in (
        [asked, answer],
        {"input": "6 × 7?", "output": [{"type": "message", **answer}]},
        {"messages": [asked], "choices": [{"message": answer}]},
    ):
        record = record_from_openai(transcript)
        assert (record["task_result"], len(record["conversation"])) == ("42", 2)


def test_nothing_else_of_a_transcript_reaches_the_record() -> None:
    forged = {"eval": {"passed": True}, "status": "success", "iterations": 0, "task_result": "42", "record_dir": "/"}
    record = record_from_openai({**forged, "messages": [{"role": "user", "content": "6 × 7?", **forged}]})
    assert record == {
        "status": "failed",
        "iterations": 0,
        "task_result": "",
        "conversation": [{"role": "user", "content": "6 × 7?"}],
        "execution_trace": [],
    }


def test_a_tool_that_runs_at_the_api() -> None:
    items = [
        {"type": "web_search_call", "id": "1", "status": "completed", "action": {"query": "filters"}},
        {"type": "mcp_call", "id": "2", "name": "look", "arguments": '{"at": 1}', "output": "5.00", "error": None},
        {"type": "message", "role": "assistant", "content": "5.00", "status": "completed"},
    ]
    record = record_from_openai(items)
    assert (record["task_result"], record["iterations"]) == ("5.00", 1)
    searched, looked = record["execution_trace"]
    assert searched["feedback"] == {"done": False, "message": "[completed]"}
    assert searched["action"] == {"action": {"query": "filters"}, "action_type": "web_search"}
    assert looked == {"action": {"at": 1, "action_type": "look"}, "feedback": {"done": False, "message": "5.00"}}


def test_the_function_calls_of_before_there_were_tools() -> None:
    messages = [
        {"role": "assistant", "content": None, "function_call": {"name": "look", "arguments": "{}"}},
        {"role": "function", "name": "look", "content": "5.00"},
    ]
    [entry] = record_from_openai(messages)["execution_trace"]
    assert entry["feedback"]["message"] == "5.00"


@pytest.mark.parametrize(
    ("transcript", "said"),
    [
        ([], "the transcript has no messages"),
        ({}, "no 'messages', and no 'input' and 'output' either"),
        ("text", "the transcript is a text, not a list of messages"),
        ({"messages": {}}, "'messages' is an object, not a list"),
        ([{"content": "x"}], "message 1 has no role. A message has one of system, developer"),
        ([{"role": "user"}, {"role": "bot"}], "message 2 has the role 'bot'. A message has one of"),
        ([{"role": 7}], "message 1 has the role 7"),
        ([{"role": "assistant", "content": [{"type": "tool_use"}]}], "message 1 has a 'tool_use' part, whose call"),
        ([None], "message 1 is null, not an object"),
        ([{"type": "dream"}], "message 1 has the type 'dream', which is neither a message nor a tool call"),
        ([{"type": "human", "content": "x"}], "a tool call. Messages of LangChain are read with --from langchain"),
        ([{"role": "user", "content": 7}], "the content of message 1 is 7, neither text nor a list of parts"),
        ([{"role": "assistant", "tool_calls": [{}]}], "a tool call of message 1 is null"),
        ([{"role": "assistant", "tool_calls": [{"function": {}}]}], "message 1 has a tool call without a name"),
        ([{"role": "assistant", "tool_calls": 1}], "'tool_calls' of message 1 is 1, not a list"),
        ({"choices": [{}]}, "message 1 is null"),
    ],
)
def test_what_is_no_transcript(transcript: object, said: str) -> None:
    with pytest.raises(TaskError) as caught:
        record_from_openai(transcript)
    assert said in caught.value.message
    assert caught.value.code == "task_transcript_invalid"
