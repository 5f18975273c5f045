import json
import socket
import subprocess
import sys
from collections import UserDict
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from tasks_and_sandboxes import write_task

from guarantee_email_agent.config.task_allowance import TaskAllowance
from guarantee_email_agent.judging.grading import grade, validate_task
from guarantee_email_agent.judging.judge import JudgePool
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


class Mute:
    def __str__(self) -> str:
        raise RuntimeError("no words")


class Torn(UserDict[str, str]):
    def __getitem__(self, key: str) -> str:
        raise OSError("its file is closed")


ENDLESS: dict[str, Any] = {"task_result": "42"}
ENDLESS["conversation"] = [ENDLESS]


class TestGrade:
    def test_an_answer(self, tmp_path: Path) -> None:
        task = make_task(tmp_path / "six")
        assert (grade(task, "42").verdict, grade(task, "41").verdict) == ("passed", "failed")

    @pytest.mark.parametrize(
        ("said", "ended"),
        [
            ({"reason": {"code": "api", "message": "HTTP 529"}}, "ended in an error"),
            ({"status": "Error", "error": "HTTP 529"}, "ended in an error"),
            ({"status": "failed", "finished": False, "digests": {}, "error": "HTTP 529"}, "did not come to its end"),
        ],
    )
    def test_a_record_of_a_run_that_ended_in_an_error_is_no_failure_and_no_pass(
        self, tmp_path: Path, said: dict[str, Any], ended: str
    ) -> None:
        verdict = grade(make_task(tmp_path / "six"), {"task_result": "42", "status": "error", **said})
        assert verdict.verdict == "error"
        assert str(verdict.error).endswith(f" {ended}, which is no failure of the agent: HTTP 529")

    def test_the_instruction_of_a_record_whose_task_has_none(self, tmp_path: Path) -> None:
        task = write_task(tmp_path / "six", None, SHOWS_ALL)
        assert grade(task, {"instruction": "Say 42"}).details["result"]["instruction"] == "Say 42"
        assert grade(task, "42").details["result"]["instruction"] == ""
        echo = 'def test(result): return {"passed": result["task_result"] in ("42", "Say 42"), "feedback": ""}'
        verdict = validated(write_task(tmp_path / "echo", None, echo), instruction="Say 42")
        assert verdict.feedback.startswith("the instruction echoed back: passes, but must not")

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

    def test_a_task_that_asks_for_more_time_than_is_allowed_is_not_judged(self, tmp_path: Path) -> None:
        task = make_task(tmp_path / "six", task_yaml="instruction: Say 42\njudge_timeout_s: 601\n")
        problem = (
            f"{task}/task.yaml: judge_timeout_s asks for 601, and 600 is allowed. Pass --allow judge_timeout_s=601"
        )
        assert grade(task, "42").error == problem
        assert validate_task(load_task(task)).details["an empty answer"] == {"verdict": "error", "said": problem}
        assert grade(task, "42", allowed=TaskAllowance(judge_timeout_s=601)).verdict == "passed"

    def test_the_callers_deadline_counts_whatever_the_task_asks_for(self, tmp_path: Path) -> None:
        hangs = "import time\ndef test(result):\n    time.sleep(60)\n"
        task = make_task(tmp_path / "six", hangs, "instruction: Say 42\njudge_timeout_s: 86400\n")
        assert "within 0.2 s" in str(grade(task, "42", timeout_s=0.2).error)

    @pytest.mark.parametrize("result", [None, 42, b"42", ["42"], Path("six.json")], ids=repr)
    def test_what_is_no_result(self, tmp_path: Path, result: Any) -> None:
        with pytest.raises(TaskError, match=r"six: a value of type \w+ is no result\. Pass a record such as") as caught:
            grade(make_task(tmp_path / "six"), result)
        assert caught.value.code == "task_record_invalid"

    @pytest.mark.parametrize("timeout_s", [0, -1, float("inf"), float("nan"), 1e9, "5", True, [1], b"5"])
    def test_what_is_no_deadline(self, tmp_path: Path, timeout_s: Any) -> None:
        with pytest.raises(TaskError, match="Pass seconds above 0 and at most 86400") as caught:
            grade(make_task(tmp_path / "six"), "42", timeout_s=timeout_s)
        assert caught.value.code == "task_invalid_value"

    def test_objects_that_json_lacks_reach_the_judge_as_text(self, tmp_path: Path) -> None:
        task = make_task(tmp_path / "six")
        assert grade(task, {"task_result": {42}}).feedback == "said {42}"
        assert grade(task, {"task_result": float("nan")}).feedback == "said nan"
        assert grade(task, MappingProxyType({"task_result": "42"})).verdict == "passed"

    @pytest.mark.parametrize(
        ("record", "said"),
        [
            ({"conversation": [{"content": Mute()}]}, "is no JSON: no words"),
            ({"conversation": [{"content": b"42"}]}, "is no JSON: it holds bytes"),
            ({"conversation": [{"content": {(1, 2): 3}}]}, "is no JSON: keys must be"),
            (MappingProxyType({"task_result": b"42"}), "is no JSON: it holds bytes"),
            (ENDLESS, "is no JSON: Circular reference"),
            (Torn(task_result="42"), "is no JSON: its file is closed"),
            ({"messages": []}, "has 'messages' and no task_result"),
            ({b"task_result": "42"}, "has the key b'task_result', which is no text"),
        ],
        ids=["mute", "bytes", "keys", "another mapping", "endless", "torn", "messages", "bytes as a key"],
    )
    def test_a_record_that_is_no_json(self, tmp_path: Path, record: Any, said: str) -> None:
        with pytest.raises(TaskError, match=f"six: the record {said}") as caught:
            grade(make_task(tmp_path / "six"), record)
        assert caught.value.code == "task_record_invalid"

    def test_the_package_itself_loads_nothing(self) -> None:
        program = "import sys, guarantee_email_agent.judging; sys.exit('ryaml' in sys.modules or 'json' in sys.modules)"
        assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def validated(task: Path, correct: object = "42", *, instruction: str | None = None, **terms: Any) -> Verdict:
    """correct, instruction: of the record that the judge has to pass; the first is None for no record."""
    if correct is not None:
        place = task.parent / "_records" / "correct" / f"{task.name}.json"
        place.parent.mkdir(parents=True)
        place.write_text(json.dumps({"task_result": correct, "instruction": instruction}), encoding="utf-8")
    return validate_task(load_task(task), **terms)


