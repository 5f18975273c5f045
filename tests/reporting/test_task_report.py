from __future__ import annotations

from pathlib import Path
from typing import Any

from guarantee_email_agent.judging.task_report import task_report

from guarantee_email_agent.judging.verdict import Graded, Verdict
from guarantee_email_agent.reporting.report import Report

PASSED = Graded("six", Verdict("passed", "That is 42.", {"said": 42}, output="hello", duration_ms=5))
FAILED = Graded("seven", Verdict("failed", "41 is wrong.\nIt is 42.", output="a\nb\n", duration_ms=6))
ERROR = Graded("eight", Verdict("error", error="gave no verdict within 60 s", duration_ms=60_000))


def report(*results: Graded, directory: Path = Path("tasks"), **changes: Any) -> Report:
    known = {"planned": len(results), "interrupted": False, "measures_agent": True}
    return task_report("grade", directory, results, 1.5, **known | changes)


def test_what_came_of_the_whole() -> None:
    made = report(FAILED, PASSED, ERROR)
    assert (made.gate, made.verdict, made.rate) == ("failed", "Grade failed", "33.3%")
    assert report(PASSED).gate == "passed"
    assert report().gate == "failed"


def test_a_run_that_was_stopped() -> None:
    assert report(PASSED, planned=2, interrupted=True).gate == "undecided"


def test_a_check_of_judges_says_nothing_of_an_agent() -> None:
    assert report(PASSED, FAILED, measures_agent=False).rate == ""


def test_each_verdict_has_its_reason() -> None:
    cases = report(FAILED, PASSED, ERROR).cases
    assert [(case.outcome, list(map(str, case.failed_checks))) for case in cases] == [
        ("failed", ["41 is wrong.\nIt is 42."]),
        ("passed", []),
        ("error", ["gave no verdict within 60 s"]),
    ]
    assert cases[0].output == "a\nb\n"
    assert cases[1].judgement == {"feedback": "That is 42.", "details": {"said": 42}}


def test_a_case_names_the_judge_that_it_comes_from(tmp_path: Path) -> None:
    (tmp_path / "six").mkdir()
    (tmp_path / "six" / "test.py").touch()
    in_folder, missing = report(PASSED, FAILED, directory=tmp_path).cases
    alone = report(PASSED, directory=tmp_path / "six").cases[0]
    assert in_folder.file == alone.file == str(tmp_path / "six" / "test.py")
    assert missing.file == ""
