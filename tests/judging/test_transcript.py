"""What becomes of messages, whichever framework they come from."""

import copy
import json
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from guarantee_email_agent.judging import (
    record_from_inspect,
    record_from_langchain,
    record_from_openai,
    record_from_otel,
    record_from_pydantic_ai,
)
from guarantee_email_agent.judging.record import Record, complete_record
from guarantee_email_agent.judging.task import Task
from guarantee_email_agent.judging.transcript import Call, Message, call_of, record_of_messages, text_of
from guarantee_email_agent.utils.errors import TaskError

ASKED = Message("user", "How much?")
LOOKED = Message("assistant", "I look.", (Call("look", {"at": "price"}, "1"),))
FOUND = Message("tool", "5.00", answered_id="1")
REFUSED = {"type": "refusal", "refusal": "I cannot help with that."}
HALF = {"role": "assistant", "content": "5"}
ENDED = {"done_reason": "length"}
HALF_ITEM = {"type": "message", **HALF, "status": "incomplete"}
COMPLETING = {"id": "1", "function": {"name": "task_complete", "arguments": '{"result": "5.00"}'}}


class TestAnswer:
    @pytest.mark.parametrize(
        ("messages", "answer"),
        [
            ([ASKED, LOOKED, FOUND, Message("assistant", "5.00")], "5.00"),
            ([ASKED, Message("assistant", "5.00"), Message("user", "Thanks")], "5.00"),
            ([ASKED, Message("assistant", "4.00"), ASKED, LOOKED], ""),
            ([ASKED, LOOKED, FOUND], ""),
            ([ASKED], ""),
            ([Message("assistant", "Done", (Call("task_complete", {"result": "5.00"}),))], "5.00"),
            ([Message("assistant", "Done", (Call("task_complete", {"result": [5]}),)), ASKED], "[5]"),
            ([Message("assistant", "5.00", (Call("task_complete", {}),))], ""),
            ([Message("assistant", "5.00", (Call("task_complete", {"result": None}),))], ""),
        ],
        ids=[
            "last",
            "before-thanks",
            "cut-off-in-a-call",
            "cut-off-after-it",
            "none",
            "task_complete",
            "list",
            "empty",
            "null",
        ],
    )
    def test_of_a_run(self, messages: list[Message], answer: str) -> None:
        record = record_of_messages(messages)
        assert (record["task_result"], record["status"]) == (answer, "success" if answer else "failed")

    @pytest.mark.parametrize(
        ("record", "why"),
        [
            (record_from_openai({"choices": [{"finish_reason": "length", "message": HALF}]}), "length"),
            (record_from_openai({"messages": [HALF], "finish_reason": "content_filter"}), "content_filter"),
            (record_from_openai([{**HALF, "stop_reason": "max_tokens"}]), "max_tokens"),
            (record_from_openai([{**HALF, "tool_calls": [COMPLETING], "finish_reason": "length"}]), "length"),
            (record_from_openai([HALF_ITEM]), "incomplete"),
            (record_from_openai({"status": "in_progress", "output": [HALF]}), "in_progress"),
            (
                record_from_openai(
                    {
                        "status": "incomplete",
                        "incomplete_details": {"reason": "max_output_tokens"},
                        "output": [HALF_ITEM],
                    }
                ),
                "incomplete (max_output_tokens)",
            ),
            (
                record_from_openai({"status": "failed", "error": {"message": "boom"}, "input": "q", "output": []}),
                "failed (boom)",
            ),
            (
                record_from_langchain(
                    [{"type": "ai", "content": "5", "response_metadata": {"finish_reason": "SAFETY"}}]
                ),
                "SAFETY",
            ),
            (
                record_from_openai([{**HALF, "finish_reason": "insufficient_system_resource"}]),
                "insufficient_system_resource",
            ),
            (record_from_langchain([{"type": "ai", "content": "5", "response_metadata": ENDED}]), "length"),
            (record_from_openai([{"role": "assistant", "content": None, "refusal": "No."}]), "refusal"),
            (record_from_openai({"output": [{**HALF_ITEM, "status": "completed", "content": [REFUSED]}]}), "refusal"),
            (record_from_langchain([{"type": "ai", "content": [REFUSED]}]), "refusal"),
            (record_from_langchain([{"type": "ai", "content": "", "additional_kwargs": REFUSED}]), "refusal"),
            (
                record_from_inspect(
                    {"messages": [HALF], "output": {"completion": "5", "choices": [{"stop_reason": "model_length"}]}}
                ),
                "model_length",
            ),
        ],
    )
    def test_what_a_provider_cut_off_is_no_answer(self, record: Record, why: str) -> None:
        reason = {"code": "cut_off", "message": f"the model's answer was cut off: {why}"}
        assert (record["status"], record["task_result"], record["reason"]) == ("failed", "", reason)

    @pytest.mark.parametrize(
        ("messages", "ending"),
        [
            ([HALF], "stop"),
            ([HALF], "end_turn"),
            ([HALF], "tool_calls"),
            ([{**HALF, "finish_reason": "length"}, {"role": "user", "content": "Go on"}, HALF], "stop"),
            ([{**HALF, "tool_calls": [COMPLETING]}, {"role": "user", "content": "Thanks"}, HALF], "length"),
            (
                [
                    {"type": "mcp_call", "id": "1", "name": "look", "output": "no", "status": "failed"},
                    {**HALF_ITEM, "status": "completed"},
                ],
                "completed",
            ),
        ],
    )
    def test_what_ended_or_came_before_is_whole(self, messages: list[object], ending: str) -> None:
        record = record_from_openai({"messages": messages, "finish_reason": ending})
        assert (record["status"], "reason" in record) == ("success", False)

    @pytest.mark.parametrize(
        "raw", [{"finish_reason": "length"}, {"conversation": [{**HALF, "stop_reason": "refusal"}]}]
    )
    def test_a_record_that_says_so_itself(self, raw: dict[str, object]) -> None:
        task = Task("sum", Path("tasks/sum"), "Add 2 and 3.", {}, Path("tasks/sum/test.py"))
        cut, stated = (
            complete_record({"task_result": "5", **raw, **more}, task) for more in ({}, {"status": "success"})
        )
        assert (cut["status"], cut["task_result"], "reason" in cut) == ("failed", "", True)
        assert (stated["status"], stated["task_result"], "reason" in stated) == ("success", "5", False)