class TestValidation:
    def test_a_careful_judge(self, tmp_path: Path) -> None:
        verdict = validated(make_task(tmp_path / "six"))
        said = "passes the correct record, and rejects all 9 negative controls"
        assert (verdict.verdict, verdict.feedback) == ("passed", said)
        assert [said["verdict"] for said in verdict.details.values()] == ["passed", *["failed"] * 9]

    @pytest.mark.parametrize(
        ("condition", "control"),
        [
            ("result['status'] == 'failed'", "an empty record"),
            ("result['task_result'] == ''", "an empty answer"),
            ("len(str(result['task_result']).split()) > 9", "a fluent answer that says nothing"),
            ("'six' in str(result['task_result'])", "the instruction echoed back"),
            (
                "'six' in str(result['conversation']) and not result['task_result']",
                "the instruction alone in the conversation",
            ),
            ("isinstance(result['task_result'], float)", "an answer that is NaN"),
            ("isinstance(result['task_result'], list)", "an answer that is a list"),
            ("isinstance(result['task_result'], dict)", "an answer that is a mapping"),
            ("'docker_port' in result['sandbox']", "entries of odd types"),
        ],
    )
    def test_a_judge_that_passes_what_is_no_solution(self, tmp_path: Path, condition: str, control: str) -> None:
        passed = f"result['task_result'] == '42' or bool({condition})"
        judge = f"def test(result):\n    return {{'passed': {passed}, 'feedback': 'fine'}}\n"
        verdict = validated(make_task(tmp_path / "six", judge))
        assert verdict.verdict == "failed"
        assert verdict.details[control] == {"verdict": "passed", "said": "fine"}
        assert control in verdict.feedback
        assert verdict.feedback.endswith(": passes, but must not: fine")

    @pytest.mark.parametrize(
        ("condition", "correct", "said"),
        [
            ("False", "42", "the correct record: fails, but must pass: no"),
            (
                "result['task_result'] == '42'",
                None,
                "the correct record: there is none, so that nobody knows whether anything passes. Write ",
            ),
        ],
    )
    def test_a_judge_of_which_nobody_saw_it_pass(
        self, tmp_path: Path, condition: str, correct: str | None, said: str
    ) -> None:
        judge = f"def test(result):\n    return {{'passed': {condition}, 'feedback': 'no'}}\n"
        verdict = validated(make_task(tmp_path / "six", judge), correct)
        assert (verdict.verdict, verdict.feedback.startswith(said)) == ("failed", True)

    @pytest.mark.parametrize("said", ["time.time_ns()", "random.random()"])
    def test_a_judge_that_says_something_else_each_time(self, tmp_path: Path, said: str) -> None:
        judge = (
            "import random, time\ndef test(result):\n"
            f"    return {{'passed': result['task_result'] == '42', 'feedback': '', 'details': {{'at': {said}}}}}\n"
        )
        verdict = validated(make_task(tmp_path / "six", judge))
        assert verdict.verdict == "failed"
        assert "the correct record: is judged otherwise when it is judged again: passed" in verdict.feedback

    def test_a_judge_that_crashes_on_odd_types(self, tmp_path: Path) -> None:
        judge = (
            "def test(result):\n    print('here')\n"
            "    return {'passed': result['task_result'].strip() == '42', 'feedback': ''}\n"
        )
        verdict = validated(make_task(tmp_path / "six", judge))
        assert verdict.verdict == "passed"
        odd = "an answer that is NaN, an answer that is a list, an answer that is a mapping"
        assert verdict.feedback == f"passes the correct record, and none of 9 negative controls, but crashes on {odd}"
        assert verdict.details["an answer that is a list"]["verdict"] == "error"

    @pytest.mark.parametrize("how", ["sys.exit(0)", "while True: pass", "return {'passed': 1}"])
    def test_a_judge_that_ends_in_another_way_on_odd_types(self, tmp_path: Path, how: str) -> None:
        judge = (
            "import sys\ndef test(result):\n    if not isinstance(result['task_result'], str):\n"
            f"        {how}\n    return {{'passed': result['task_result'] == '42', 'feedback': ''}}\n"
        )
        verdict = validated(make_task(tmp_path / "six", judge), timeout_s=0.7)
        assert (verdict.verdict, len(verdict.feedback.splitlines())) == ("failed", 1)

    @pytest.mark.parametrize("condition", ["result['task_result']", "'six' not in result['task_result']"])
    def test_a_judge_that_crashes_on_what_any_agent_may_say(self, tmp_path: Path, condition: str) -> None:
        judge = f"def test(result):\n    assert {condition}\n    return {{'passed': False, 'feedback': ''}}\n"
        verdict = validated(make_task(tmp_path / "six", judge))
        assert verdict.verdict == "failed"
        assert ": no verdict: test.py raised AssertionError" in verdict.feedback

    @pytest.mark.parametrize(
        ("body", "correct"),
        [
            (
                "found = re.search('<answer>(.*)</answer>', result['task_result']); passed = found and found[1] == '3'",
                "<answer>3</answer>",
            ),
            ("passed = isinstance(result['task_result'], (int, float)) and abs(result['task_result']) < 1e-9", 0),
            ("passed = isinstance(result['task_result'], list) and sorted(result['task_result']) == [1, 2]", [2, 1]),
            (
                "found = re.search('[{].*}', result['task_result']); passed = found and json.loads(found[0])['n'] == 3",
                '{"n": 3}',
            ),
        ],
    )
    def test_honest_judges_of_numbers_lists_and_forms(self, tmp_path: Path, body: str, correct: object) -> None:
        judge = (
            f"import json, re\ndef test(result):\n    {body}\n    return {{'passed': bool(passed), 'feedback': ''}}\n"
        )
        verdict = validated(make_task(tmp_path / "six", judge), correct)
        assert (verdict.verdict, verdict.error) == ("passed", None), verdict.feedback


