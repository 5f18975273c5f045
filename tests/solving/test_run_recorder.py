import json
from pathlib import Path

import pytest
from tasks_and_sandboxes import MakeTask, complete, read_json

from guarantee_email_agent.judging.task import Task
from guarantee_email_agent.solving.agents.agent import Step
from guarantee_email_agent.solving.run_limits import RunLimits
from guarantee_email_agent.solving.run_recorder import RunRecorder
from guarantee_email_agent.solving.tools import ToolCall, ToolResult


@pytest.fixture
def task(make_task: MakeTask) -> Task:
    return make_task()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "sum.json"


@pytest.fixture
def recorder(task: Task, file: Path) -> RunRecorder:
    return RunRecorder(file, task, "llm", RunLimits(), "2026-01-18T10:00:00Z")


def test_arguments_that_json_does_not_know_are_written_as_text(recorder: RunRecorder, file: Path) -> None:
    recorder.add_step(Step("half a pair: \udc80", (ToolCall("1", "note", {"path": Path("/a"), "text": "\udc80"}),)))
    message = read_json(file)["conversation"][0]
    assert json.loads(message["tool_calls"][0]["function"]["arguments"]) == {"path": "/a", "text": "\udc80"}


def test_conversation_of_a_program_has_the_call_before_its_result(recorder: RunRecorder, file: Path) -> None:
    call = complete()
    recorder.start([{"role": "user", "content": "Add."}], {})
    report = {"conversation": [{"role": "user", "content": "40 + 2?"}], "status": "failed", "notes": "mine"}
    recorder.add_step(Step(calls=(call,), record=report))
    recorder.add_result(ToolResult(call, "42", done=True), {"action_type": "task_complete", "result": "42"}, 0.0)
    record = read_json(file)
    assert [message["role"] for message in record["conversation"]] == ["user", "assistant", "tool"]
    assert record["conversation"][0]["content"] == "40 + 2?"
    assert record["conversation"][1]["tool_calls"][0]["id"] == record["conversation"][2]["tool_call_id"]
    assert record["notes"] == "mine"


def test_program_that_names_its_status_does_not_pass_for_done_if_its_run_is_cut_short(
    recorder: RunRecorder, file: Path
) -> None:
    recorder.add_step(Step(calls=(complete(),), record={"status": "success", "finished": True, "reason": None}))
    record = read_json(file)
    assert (record["status"], record["finished"], record["reason"]["code"]) == ("failed", False, "interrupted")
