from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from guarantee_email_agent.judging.task import Task
from guarantee_email_agent.judging.verdict import Verdict
from guarantee_email_agent.llm.port import NO_TOKENS
from guarantee_email_agent.solving.run_limits import RunLimits
from guarantee_email_agent.solving.run_recorder import RunRecorder, kept_verdict
from guarantee_email_agent.solving.tools import ToolCall, ToolResult

MakeTask = Callable[..., Task]


def recorder(task: Task, file: Path) -> RunRecorder:
    return RunRecorder(file, task, "llm", RunLimits(), "2026-01-18T10:00:00Z")


def test_first_record_is_that_of_a_run_cut_short(make_task: MakeTask, tmp_path: Path) -> None:
    recorder(make_task(), tmp_path / "sum.json").write()
    record = json.loads((tmp_path / "sum.json").read_text())
    assert (record["status"], record["finished"], record["reason"]["code"]) == ("failed", False, "interrupted")
    assert (record["iterations"], record["task_result"], record["conversation"]) == (0, "", [])


def test_arguments_that_json_does_not_know_are_written_as_text(make_task: MakeTask, tmp_path: Path) -> None:
    kept = recorder(make_task(), tmp_path / "sum.json")
    kept.step("half a pair: \udc80", [ToolCall("1", "note", {"path": Path("/a"), "text": "\udc80"})], NO_TOKENS, 0.0)
    message = json.loads((tmp_path / "sum.json").read_text())["conversation"][0]
    assert json.loads(message["tool_calls"][0]["function"]["arguments"]) == {"path": "/a", "text": "\udc80"}


def test_verdict_comes_back_as_it_was_kept(make_task: MakeTask, tmp_path: Path) -> None:
    task = make_task()
    kept = recorder(task, tmp_path / "sum.json")
    kept.end(None)
    verdict = Verdict("failed", "why", {"score": 0.5}, None, "printed", 3.5)
    kept.judged(verdict)
    assert kept_verdict(json.loads((tmp_path / "sum.json").read_text()), task) == verdict


def test_conversation_of_a_program_has_the_call_before_what_came_of_it(make_task: MakeTask, tmp_path: Path) -> None:
    kept = recorder(make_task(), tmp_path / "sum.json")
    call = ToolCall("call_1", "task_complete", {"result": "42"})
    kept.open([{"role": "user", "content": "Add."}], {})
    kept.step("", [call], NO_TOKENS, 0.0)
    kept.merge({"conversation": [{"role": "user", "content": "40 + 2?"}], "status": "failed", "notes": "mine"})
    kept.tool_result(ToolResult(call, "42", done=True), {"action_type": "task_complete", "result": "42"}, 0.0)
    record = json.loads((tmp_path / "sum.json").read_text())
    assert [message["role"] for message in record["conversation"]] == ["user", "assistant", "tool"]
    assert record["conversation"][0]["content"] == "40 + 2?"
    assert record["conversation"][1]["tool_calls"][0]["id"] == record["conversation"][2]["tool_call_id"]
    assert record["notes"] == "mine"
