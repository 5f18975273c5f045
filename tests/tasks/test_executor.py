"""A task from an empty sandbox to a verdict, with agents that do as they are told."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from guarantee_email_agent.llm.prices import TokenUsage
from guarantee_email_agent.tasks.controllers.port import Briefing, ControllerError, Turn
from guarantee_email_agent.tasks.executor import TaskExecutor
from guarantee_email_agent.tasks.limits import Limits
from guarantee_email_agent.tasks.models import Task
from guarantee_email_agent.tasks.tools import Outcome, ToolCall
from guarantee_email_agent.utils.clock import SkippingClock
from guarantee_email_agent.utils.errors import AgentError, TaskError

CONTRACT_KEYS = {
    "task_name", "instruction", "status", "iterations", "task_result", "conversation", "execution_trace", "sandbox",
}  # fmt: skip


def call(name: str, **arguments: Any) -> ToolCall:
    return ToolCall(f"id_{name}", name, arguments)


def shell(command: str) -> ToolCall:
    return call("shell_execute", command=command)


def done(result: str = "42") -> ToolCall:
    return call("task_complete", result=result)


class Agent:
    """Gives its turns one after the other; a turn may also be an error, or a function that looks around first."""

    def __init__(self, briefing: Briefing, turns: Sequence[Any]) -> None:
        self.briefing = briefing
        self.turns = list(turns)
        self.told: list[Sequence[Outcome]] = []
        self.closed = 0

    def opening(self) -> Sequence[Mapping[str, Any]]:
        return [{"role": "user", "content": self.briefing.instruction}]

    def next_turn(self, outcomes: Sequence[Outcome]) -> Turn:
        self.told.append(outcomes)
        turn = self.turns.pop(0) if self.turns else Turn("still thinking")
        if callable(turn):
            turn = turn()
        if isinstance(turn, BaseException):
            raise turn
        assert isinstance(turn, Turn)
        return turn

    def close(self) -> None:
        self.closed += 1


class Bench:
    """An executor whose agents are kept, and its records."""

    def __init__(self, sandboxes: Any, out_dir: Path) -> None:
        self.sandboxes = sandboxes
        self.out_dir = out_dir
        self.clock = SkippingClock()
        self.agents: list[Agent] = []

    def executor(self, *turns: Any, limits: Limits | None = None, **settings: Any) -> TaskExecutor:
        def make(briefing: Briefing) -> Agent:
            self.agents.append(Agent(briefing, turns))
            return self.agents[-1]

        return TaskExecutor(
            settings.pop("controller", make),
            "script",
            settings.pop("open_sandbox", self.sandboxes),
            limits or Limits(),
            self.out_dir,
            started=lambda: "2026-01-18T10:00:00Z",
            connect=self.sandboxes.connect,
            clock=self.clock,
            **settings,
        )

    def run(self, task: Task, *turns: Any, **settings: Any) -> dict[str, Any]:
        self.executor(*turns, **settings).run(task)
        return self.record(task)

    def record(self, task: Task) -> dict[str, Any]:
        record: dict[str, Any] = json.loads((self.out_dir / f"{task.name}.json").read_text())
        return record


@pytest.fixture
def bench(sandboxes: Any, tmp_path: Path) -> Bench:
    (tmp_path / "results").mkdir()
    return Bench(sandboxes, tmp_path / "results")


MakeTask = Callable[..., Task]


def test_record_of_a_finished_task_has_everything(bench: Bench, make_task: MakeTask) -> None:
    task = make_task(settings="owner: somebody\n")
    usage = TokenUsage(100, 20, 5, 0)
    turns = (
        Turn("Let me look.", (shell("echo hello"),), usage, 0.25, "some-model"),
        Turn("", (done(),), usage, 0.5, "some-model"),
    )
    record = bench.run(task, *turns)
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


def test_trace_and_conversation_have_the_shapes_that_judges_know(bench: Bench, make_task: MakeTask) -> None:
    record = bench.run(make_task(), Turn("Look.", (shell("echo hello"),)), Turn(calls=(done(),)))
    for step in record["execution_trace"]:
        assert isinstance(step.pop("duration_ms"), int)
    assert record["execution_trace"] == [
        {"action": {"action_type": "shell", "command": "echo hello"}, "feedback": {"done": False, "message": "hello"}},
        {"action": {"action_type": "task_complete", "result": "42"}, "feedback": {"done": True, "message": "42"}},
    ]
    assert record["conversation"] == [
        {"role": "user", "content": "Add 40 and 2."},
        {
            "role": "assistant",
            "content": "Look.",
            "tool_calls": [
                {
                    "id": "id_shell_execute",
                    "type": "function",
                    "function": {"name": "shell_execute", "arguments": '{"command": "echo hello"}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "id_shell_execute", "name": "shell_execute", "content": "hello"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {
                    "id": "id_task_complete",
                    "type": "function",
                    "function": {"name": "task_complete", "arguments": '{"result": "42"}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "id_task_complete", "name": "task_complete", "content": "42"},
    ]


def test_agent_is_told_what_came_of_its_calls(bench: Bench, make_task: MakeTask) -> None:
    bench.run(make_task(), Turn(calls=(shell("echo one"), call("nonesuch"))), Turn(calls=(done(),)))
    first, second = bench.agents[0].told
    assert first == ()
    assert [(outcome.error, outcome.message[:17]) for outcome in second] == [
        (False, "one"),
        (True, "There is no tool "),
    ]


@pytest.mark.parametrize("place", [0, 1, 2])
def test_task_complete_among_other_calls_keeps_its_result(bench: Bench, make_task: MakeTask, place: int) -> None:
    calls = [shell("touch a"), shell("touch b")]
    calls.insert(place, done())
    record = bench.run(make_task(), Turn(calls=tuple(calls)))
    assert (record["status"], record["task_result"], len(record["execution_trace"])) == ("success", "42", 3)
    assert {path.name for path in bench.sandboxes.opened["sum"].folder.iterdir()} == {"a", "b"}


def test_first_of_two_answers_counts(bench: Bench, make_task: MakeTask) -> None:
    assert bench.run(make_task(), Turn(calls=(done("42"), done("43"))))["task_result"] == "42"


def test_task_complete_without_a_result_does_not_end_the_task(bench: Bench, make_task: MakeTask) -> None:
    record = bench.run(make_task(), Turn(calls=(call("task_complete"),)), Turn(calls=(done(),)))
    assert (record["status"], record["iterations"]) == ("success", 2)


def test_verdict_is_kept_in_the_record(bench: Bench, make_task: MakeTask) -> None:
    record = bench.run(make_task(), Turn(calls=(done("41"),)))
    assert (record["eval"]["verdict"], record["eval"]["passed"]) == ("failed", False)
    assert record["eval"]["feedback"] == "answered '41'"
    assert (record["eval"]["details"], record["eval"]["error"]) == ({}, None)


def test_judge_sees_the_sandbox_as_the_agent_left_it(bench: Bench, make_task: MakeTask) -> None:
    judge = """