class TestTheSandboxOfARecord:
    """Its port can be reached where the task asks, and so can the whole network where the operator allows it, too."""

    CONNECT = """\
import socket
def test(result):
    for port in result["expected"]:
        socket.create_connection(("localhost", port), 10).close()
    return {"passed": True, "feedback": ""}
"""

    def grade(self, folder: Path, task_yaml: str, *, named: object, others: bool = False, **how: Any) -> Verdict:
        with socket.create_server(("127.0.0.1", 0)) as sandbox, socket.create_server(("127.0.0.1", 0)) as other:
            ports = [listener.getsockname()[1] for listener in (sandbox, other)]
            settings = f"instruction: Look\nexpected: {ports[: 1 + others]}\n{task_yaml}"
            task = make_task(folder / "look", self.CONNECT, settings)
            named = ports[0] if named is None else named
            return grade(task, {"task_result": "", "sandbox": {"docker_port": named}}, **how)

    def test_it_can_be_looked_into(self, tmp_path: Path) -> None:
        assert self.grade(tmp_path, "judge_network: true\n", named=None).error is None

    def test_not_where_the_task_does_not_ask(self, tmp_path: Path) -> None:
        assert "a judge has no network" in str(self.grade(tmp_path, "", named=None).error)

    LOOK = "urllib.request.urlopen('http://127.0.0.1:8080/')"

    @pytest.mark.parametrize(
        ("looks", "named", "passes", "verdict"),
        [
            (LOOK, 8080, False, "error"),
            (LOOK, 8080, True, "passed"),
            (LOOK, None, False, "failed"),
            ("subprocess.run(['true', 'http://127.0.0.1:8080/'])", 8080, False, "error"),
            ("os.system('true http://127.0.0.1:8080/')", 8080, False, "error"),
            ("subprocess.run(['true'])", 8080, False, "failed"),
        ],
    )
    def test_a_judge_that_was_kept_from_it_knows_of_no_failure(
        self, tmp_path: Path, looks: str, named: int | None, passes: bool, verdict: str
    ) -> None:
        judge = f"""\
import os, subprocess, urllib.request
def test(result):
    try:
        {looks}
    except OSError:
        pass
    return {{"passed": {passes}, "feedback": "no such file"}}
"""
        judged = grade(make_task(tmp_path / "look", judge), {"sandbox": {"docker_port": named}})
        assert judged.verdict == verdict
        said = (
            "at port 8080 that the record names, and was kept from it, so that its 'failed' says nothing of the agent"
        )
        assert (said in str(judged.error)) == (verdict == "error")
        assert verdict != "error" or "('no such file'). Add judge_network: true to task.yaml" in str(judged.error)

    @pytest.mark.parametrize("named", [0, -1, 65_536, True, "8080", 1.5, [], {}])
    def test_a_record_that_names_no_port(self, tmp_path: Path, named: object) -> None:
        error = str(self.grade(tmp_path, "judge_network: true\n", named=named).error)
        assert "a judge has no network" in error

    def test_nothing_else_is_reached(self, tmp_path: Path) -> None:
        with JudgePool() as pool:
            if not pool.isolation().namespaces:
                pytest.skip(f"this machine has no namespaces for judges: {pool.isolation().why}")
        error = str(self.grade(tmp_path, "judge_network: true\n", named=None, others=True).error)
        assert "ConnectionRefusedError" in error

    def test_all_of_the_network_where_it_is_allowed(self, tmp_path: Path) -> None:
        allowed = TaskAllowance(network=True)
        assert self.grade(tmp_path, "judge_network: true\n", named=None, others=True, allowed=allowed).error is None
        assert "a judge has no network" in str(self.grade(tmp_path / "2", "", named=None, allowed=allowed).error)
