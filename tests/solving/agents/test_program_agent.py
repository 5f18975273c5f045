"""Real programs that work on a task."""

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from processes import is_running
from tasks_and_sandboxes import task_context

from guarantee_email_agent.solving.agents.agent import AgentStepError, Step
from guarantee_email_agent.solving.agents.program_agent import ProgramAgent
from guarantee_email_agent.utils.parallel import Interruption

ENDED = "the program says that its run ended in an error"
INSTRUCTION = "Add 40 and 2;\n$(touch x) 'ü'"


def run(*command: str, seconds: float = 30.0, interruption: Interruption | None = None) -> Step:
    return ProgramAgent(task_context(INSTRUCTION, seconds, interruption), command).next_step(())


def python(code: str, **settings: Any) -> Step:
    return run(sys.executable, "-c", code, **settings)


def result(step: Step) -> Mapping[str, Any]:
    (call,) = step.calls
    assert call.name == "task_complete"
    return call.arguments


def test_stdout_is_the_answer() -> None:
    step = run("echo", "42")
    assert (result(step), step.text, step.failure) == ({"result": "42"}, "42", None)


def test_instruction_comes_on_stdin() -> None:
    assert result(run("cat")) == {"result": INSTRUCTION}


def test_instruction_stands_for_its_placeholder_and_no_shell_reads_it(tmp_path: Path) -> None:
    assert result(run("printf", "%s|", "<{instruction}>", "x")) == {"result": f"<{INSTRUCTION}>|x|"}


def test_environment_tells_the_task() -> None:
    step = python("import os, json; print(json.dumps({k: v for k, v in os.environ.items() if k.startswith('TASK_')}))")
    assert json.loads(result(step)["result"]) == {
        "TASK_NAME": "sum",
        "TASK_INSTRUCTION": INSTRUCTION,
        "TASK_SANDBOX_URL": "http://127.0.0.1:8080",
        "TASK_SANDBOX_PORT": "8080",
        "TASK_CLIENT_TYPE": "unified",
    }


def test_record_of_its_run_is_kept() -> None:
    report = {"task_result": "42", "conversation": [{"role": "assistant", "content": "hm"}], "model": "mine"}
    step = python(f"print({json.dumps(report)!r})")
    assert result(step) == {"result": "42"}
    assert (step.record, step.text) == (report, "")
    assert (step.usage.uncounted, step.cost_usd) == (1, None)  # nobody saw what it asked of a model


def test_parts_of_a_record_with_wrong_types_are_left_out() -> None:
    step = python(
        """print('{"task_result": {"a": 1}, "conversation": "x", "execution_trace": {}, "iterations": true}')"""
    )
    assert result(step) == {"result": '{"a": 1}'}
    assert step.record == {"task_result": {"a": 1}}


@pytest.mark.parametrize("text", ['{"answer": 42}', '{"task_result": ', "{}", "[1]", "{'a': 1}"])
def test_other_json_is_an_answer_like_any_text(text: str) -> None:
    step = python(f"print({text!r})")
    assert (result(step), step.record) == ({"result": text}, {})


@pytest.mark.parametrize(
    ("code", "message", "answer"),
    [
        ("""print('{"task_result": "", "status": "failed"}')""", "the program says that it failed", None),
        ("""print('{"task_result": null}')""", "the program gave no answer", None),
        ("""print('{"task_result": "4", "stop_reason": "length"}')""", "the model's answer was cut off: length", None),
        ("""exit(print('{"task_result": "4", "status": "Error", "error": "429"}') or 1)""", f"{ENDED}: 429", "4"),
        ("import sys; print('half'); sys.exit('no key')", "the program ended with exit code 1: no key", "half"),
        ("import os; os.kill(os.getpid(), 9)", "the program ended with signal 9", None),
    ],
    ids=["status", "null", "cut-off", "error", "exit-code", "signal"],
)
def test_program_that_failed_keeps_its_answer(code: str, message: str, answer: str | None) -> None:
    step = python(code)
    assert (step.failure.message, step.failure.retryable) == (message, message.startswith(ENDED))
    assert [call.arguments for call in step.calls] == ([] if answer is None else [{"result": answer}])


def test_program_that_is_not_there_is_no_fault_of_the_agent() -> None:
    with pytest.raises(AgentStepError, match="cannot start 'nonesuch-program'") as caught:
        run("nonesuch-program")
    assert caught.value.reason.retryable


def test_deadline_ends_it_with_all_that_it_started(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    step = run("sh", "-c", f"sleep 300 & echo $! > {file}; wait", seconds=0.5)
    assert step.failure.code == "wall_time"
    assert gone(int(file.read_text()))


def test_what_it_leaves_behind_ends_with_it(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    assert result(run("sh", "-c", f"sleep 300 & echo $! > {file}; echo 42")) == {"result": "42"}
    assert gone(int(file.read_text()))


@pytest.mark.parametrize("where", ["", ">&2"])
def test_endless_output_ends_it(where: str) -> None:
    step = run("sh", "-c", f"yes {where}")
    assert step.failure.code == "command_too_much_output"


def test_bytes_that_are_no_text_do_not_break_it() -> None:
    assert result(python(r"import os; os.write(1, b'a\xff\x00b')")) == {"result": "a\ufffd\0b"}


def gone(pid: int) -> bool:
    """Whether a process ends; being killed takes it a moment."""
    for _ in range(500):
        if not is_running(pid):
            return True
        time.sleep(0.01)
    return False
