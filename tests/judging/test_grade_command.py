"""`grade` over a folder of tasks and one of records."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from tasks_and_sandboxes import write_task

from guarantee_email_agent.judging.grade_command import GradeOptions, grade_command
from guarantee_email_agent.utils.errors import ConfigurationError


class Folders:
    """Tasks b to f and records for a to e; c is no usable task, e no usable record."""

    def __init__(self, folder: Path) -> None:
        self.tasks, self.records, self.report = folder / "tasks", folder / "results", folder / "report.json"
        self.records.mkdir()
        for name in "bcdef":
            write_task(self.tasks / name, "instruction: 1\n" if name == "c" else "instruction: Say 42\n")
        for name, answer in {"a": "42", "b": "42", "c": "42", "d": "41"}.items():
            (self.records / f"{name}.json").write_text(json.dumps({"task_result": answer}))
        (self.records / "e.json").write_text("[]")
        for name in ("_totals.json", ".hidden.json", "notes.txt"):
            (self.records / name).touch()

    def grade(self, jobs: int = 1, executor: str = "local") -> list[dict[str, Any]]:
        options = GradeOptions(
            directory=self.tasks, results=self.records, jobs=jobs, executor=executor, json_file=self.report
        )
        assert grade_command(options, io.StringIO(), io.StringIO(), bytes) == 4
        return json.loads(self.report.read_bytes())["results"]


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path)


@pytest.mark.parametrize("jobs", [1, 3])
def test_every_task_and_every_record_counts_in_the_order_of_the_names(folders: Folders, jobs: int) -> None:
    results = folders.grade(jobs)
    assert [(result["task_name"], result["verdict"]) for result in results] == [
        ("a", "error"),
        ("b", "passed"),
        ("c", "error"),
        ("d", "failed"),
        ("e", "error"),
        ("f", "error"),
    ]
    reasons = {result["task_name"]: str(result["error"]) for result in results}
    assert "there is no task for the record" in reasons["a"]
    assert "a.json" in reasons["a"]
    assert "instruction is the number 1" in reasons["c"]
    assert "e.json: a record is a JSON object" in reasons["e"]
    assert reasons["f"] == "there is no record f.json for this task"


def test_several_records_of_a_task_are_judged_each_and_the_task_passed_where_all_did(folders: Folders) -> None:
    answers = {"f": "42", "b": "41", "dd": "42"}
    lines = [{"task_name": name, "task_result": answers[name]} for name in ("f", "b", "f", "dd")]
    (folders.records / "more.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n{")
    results = folders.grade(jobs=2)
    assert [(each["index"], each["verdict"]) for each in results if each["task_name"] == "b"] == [
        (1, "passed"),
        (2, "failed"),
    ]
    report = json.loads(folders.report.read_bytes())
    assert report["totals"] == {"total": 10, "passed": 3, "failed": 2, "error": 5}
    summed_up = {each.pop("task_name"): each for each in report["tasks"]}
    assert summed_up["b"] == {"passed": False, "records_passed": 1, "records": 2}
    assert summed_up["f"] == {"passed": True, "records_passed": 2, "records": 2}
    assert "index" not in next(each for each in results if each["task_name"] == "d")
    assert "more.jsonl:4 – did you mean 'd'?" in next(each["error"] for each in results if each["task_name"] == "dd")
    assert results[-1]["task_name"] == f"{folders.records}/more.jsonl:5"


def test_a_folder_of_records_among_the_tasks_may_be_a_file_of_lines(folders: Folders) -> None:
    folders.records = folders.tasks / "results" / "runs.jsonl"
    folders.records.parent.mkdir()
    folders.records.write_text('{"task_name": "b", "task_result": "42"}\n')
    results = folders.grade()
    assert [result["task_name"] for result in results] == ["b", "c", "d", "e", "f"]
    assert results[-1]["error"] == f"there is no record of this task in {folders.records}"


@pytest.mark.parametrize(
    ("transcript", "content"),
    [
        ("openai", [{"role": "assistant", "content": "42"}]),
        ("langchain", {"messages": [["human", "Say 42"], ["ai", "42"]]}),
        ("inspect", {"messages": [{"role": "assistant", "content": "42"}]}),
    ],
)
def test_transcripts_of_other_programs(tmp_path: Path, transcript: str, content: object) -> None:
    tasks, file, lines = tmp_path / "tasks", tmp_path / "run.json", tmp_path / "runs.jsonl"
    write_task(tasks / "1", "instruction: Say 42\n")
    file.write_text(json.dumps(content))

    def code(**what: Any) -> int:
        options = GradeOptions(transcript=transcript, **what)
        return grade_command(options, io.StringIO(), io.StringIO(), lambda _: file.read_bytes())

    assert code(directory=tasks / "1", result_file=str(file)) == 0
    assert code(directory=tasks / "1", result_file="-") == 0
    messages = content["messages"] if isinstance(content, dict) else content
    line = json.dumps({"task_name": "1", "messages": messages})
    lines.write_text(f"{line}\n{line}\n")
    assert code(directory=tasks, results=lines) == 0
    lines.write_text(f"{line}\n{{}}\n")
    assert code(directory=tasks, results=lines) == 4


def test_an_answer_is_no_transcript(tmp_path: Path) -> None:
    write_task(tmp_path / "b", "instruction: Say 42\n")
    options = GradeOptions(directory=tmp_path / "b", answer="42", transcript="openai")
    with pytest.raises(ConfigurationError, match="--from says what --result or --results holds"):
        grade_command(options, io.StringIO(), io.StringIO(), bytes)