import urllib.request, json
def test(result):
    request = urllib.request.Request(result["sandbox"]["base_url"] + "/v1/file/read", b'{"file": "/sum.txt"}')
    content = json.load(urllib.request.urlopen(request, timeout=5))["data"]["content"]
    return {"passed": content == "42\\n", "feedback": content}
"""
    task = make_task(judge=judge, settings="judge_network: true\n")
    graded = bench.executor(Turn(calls=(shell("echo 42 > sum.txt"), done("done")))).run(task)
    assert (graded.verdict.verdict, graded.verdict.error) == ("passed", None)


def test_record_is_on_disk_before_the_judge_starts(bench: Bench, make_task: MakeTask) -> None:
    judge = f"""
import json, pathlib
def test(result):
    kept = json.loads(pathlib.Path({str(bench.out_dir)!r}, "sum.json").read_text())
    return {{"passed": kept["task_result"] == "42" and kept["finished"] and not kept.get("eval"), "feedback": ""}}
"""
    assert bench.run(make_task(judge=judge), Turn(calls=(done(),)))["eval"]["verdict"] == "passed"


def test_crashing_judge_costs_the_verdict_and_not_the_record(bench: Bench, make_task: MakeTask) -> None:
    record = bench.run(make_task(judge="import os\nos._exit(0)\n"), Turn(calls=(done(),)))
    assert (record["eval"]["verdict"], record["eval"]["passed"]) == ("error", False)
    assert (record["status"], record["task_result"]) == ("success", "42")


def test_every_step_is_on_disk_before_the_next(bench: Bench, make_task: MakeTask) -> None:
    task = make_task()
    seen: list[tuple[int, int, str, Any]] = []

    def look(turn: Turn) -> Callable[[], Turn]:
        def looking() -> Turn:
            record = bench.record(task)
            seen.append((record["iterations"], len(record["execution_trace"]), record["status"], record["finished"]))
            return turn

        return looking

    bench.run(task, look(Turn(calls=(shell("true"), shell("true")))), look(Turn("…")), look(Turn(calls=(done(),))))
    assert seen == [(0, 0, "failed", False), (1, 2, "failed", False), (2, 2, "failed", False)]


def test_crash_leaves_a_valid_record_of_the_steps_before(bench: Bench, make_task: MakeTask) -> None:
    task = make_task()
    with pytest.raises(KeyboardInterrupt):
        bench.run(task, Turn(calls=(shell("echo one"),)), KeyboardInterrupt())
    record = bench.record(task)
    assert set(record) >= CONTRACT_KEYS
    assert (record["status"], record["reason"]["code"], record["finished"]) == ("failed", "interrupted", False)
    assert record["execution_trace"][0]["feedback"]["message"] == "one"
    assert (bench.agents[0].closed, bench.sandboxes.opened["sum"].stops) == (1, 1)
    assert bench.executor().finished(task) is None


def test_turns_run_out(bench: Bench, make_task: MakeTask) -> None:
    record = bench.run(make_task(), Turn("a"), Turn("b"), Turn("c"), limits=Limits(max_iterations=2))
    assert (record["status"], record["iterations"], record["finished"]) == ("failed", 2, True)
    assert record["reason"] == {"code": "max_iterations", "message": "was not done after 2 turns"}
    assert record["eval"]["verdict"] == "failed"


def test_time_runs_out(bench: Bench, make_task: MakeTask) -> None:
    def slow() -> Turn:
        bench.clock._skipped += 100
        return Turn(calls=(shell("touch late"), done()))

    record = bench.run(make_task(), slow, limits=Limits(wall_time_s=60))
    assert (record["status"], record["reason"]["code"]) == ("failed", "wall_time")
    assert record["execution_trace"] == []
    assert list(bench.sandboxes.opened["sum"].folder.iterdir()) == []


def test_tokens_run_out(bench: Bench, make_task: MakeTask) -> None:
    turn = Turn(calls=(shell("true"),), usage=TokenUsage(input=60))
    record = bench.run(make_task(), turn, turn, turn, limits=Limits(max_tokens=100))
    assert (record["status"], record["iterations"], record["tokens"]["total"]) == ("failed", 2, 120)
    assert record["reason"] == {"code": "max_tokens", "message": "used 120 tokens, more than the 100 allowed"}
    assert len(record["execution_trace"]) == 1


def test_cost_runs_out(bench: Bench, make_task: MakeTask) -> None:
    turn = Turn(calls=(shell("true"),), cost_usd=0.6)
    record = bench.run(make_task(), turn, turn, turn, limits=Limits(max_cost_usd=1))
    assert (record["status"], record["cost_usd"], record["reason"]["code"]) == ("failed", 1.2, "max_cost")


def test_answer_in_the_turn_that_broke_a_limit_is_kept(bench: Bench, make_task: MakeTask) -> None:
    turn = Turn(calls=(shell("touch late"), done()), usage=TokenUsage(input=101))
    record = bench.run(make_task(), turn, limits=Limits(max_tokens=100))
    assert (record["status"], record["task_result"], record["reason"]["code"]) == ("failed", "42", "max_tokens")
    assert list(bench.sandboxes.opened["sum"].folder.iterdir()) == []


def test_one_turn_without_a_known_price_leaves_the_cost_unknown(bench: Bench, make_task: MakeTask) -> None:
    record = bench.run(make_task(), Turn("a", cost_usd=None), Turn(calls=(done(),), cost_usd=1.0))
    assert record["cost_usd"] is None


def test_failure_of_the_agent_is_judged(bench: Bench, make_task: MakeTask) -> None:
    record = bench.run(make_task(), ControllerError("gave up", "gave_up"))
    assert (record["status"], record["finished"]) == ("failed", True)
    assert record["reason"] == {"code": "gave_up", "message": "gave up"}
    assert record["eval"]["verdict"] == "failed"


def test_what_is_not_the_agents_fault_is_an_error_and_repeated(bench: Bench, make_task: MakeTask) -> None:
    task = make_task()
    record = bench.run(task, ControllerError("the model is away", "model_error", {"again": True}))
    assert (record["finished"], record["eval"]["verdict"]) == (False, "error")
    assert record["eval"]["error"] == "the model is away. The next call repeats this task"
    assert bench.executor().finished(task) is None


def test_sandbox_that_does_not_start_is_an_error(bench: Bench, make_task: MakeTask) -> None:
    def broken(_: Task) -> Any:
        raise AgentError("bubblewrap is not installed", "sandbox_missing")

    record = bench.run(make_task(), open_sandbox=broken)
    assert (record["status"], record["reason"]["code"]) == ("failed", "sandbox_error")
    assert "bubblewrap is not installed" in record["eval"]["error"]


def test_agent_that_ends_its_sandbox_has_failed(bench: Bench, make_task: MakeTask) -> None:
    def end() -> Turn:
        bench.sandboxes.opened["sum"].stop()
        return Turn(calls=(shell("true"),))

    record = bench.run(make_task(), end, Turn(calls=(shell("true"),)))
    assert (record["reason"]["code"], record["iterations"], record["finished"]) == ("sandbox_lost", 1, True)
    assert record["eval"]["verdict"] == "failed"


def test_wrong_client_type_is_an_error_before_a_sandbox_starts(bench: Bench, make_task: MakeTask) -> None:
    graded = bench.executor().run(make_task(settings="client_type: wide\n"))
    assert graded.verdict.verdict == "error"
    assert bench.sandboxes.opened == {}


def test_finished_task_has_its_verdict_again(bench: Bench, make_task: MakeTask) -> None:
    task = make_task()
    executor = bench.executor(Turn(calls=(done(),)))
    assert executor.finished(task) is None
    graded = executor.run(task)
    assert executor.finished(task) == graded


@pytest.mark.parametrize(
    "change",
    [
        {"finished": False},
        {"eval": None},
        {"eval": {"verdict": "splendid"}},
        {"instruction": "Add 40 and 3."},
    ],
    ids=str,
)
def test_other_records_are_not_finished(bench: Bench, make_task: MakeTask, change: Mapping[str, Any]) -> None:
    task = make_task()
    record = bench.run(task, Turn(calls=(done(),)))
    (bench.out_dir / "sum.json").write_text(json.dumps({**record, **change}))
    assert bench.executor().finished(task) is None


def test_half_a_record_is_not_finished(bench: Bench, make_task: MakeTask) -> None:
    (bench.out_dir / "sum.json").write_text('{"finished": true, ')
    assert bench.executor().finished(make_task()) is None


def test_record_that_cannot_be_written_ends_the_call(bench: Bench, make_task: MakeTask) -> None:
    bench.out_dir.rmdir()
    with pytest.raises(TaskError, match="record cannot be written"):
        bench.run(make_task(), Turn(calls=(done(),)))


def test_program_may_tell_its_own_run_but_not_what_we_know(bench: Bench, make_task: MakeTask) -> None:
    told = {"conversation": [{"role": "assistant", "content": "hm"}], "iterations": 7, "notes": "mine"}
    forged = {"status": "success", "eval": {"verdict": "passed"}, "sandbox": {}, "finished": True, "task_name": "x"}
    record = bench.run(make_task(), Turn(calls=(done("41"),), record={**told, **forged}))
    assert (record["iterations"], record["notes"], record["task_name"]) == (7, "mine", "sum")
    assert record["conversation"][0] == {"role": "assistant", "content": "hm"}
    assert record["eval"]["verdict"] == "failed"
    assert record["sandbox"]["docker_port"]


def test_interruption_from_another_thread_ends_a_command_that_hangs(bench: Bench, make_task: MakeTask) -> None:
    task, reached = make_task(), threading.Event()

    def hang() -> Turn:
        reached.set()
        while not bench.agents[0].briefing.stop.requested():
            pass
        raise ControllerError("stopped", "wall_time")

    executor = bench.executor(hang)
    thread = threading.Thread(target=executor.run, args=(task,))
    thread.start()
    assert reached.wait(10)
    executor.interrupt()
    thread.join(10)
    assert not thread.is_alive()
    assert bench.record(task)["reason"]["code"] == "interrupted"
