from __future__ import annotations

from pathlib import Path
from typing import Any

from stored_runs import stored_run

from guarantee_email_agent.judging.grade_report import as_cases
from guarantee_email_agent.judging.verdict import Graded, Verdict
from guarantee_email_agent.runlog.records import Case
from guarantee_email_agent.runlog.views.report import Report
from guarantee_email_agent.runlog.views.stored_report import task_report

PASSED = Graded("six", Verdict("passed", "That is 42.", {"said": 42}, output="hello", duration_ms=5))
FAILED = Graded("seven", Verdict("failed", "41 is wrong.\nIt is 42.", output="a\nb\n", duration_ms=6))
ERROR = Graded("eight", Verdict("error", error="gave no verdict within 60 s", duration_ms=60_000))


def cases(*results: Graded, tasks: Path = Path("tasks")) -> list[Case]:
    return list(as_cases((each for each in results), tasks, ""))


def report(*results: Graded, **run: Any) -> Report:
    known = {"command": "grade", "suite": str(Path("tasks").absolute()), "planned": len(results)}
    return task_report(stored_run(**known | run), cases(*results))


def test_what_came_of_the_whole() -> None:
    made = report(FAILED, PASSED, ERROR)
    assert (made.gate, made.title, made.rate) == ("failed", "Grade failed: 33.3% of tasks", "33.3%")
    assert report(PASSED).gate == "passed"
    assert report().gate == "failed"
    assert report(PASSED, planned=2, outcome="interrupted").gate == "undecided"
    assert report(PASSED, FAILED, options={"validate": True}).rate == ""  # of judges, not of an agent


def test_each_verdict_has_its_reason_and_the_judge_that_it_comes_from(tmp_path: Path) -> None:
    (tmp_path / "six").mkdir()
    (tmp_path / "six" / "test.py").touch()
    made = cases(FAILED, PASSED, ERROR, tasks=tmp_path)
    assert [(case.verdict, list(map(str, case.failed_checks)), case.shown.position) for case in made] == [
        ("failed", ["41 is wrong.\nIt is 42."], 1),
        ("passed", [], 2),
        ("error", ["gave no verdict within 60 s"], 3),
    ]
    (alone,) = cases(PASSED, tasks=tmp_path / "six")
    assert [case.shown.file for case in (*made, alone)] == ["", judge := str(tmp_path / "six" / "test.py"), "", judge]


def test_records_of_one_task_are_cases_of_their_own_and_summed_up() -> None:
    both = (Graded("six", each.verdict, index, 2) for index, each in enumerate((PASSED, FAILED), 1))
    made = report(*both, ERROR)
    rows = [made.json_case(case) for case in made.cases]
    assert [(case.name, row.get("index"), row["output"]) for case, row in zip(made.cases, rows, strict=True)] == [
        ("six (1 of 2)", 1, "hello"),
        ("six (2 of 2)", 2, "a\nb\n"),
        ("eight", None, ""),
    ]
    assert (rows[0]["eval"], rows[2]["eval"]) == (
        {"passed": True, "feedback": "That is 42.", "details": {"said": 42}},
        None,
    )
    assert made.summary["tasks"] == [
        {"task_name": "six", "passed": False, "records_passed": 1, "records": 2},
        {"task_name": "eight", "passed": False, "records_passed": 0, "records": 1},
    ]
