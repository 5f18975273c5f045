"""`grade` over a folder of tasks and one of records."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from tasks_and_sandboxes import write_task

from guarantee_email_agent.judging.grade_command import GradeOptions, grade_command
from guarantee_email_agent.utils.errors import TaskError


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

    def grade(self, jobs: int = 1) -> list[dict[str, Any]]:
        options = GradeOptions(directory=self.tasks, results_dir=self.records, jobs=jobs, json_file=self.report)
        assert grade_command(options, io.StringIO(), io.StringIO(), bytes) == 4
        results: list[dict[str, Any]] = json.loads(self.report.read_bytes())["results"]
        return results


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


def test_a_folder_of_records_that_is_not_there(folders: Folders) -> None:
    folders.records = folders.records / "absent"
    with pytest.raises(TaskError, match="the folder of records does not exist") as caught:
        folders.grade()
    assert (caught.value.code, caught.value.exit_code) == ("task_results_not_found", 2)
