"""Transcripts of a graph that ran with langgraph 1.2.22 and langchain-core 1.7.2, stored in each of their ways."""

import json
from pathlib import Path

import pytest

from guarantee_email_agent.judging import record_from_langchain
from guarantee_email_agent.utils.errors import TaskError

TRANSCRIPTS = Path(__file__).parent / "transcripts"


@pytest.mark.parametrize("stored", ["messages_to_dict", "dumpd", "model_dump"])
def test_a_graph(stored: str) -> None:
    record = record_from_langchain(json.loads((TRANSCRIPTS / f"langchain_{stored}.json").read_bytes()))
    assert record["task_result"] == "The warranty of SN12345 is valid until 2027-05-31. Grüße – 日本"
    assert (record["status"], record["iterations"]) == ("success", 2)
    assert [(message["role"], message["content"][:20]) for message in record["conversation"]] == [
        ("system", "You answer warranty "),
        ("user", "Are SN12345 and SN99"),
        ("assistant", "I look both up."),
        ("tool", '{"status": "valid", '),
        ("tool", "Error: ValueError('n"),
        ("assistant", "The warranty of SN12"),
    ]
    known, unknown = record["execution_trace"]
    assert known["action"] == {"serial_number": "SN12345", "action_type": "check_warranty"}
    assert known["feedback"]["message"].startswith('{"status": "valid"')
    assert unknown["feedback"]["error"] is True


SERVED = [
    {"type": "server_tool_use", "id": "s", "name": "search", "input": {"query": "6 × 7"}},
    {"type": "web_search_tool_result", "tool_use_id": "s", "content": "found"},
    {"type": "web_search_call", "id": "w", "status": "completed"},
]


def test_pairs_plain_messages_and_chunks() -> None:
    record = record_from_langchain(
        [
            ["human", "6 × 7?"],
            {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {"name": "multiply"}}]},
            {"type": "tool", "content": "42", "tool_call_id": "1"},
            {"type": "remove", "id": "1"},
            {"type": "AIMessageChunk", "content": [{"type": "thinking"}, *SERVED, {"type": "text", "text": "42"}]},
        ]
    )
    assert record["task_result"] == "42"
    assert [entry["feedback"]["message"] for entry in record["execution_trace"]] == ["42", "found", "[completed]"]
    assert record["iterations"] == 2


def test_calls_that_are_no_json_and_calls_of_old_messages() -> None:
    old = {"function": {"name": "look", "arguments": '{"at": 1}'}, "id": "2", "type": "function"}
    record = record_from_langchain(
        [
            {"type": "ai", "content": "", "invalid_tool_calls": [{"name": "look", "args": "{", "id": "1"}]},
            {"type": "ai", "content": "", "additional_kwargs": {"tool_calls": [old]}},
        ]
    )
    assert [entry["action"] for entry in record["execution_trace"]] == [
        {"arguments": "{", "action_type": "look"},
        {"at": 1, "action_type": "look"},
    ]


@pytest.mark.parametrize(
    ("transcript", "said"),
    [
        ([], "the transcript has no messages"),
        ({"output": []}, "an object without 'messages'"),
        (7, "the transcript is 7. Pass the list of messages"),
        ([{"content": "x"}], "message 1 has no role"),
        ([{"type": "dream", "content": "x"}], "message 1 has the type 'dream', which is none of human, ai"),
        ([["human", "x"], None], "message 2 is null, not an object"),
        ([{"lc": 1, "type": "not_implemented", "id": ["x"]}], "message 1 has the type 'not_implemented'"),
        ([{"type": "ai", "content": 7}], "the content of message 1 is 7, neither text nor a list of parts"),
        ([{"type": "ai", "tool_calls": [{"args": {}}]}], "message 1 has a tool call without a name"),
    ],
)
def test_what_is_no_transcript(transcript: object, said: str) -> None:
    with pytest.raises(TaskError) as caught:
        record_from_langchain(transcript)
    assert said in caught.value.message
    assert caught.value.code == "task_transcript_invalid"