class TestExecutionTrace:
    def trace(self, *messages: Message) -> Record:
        return {entry["action"]["action_type"]: entry for entry in record_of_messages(messages)["execution_trace"]}

    def test_answers_come_to_their_calls_in_whatever_order(self) -> None:
        calls = (Call("a", {"x": 1}, "1"), Call("b", "no JSON", "2"))
        found = self.trace(
            Message("assistant", calls=calls),
            Message("tool", "B", answered_id="2"),
            Message("tool", "A", answered_id="1"),
        )
        assert found["a"] == {"action": {"x": 1, "action_type": "a"}, "feedback": {"done": False, "message": "A"}}
        assert found["b"]["action"] == {"arguments": "no JSON", "action_type": "b"}
        assert found["b"]["feedback"]["message"] == "B"

    def test_a_call_without_an_answer_and_an_answer_without_a_call(self) -> None:
        found = self.trace(LOOKED, Message("tool", "5.00", answered_id="2"))
        assert found["look"]["feedback"] == {"done": False, "message": "", "answered": False}
        assert len(found) == 1

    def test_an_id_that_comes_again(self) -> None:
        record = record_of_messages([LOOKED, FOUND, LOOKED, Message("tool", "6.00", answered_id="1")])
        assert [entry["feedback"]["message"] for entry in record["execution_trace"]] == ["5.00", "6.00"]

    def test_a_failed_call(self) -> None:
        found = self.trace(LOOKED, Message("tool", "no", answered_id="1", is_error=True))
        assert found["look"]["feedback"] == {"done": False, "message": "no", "error": True}

    def test_an_argument_cannot_pass_for_the_name_of_a_tool(self) -> None:
        assert set(self.trace(Message("assistant", calls=(Call("look", {"action_type": "send_email"}),)))) == {"look"}


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, ""),
        ("one", "one"),
        (["one", {"type": "text", "text": "two"}], "one\ntwo"),
        ([{"type": "refusal", "refusal": "no"}, {"type": "image_url", "image_url": {}}], "no\n[image_url]"),
        ([{"type": "thinking", "thinking": "…"}, {"type": "tool_use", "name": "look"}], ""),
        ([{"type": {}, "text": "one"}], "one"),
        ({"type": "text", "text": "one"}, "one"),
    ],
)
def test_the_text_of_a_content(content: object, text: str) -> None:
    assert text_of(content, "message 1") == text


@pytest.mark.parametrize("content", [7, [None], [[]], True])
def test_a_content_of_another_type(content: object) -> None:
    with pytest.raises(TaskError, match="message 3"):
        text_of(content, "message 3")


@pytest.mark.parametrize(
    ("arguments", "read"),
    [
        ('{"a": 1}', {"a": 1}),
        ("", {}),
        (None, {}),
        ("{", "{"),
        ("[1]", "[1]"),
        ([1], "[1]"),
        ("[" * 99_999, "[" * 99_999),
    ],
)
def test_the_arguments_of_a_call(arguments: object, read: object) -> None:
    assert call_of("look", arguments, "1", "message 1").arguments == read


STORED: list[tuple[str, Callable[[object], Record]]] = [
    ("langchain_dumpd.json", record_from_langchain),
    ("langchain_model_dump.json", record_from_langchain),
    ("openai_chat_completions.json", record_from_openai),
    ("openai_responses.json", record_from_openai),
    ("openinference_langgraph.json", record_from_otel),
    ("openinference_openai.json", record_from_otel),
    ("openllmetry_langgraph.json", record_from_otel),
    ("pydantic_ai.json", record_from_pydantic_ai),
]
ODD = (None, 7, -1.5, True, "", "x", "[]", "{", [], [None], [["a"]], {}, {"a": 1}, {"intValue": "x"}, float("nan"))


def places(data: Any) -> Iterator[tuple[Any, Any]]:
    """Everything in it, by what holds it and under which key."""
    for key in data if isinstance(data, dict) else range(len(data)) if isinstance(data, list) else ():
        yield data, key
        yield from places(data[key])


@pytest.mark.parametrize(("name", "convert"), STORED)
def test_whatever_stands_in_a_transcript_is_read_or_refused(name: str, convert: Callable[[object], Record]) -> None:
    whole = json.loads((Path(__file__).parent / "transcripts" / name).read_bytes())
    chosen = random.Random(name)
    for _ in range(300):
        damaged = copy.deepcopy(whole)
        for holder, key in chosen.sample(list(places(damaged)), 2):
            holder[key] = copy.deepcopy(chosen.choice(ODD))
        with suppress(TaskError):
            assert convert(damaged)["status"] in ("success", "failed")
