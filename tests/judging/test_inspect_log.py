"""Samples as the logs of Inspect have them."""

import pytest

from guarantee_email_agent.judging import record_from_inspect
from guarantee_email_agent.utils.errors import TaskError

SAMPLE = {"id": "größe", "epoch": 1, "messages": [{"role": "assistant", "content": "42"}], "output": None}


class TestSample:
    def test_an_error(self) -> None:
        sample = {**SAMPLE, "error": {"message": "boom", "traceback": "…"}}
        record = record_from_inspect(sample)
        assert (record["status"], record["reason"]) == ("failed", {"code": "inspect_error", "message": "boom"})
        for said in ({"author": "ann", "reason": "leaked"}, {"author": "ann", "reason": None}):
            record = record_from_inspect({**sample, "invalidation": said})
            message = said["reason"] or "invalidation"
            assert (record["status"], record["reason"]["message"]) == ("error", message)

    def test_an_output_that_is_in_no_message_and_an_attachment(self) -> None:
        sample = {
            "messages": [{"role": "user", "content": "attachment://ab"}],
            "output": {"completion": "42"},
            "attachments": {"ab": "6 × 7?"},
            "metadata": {"task_result": "43"},
        }
        record = record_from_inspect(sample)
        assert (record["task_result"], record["status"]) == ("42", "success")
        assert record["conversation"] == [{"role": "user", "content": "6 × 7?"}]

    @pytest.mark.parametrize(("limit", "answer"), [(None, "Done. 5"), ({"type": "message"}, "")])
    def test_an_answer_that_was_submitted_by_a_tool(self, limit: object, answer: str) -> None:
        call = {"id": "1", "function": "submit", "arguments": {"answer": "5"}}
        messages = [{"role": "assistant", "content": "Done. 5", "tool_calls": [call]}, {"role": "tool", "content": "5"}]
        record = record_from_inspect({"messages": messages, "output": {"completion": "Done. 5"}, "limit": limit})
        assert (record["task_result"], record["status"]) == (answer, "success" if answer else "failed")

    def test_a_tool_that_failed(self) -> None:
        call = {"id": "1", "function": "look", "arguments": {"at": 1}, "type": "function"}
        error = {"type": "timeout", "message": "too slow"}
        served = {"type": "tool_use", "id": "s", "name": "search", "arguments": '{"q": 1}', "result": "", "error": "no"}
        messages = [
            {"role": "assistant", "content": [served, {"type": "text", "text": "?"}], "tool_calls": [call]},
            {"role": "tool", "content": "", "tool_call_id": "1", "error": error},
        ]
        searched, entry = record_from_inspect({"messages": messages})["execution_trace"]
        assert searched["action"] == {"q": 1, "action_type": "search"}
        assert searched["feedback"] == {"done": False, "message": "no", "error": True}
        assert entry["feedback"] == {"done": False, "message": "too slow", "error": True}

    @pytest.mark.parametrize(
        ("sample", "said"),
        [
            ({}, "the sample has no 'messages'"),
            (None, "the sample is null"),
            ({"messages": []}, "the transcript has no messages"),
            ({"messages": [{"content": "x"}]}, "message 1 has no role"),
        ],
    )
    def test_what_is_none(self, sample: object, said: str) -> None:
        with pytest.raises(TaskError, match=said):
            record_from_inspect(sample)
