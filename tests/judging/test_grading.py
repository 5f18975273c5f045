from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tasks_and_sandboxes import write_task

from guarantee_email_agent.judging.grading import grade, validate_task
from guarantee_email_agent.judging.task import load_task
from guarantee_email_agent.judging.verdict import Verdict
from guarantee_email_agent.utils.errors import TaskError

WANTS_42 = """\
def test(result):
    passed = str(result["task_result"]).strip() == "42"
    return {"passed": passed, "feedback": f"said {result['task_result']}"}
"""
SHOWS_ALL = """\
def test(result):
    return {"passed": True, "feedback": "", "details": {"result": result}}
"""


def make_task(folder: Path, judge: str = WANTS_42, task_yaml: str = "instruction: What is six times seven?\n") -> Path:
    return write_task(folder, task_yaml, judge)


class TestGrade:
    def test_an_answer(self, tmp_path: Path) -> None:
        task = make_task(tmp_path / "six")
        assert (grade(task, "42").verdict, grade(task, "41").verdict) == ("passed", "failed")

    def test_a_record_with_nothing_but_an_answer(self, tmp_path: Path) -> None:
        verdict = grade(make_task(tmp_path / "six"), {"task_result": "42"})
        assert (verdict.verdict, verdict.feedback, verdict.error) == ("passed", "said 42", None)

    def test_the_judge_sees_a_complete_record(self, tmp_path: Path) -> None:
        task = make_task(tmp_path / "six", SHOWS_ALL, "instruction: Say 42\nwanted: 42\n")
        seen = grade(str(task), {"task_result": "41", "model": "m", "wanted": 41, "eval": {"passed": True}})
        assert seen.details["result"] == {
            "task_name": "six",
            "instruction": "Say 42",
            "status": "success",
            "iterations": 0,
            "task_result": "41",
            "conversation": [],
            "execution_trace": [],
            "sandbox": {},
            "model": "m",
            "wanted": 42,
        }

    def test_a_judge_that_crashes_is_an_error_and_no_exception(self, tmp_path: Path) -> None:
        verdict = grade(make_task(tmp_path / "six", "def test(result):\n    return 1 / 0\n"), "42")
        assert verdict.verdict == "error"
        assert str(verdict.error).startswith("test.py raised ZeroDivisionError")

    def test_a_directory_that_is_no_task(self, tmp_path: Path) -> None:
        with pytest.raises(TaskError, match="does not exist"):
            grade(tmp_path / "absent", "42")

    @pytest.mark.parametrize("result", [None, 42, b"42", ["42"], Path("six.json")], ids=repr)
    def test_what_is_no_result(self, tmp_path: Path, result: Any) -> None:
        with pytest.raises(TaskError, match=r"six: a value of type \w+ is no result\. Pass a record such as") as caught:
            grade(make_task(tmp_path / "six"), result)
        assert caught.value.code == "task_record_invalid"

    @pytest.mark.parametrize("timeout_s", [0, -1, float("inf"), float("nan"), 1e9])
    def test_what_is_no_deadline(self, tmp_path: Path, timeout_s: float) -> None:
        with pytest.raises(TaskError, match="Pass seconds above 0 and at most 86400") as caught:
            grade(make_task(tmp_path / "six"), "42", timeout_s=timeout_s)
        assert caught.value.code == "task_invalid_value"

    def test_a_record_of_any_objects_is_a_verdict_all_the_same(self, tmp_path: Path) -> None:
        class Mute:
            def __str__(self) -> str:
                raise RuntimeError("no words")

        task = make_task(tmp_path / "six")
        assert grade(task, {"task_result": {42}}).feedback == "said {42}"
        assert str(grade(task, {"task_result": Mute()}).error).endswith("is no JSON: no words")

    def test_the_deadline_of_the_task_and_that_of_the_caller(self, tmp_path: Path) -> None:
        forever = "def test(result):\n    while True:\n        pass\n"
        task = make_task(tmp_path / "six", forever, "instruction: Wait\njudge_timeout_s: 0.5\n")
        assert "0.5 s" in str(grade(task, "42").error)
        assert "0.3 s" in str(grade(task, "42", timeout_s=0.3).error)

    def test_it_is_the_function_that_the_package_offers(self) -> None:
        from guarantee_email_agent import judging as tasks

        assert (tasks.grade, tasks.Verdict) == (grade, Verdict)
        with pytest.raises(AttributeError, match="no attribute 'graed'"):
            tasks.graed  # noqa: B018

    def test_the_package_itself_loads_nothing(self) -> None:
        program = "import sys, guarantee_email_agent.judging; sys.exit('ryaml' in sys.modules or 'json' in sys.modules)"
        assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


class TestValidation:
    def test_a_careful_judge(self, tmp_path: Path) -> None:
        verdict = validate_task(load_task(make_task(tmp_path / "six")))
        assert (verdict.verdict, verdict.feedback) == ("passed", "rejects all 8 negative controls")
        assert all(said["verdict"] == "failed" for said in verdict.details.values())

    @pytest.mark.parametrize(
        ("condition", "control"),
        [
            ("result['status'] == 'failed'", "an empty record"),
            ("result['task_result'] == ''", "an empty answer"),
            ("'six' in str(result['task_result'])", "the instruction echoed back"),
            (
                "'six' in str(result['conversation']) and not result['task_result']",
                "the instruction alone in the conversation",
            ),
            ("isinstance(result['task_result'], float)", "an answer that is a number"),
            ("isinstance(result['task_result'], list)", "an answer that is a list"),
            ("isinstance(result['task_result'], dict)", "an answer that is a mapping"),
            ("'docker_port' in result['sandbox']", "entries of odd types"),
        ],
    )
    def test_a_judge_that_passes_what_is_no_solution(self, tmp_path: Path, condition: str, control: str) -> None:
        judge = f"def test(result):\n    return {{'passed': bool({condition}), 'feedback': 'fine'}}\n"
        verdict = validate_task(load_task(make_task(tmp_path / "six", judge)))
        assert verdict.verdict == "failed"
        assert verdict.details[control] == {"verdict": "passed", "said": "fine"}
        assert control in verdict.feedback
        assert verdict.feedback.endswith(": passes, but must not: fine")

    def test_a_judge_that_crashes_on_odd_types(self, tmp_path: Path) -> None:
        judge = (
            "def test(result):\n    print('here')\n"
            "    return {'passed': result['task_result'].strip() == '42', 'feedback': ''}\n"
        )
        verdict = validate_task(load_task(make_task(tmp_path / "six", judge)))
        assert verdict.verdict == "failed"
        assert "an answer that is a list: no verdict: test.py raised AttributeError" in verdict.feedback
        assert "here" in verdict.output

    def test_a_judge_that_does_not_load_is_told_of_once(self, tmp_path: Path) -> None:
        verdict = validate_task(load_task(make_task(tmp_path / "six", "def test(result)\n")))
        assert verdict.verdict == "failed"
        assert verdict.feedback.startswith("every control: no verdict: test.py")
        assert len(verdict.feedback.splitlines()) == 1
