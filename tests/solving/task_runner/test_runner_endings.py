"""How a run ends, from an empty sandbox to a verdict: limits, failures of the agent and of others, its record
meanwhile, what a judge finds in it, and what the next call does.
"""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from tasks_and_sandboxes import MakeTask, complete, shell, tool_call

from guarantee_email_agent.judging.task import Task
from guarantee_email_agent.llm.port import TokenUsage
from guarantee_email_agent.solving.agents.agent import AgentStepError, Step
from guarantee_email_agent.solving.run_limits import RunLimits
from guarantee_email_agent.solving.run_recorder import usage_of
from guarantee_email_agent.utils.errors import AgentError

WORK = (shell("true"),)


@pytest.mark.parametrize(
    ("step", "limits", "code", "message"),
    [
        (Step("a"), {"max_iterations": 2}, "max_iterations", "was not done after 2 steps"),
        (
            Step(calls=WORK, usage=TokenUsage(input_tokens=60)),
            *({"max_tokens": 100}, "max_tokens", "used 120 tokens, more than the 100 allowed"),
        ),
        (Step(calls=WORK, cost_usd=0.6), {"max_cost_usd": 1}, "max_cost", "cost $1.2000, more than the $1 allowed"),
    ],
    ids=["steps", "tokens", "cost"],
)
def test_limit_ends_a_run(
    bench: Any, make_task: MakeTask, caplog: Any, step: Step, limits: Mapping[str, Any], code: str, message: str
) -> None:
    record = bench.run(make_task(), step, step, step, limits=RunLimits(**limits))
    assert (record["status"], record["iterations"], record["finished"]) == ("failed", 2, True)
    assert record["reason"] == {"code": code, "message": message}
    assert len(record["execution_trace"]) == len(step.calls)
    assert f"sum: the agent failed: {message}" in caplog.text
    assert record["eval"]["verdict"] == "failed"


def test_time_runs_out(bench: Any, make_task: MakeTask) -> None:
    def slow() -> Step:
        bench.clock._skipped += 100
        return Step(calls=(shell("touch late"), complete()))

    record = bench.run(make_task(), slow, limits=RunLimits(wall_time_s=60))
    assert (record["status"], record["reason"]["code"]) == ("failed", "wall_time")
    assert record["execution_trace"] == []
    assert list(bench.sandboxes.opened["sum"].folder.iterdir()) == []


def test_answer_in_the_step_that_broke_a_limit_is_kept(bench: Any, make_task: MakeTask) -> None:
    step = Step(calls=(shell("touch late"), complete()), usage=TokenUsage(input_tokens=101))
    record = bench.run(make_task(), step, limits=RunLimits(max_tokens=100))
    assert (record["status"], record["task_result"], record["reason"]["code"]) == ("failed", "42", "max_tokens")
    assert list(bench.sandboxes.opened["sum"].folder.iterdir()) == []


def test_one_step_without_a_known_price_leaves_the_cost_unknown(bench: Any, make_task: MakeTask) -> None:
    record = bench.run(make_task(), Step("a", cost_usd=None), Step(calls=(complete(),), cost_usd=1.0))
    assert record["cost_usd"] is None


def test_failure_of_the_agent_is_judged(bench: Any, make_task: MakeTask) -> None:
    record = bench.run(make_task(), AgentStepError("gave up", "gave_up"))
    assert (record["status"], record["finished"]) == ("failed", True)
    assert record["reason"] == {"code": "gave_up", "message": "gave up"}
    assert record["eval"]["verdict"] == "failed"


def test_what_is_not_the_agents_fault_is_an_error_and_repeated(bench: Any, make_task: MakeTask) -> None:
    task = make_task()
    record = bench.run(task, AgentStepError("the model is away", "model_error", {"retryable": True, "lost": 1}))
    assert (record["tokens"], record["cost_usd"]) == (None, None)  # what the lost answer took nobody knows
    assert (record["finished"], record["eval"]["verdict"]) == (False, "error")
    assert record["eval"]["error"] == "the model is away. The next call repeats this task"
    assert bench.runner().earlier_run(task) is None


def test_sandbox_that_does_not_start_is_an_error(bench: Any, make_task: MakeTask) -> None:
    def broken(_: Task) -> Any:
        raise AgentError("bubblewrap is not installed", "sandbox_missing")

    record = bench.run(make_task(), open_sandbox=broken)
    assert (record["status"], record["reason"]["code"]) == ("failed", "sandbox_error")
    assert "bubblewrap is not installed" in record["eval"]["error"]


@pytest.mark.parametrize(
    "change",
    [
        {"finished": False},
        {"eval": None},
        {"eval": {"verdict": "splendid"}},
        {"digests": None},
        {"digests": {"work": "sha256:other"}},
    ],
    ids=str,
)
def test_other_records_are_not_finished(bench: Any, make_task: MakeTask, change: Mapping[str, Any]) -> None:
    task = make_task(settings="judge_network: true\n")
    record = bench.run(task, Step(calls=(complete(),)))
    (bench.out_dir / "sum.json").write_text(json.dumps({**record, **change}))
    assert bench.runner().earlier_run(task) is None


def test_program_may_tell_its_own_run_but_not_what_we_know(bench: Any, make_task: MakeTask) -> None:
    report = {"conversation": [{"role": "assistant", "content": "hm"}], "iterations": 7, "notes": "mine"}
    forged = {"status": "success", "eval": {"verdict": "passed"}, "sandbox": {}, "finished": True, "task_name": "x"}
    record = bench.run(make_task(), Step(calls=(complete("41"),), record={**report, **forged}))
    assert (record["iterations"], record["notes"], record["task_name"]) == (7, "mine", "sum")
    assert bench.run(make_task(), Step(calls=(complete(),), record=forged))["iterations"] == 0  # it does not say
    assert record["conversation"][0] == {"role": "assistant", "content": "hm"}
    assert record["eval"]["verdict"] == "failed"
    assert record["sandbox"]["docker_port"]


def test_interruption_between_the_answer_and_the_judge_keeps_the_answer(bench: Any, make_task: MakeTask) -> None:
    task = make_task()

    def answer() -> Step:
        bench.agents[0].close = interrupt
        return Step(calls=(complete(),))

    def interrupt() -> None:
        runner.interruption.request()
        bench.sandboxes.opened["sum"].stop()

    runner = bench.runner(answer)
    assert runner.run(task).verdict.error == "the run was interrupted. The next call repeats this task"
    record = bench.record(task)
    assert (record["status"], record["task_result"], record["finished"]) == ("success", "42", True)
    assert "eval" not in record
    assert bench.runner().judge_again(task).verdict.verdict == "passed"


def test_bug_of_an_agent_costs_its_task_alone(bench: Any, make_task: MakeTask) -> None:
    task = make_task()
    record = bench.run(task, Step(calls=(shell("echo one"),)), ZeroDivisionError("by zero"))
    assert (record["reason"]["code"], record["finished"], record["eval"]["verdict"]) == ("crashed", False, "error")
    assert record["eval"]["error"] == "unexpected ZeroDivisionError: by zero. The next call repeats this task"
    assert record["execution_trace"][0]["feedback"]["message"] == "one"
    assert bench.sandboxes.opened["sum"].stops == 1


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
    taken, record = bench.runner(*steps).run(task).verdict.usage, bench.record(task)
    assert taken[:6] == (2, 200, 40, 10, 0, 0.75)
    for told in ({"tokens": None}, {"tokens": {"input": 10**30, "output": 1}}, {"tokens": {"input": "x"}}):
        assert (usage_of(record | told).tokens(), usage_of(record | told).cost_usd) == (None, None)
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
