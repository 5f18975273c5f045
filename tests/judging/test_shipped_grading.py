from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from elsewhere import Elsewhere

from guarantee_email_agent.config.task_allowance import NOTHING_MORE
from guarantee_email_agent.judging.pending import Pending, Terms, ToJudge
from guarantee_email_agent.judging.shipped_grading import map_shipped
from guarantee_email_agent.judging.task import load_task
from guarantee_email_agent.judging.verdict import Graded, Verdict

TERMS = Terms(timeout_s=None, allowed=NOTHING_MORE)
JUDGE = """\
import os
import helper

def test(result):
    print(__file__)
    if result["task_result"] == "outputs":
        with open(os.path.join(result["record_dir"], "one.outputs", "0001.txt")) as file:
            return {"passed": file.read() == "whole", "feedback": "", "details": {"here": [__file__]}}
    return {"passed": result["task_result"] == helper.ANSWER, "feedback": f"see {__file__}"}
"""


@pytest.fixture
def task(tmp_path: Path) -> Callable[[str], Path]:
    def write(name: str) -> Path:
        folder = tmp_path / "tasks" / name
        folder.mkdir(parents=True)
        (folder / "task.yaml").write_text("instruction: Say hello\n")
        (folder / "test.py").write_text(JUDGE)
        (folder / "helper.py").write_text("ANSWER = 'hello'\n")
        return folder

    return write


def judged(pending: Sequence[Pending]) -> list[Graded]:
    """Elsewhere as here, but for the time that it took."""
    elsewhere = list(map_shipped(TERMS, Elsewhere(), iter(pending), len(pending)))
    here = [each.judge(TERMS) for each in pending]
    timeless = [replace(each, verdict=replace(each.verdict, duration_ms=0)) for each in elsewhere]
    assert timeless == [replace(each, verdict=replace(each.verdict, duration_ms=0)) for each in here]
    return here


def to_judge(folder: Path, record: dict[str, Any] | None) -> Pending:
    return Pending(folder.name, lambda: ToJudge(load_task(folder), record))


def test_verdicts_are_those_of_judges_here(task: Callable[[str], Path]) -> None:
    one, two = task("one"), task("two")
    pending = [
        to_judge(one, {"task_result": "hello"}),
        to_judge(two, {"task_result": "bye"}),
        Pending("three", lambda: Verdict("error", error="there is no record")),
        to_judge(two, {"task_result": "hello"}),
    ]
    verdicts = [graded.verdict for graded in judged(pending)]
    assert [verdict.verdict for verdict in verdicts] == ["passed", "failed", "error", "passed"]
    assert verdicts[1].feedback == f"see {two / 'test.py'}"
    assert verdicts[1].output == f"{two / 'test.py'}\n"


def test_a_judge_itself_is_looked_at(task: Callable[[str], Path]) -> None:
    (graded,) = judged([to_judge(task("one"), None)])
    assert graded.verdict.passed


def test_long_outputs_go_with_the_record(task: Callable[[str], Path], tmp_path: Path) -> None:
    (tmp_path / "results" / "one.outputs").mkdir(parents=True)
    (tmp_path / "results" / "one.outputs" / "0001.txt").write_text("whole")
    record = {"task_result": "outputs", "record_dir": str(tmp_path / "results")}
    (graded,) = judged([to_judge(task("one"), json.loads(json.dumps(record)))])
    assert graded.verdict.passed
