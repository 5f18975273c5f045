"""A task from an empty sandbox to a verdict: the record while it happens, and what a judge finds in it."""

from __future__ import annotations

from typing import Any

import pytest
from tasks_and_sandboxes import MakeTask, complete, shell, tool_call

from guarantee_email_agent.llm.port import TokenUsage
from guarantee_email_agent.solving.agents.agent import Step

CONTRACT_KEYS = {
    "task_name", "instruction", "status", "iterations", "task_result", "conversation", "execution_trace", "sandbox",
}  # fmt: skip


def test_record_of_a_finished_task_has_everything(bench: Any, make_task: MakeTask) -> None:
    task = make_task(settings="owner: somebody\n")
    usage = TokenUsage(100, 20, 5, 0)
    steps = (
        Step("Let me look.", (shell("echo hello"),), usage, 0.25, "some-model"),
        Step("", (complete(),), usage, 0.5, "some-model"),
    )
    record = bench.run(task, *steps)
    assert set(record) >= CONTRACT_KEYS
    assert (record["task_name"], record["instruction"], record["owner"]) == ("sum", "Add 40 and 2.", "somebody")
    assert (record["status"], record["iterations"], record["task_result"]) == ("success", 2, "42")
    assert (record["finished"], record["reason"], record["controller"]) == (True, None, "script")
    assert (record["model"], record["cost_usd"]) == ("some-model", 0.75)
    assert record["tokens"] == {"input": 200, "output": 40, "cache_read": 10, "cache_write": 0, "total": 250}
    assert record["timings"].keys() == {"started", "sandbox_s", "agent_s", "tools_s", "judge_s"}
    sandbox = bench.sandboxes.opened["sum"]
    assert record["sandbox"] == {
        "docker_port": sandbox.docker_port, "client_type": "unified", "base_url": sandbox.base_url, "kind": "embedded",
        "gaps": [],
    }  # fmt: skip


def called(tool: str, arguments: str, content: str = "") -> dict[str, Any]:
    call = {"id": f"id_{tool}", "type": "function", "function": {"name": tool, "arguments": arguments}}
    return {"role": "assistant", "content": content, "tool_calls": [call]}


def test_trace_and_conversation_have_the_shapes_that_judges_know(bench: Any, make_task: MakeTask) -> None:
    record = bench.run(make_task(), Step("Look.", (shell("echo hello"),)), Step(calls=(complete(),)))
    for step in record["execution_trace"]:
        assert isinstance(step.pop("duration_ms"), int)
    assert record["execution_trace"] == [
        {"action": {"action_type": "shell", "command": "echo hello"}, "feedback": {"done": False, "message": "hello"}},
        {"action": {"action_type": "task_complete", "result": "42"}, "feedback": {"done": True, "message": "42"}},
    ]
    assert record["conversation"] == [
        {"role": "user", "content": "Add 40 and 2."},
        called("shell_execute", '{"command": "echo hello"}', "Look."),
        {"role": "tool", "tool_call_id": "id_shell_execute", "name": "shell_execute", "content": "hello"},
        called("task_complete", '{"result": "42"}'),
        {"role": "tool", "tool_call_id": "id_task_complete", "name": "task_complete", "content": "42"},
    ]


@pytest.mark.parametrize("place", [0, 1, 2])
def test_task_complete_among_other_calls_keeps_its_result(bench: Any, make_task: MakeTask, place: int) -> None:
    calls = [shell("touch a"), shell("touch b")]
    calls.insert(place, complete())
    record = bench.run(make_task(), Step(calls=tuple(calls)))
    assert (record["status"], record["task_result"], len(record["execution_trace"])) == ("success", "42", 3)
    assert {path.name for path in bench.sandboxes.opened["sum"].folder.iterdir()} == {"a", "b"}


def test_first_of_two_answers_counts(bench: Any, make_task: MakeTask) -> None:
    assert bench.run(make_task(), Step(calls=(complete("42"), complete("43"))))["task_result"] == "42"


def test_task_complete_without_a_result_does_not_end_the_task(bench: Any, make_task: MakeTask) -> None:
    record = bench.run(make_task(), Step(calls=(tool_call("task_complete"),)), Step(calls=(complete(),)))
    assert (record["status"], record["iterations"]) == ("success", 2)


def test_judge_sees_the_sandbox_as_the_agent_left_it(bench: Any, make_task: MakeTask) -> None:
    judge = """
import urllib.request, json
def test(result):
    request = urllib.request.Request(result["sandbox"]["base_url"] + "/v1/file/read", b'{"file": "/sum.txt"}')
    content = json.load(urllib.request.urlopen(request, timeout=5))["data"]["content"]
    return {"passed": content == "42\\n", "feedback": content}
"""
    task = make_task(judge=judge)
    graded = bench.runner(Step(calls=(shell("echo 42 > sum.txt"), complete("done")))).run(task)
    assert (graded.verdict.verdict, graded.verdict.error) == ("passed", None)


def test_crashing_judge_costs_the_verdict_and_not_the_record(bench: Any, make_task: MakeTask) -> None:
    record = bench.run(make_task(judge="import os\nos._exit(0)\n"), Step(calls=(complete(),)))
    assert (record["eval"]["verdict"], record["eval"]["passed"]) == ("error", False)
    assert (record["status"], record["task_result"]) == ("success", "42")
