from __future__ import annotations

from pathlib import Path

import pytest
import sample_reports

from guarantee_email_agent.reporting.report import GroupTotals, relative_to, totals_by_group


def test_those_that_did_not_pass_come_first() -> None:
    report = sample_reports.report()
    assert [case.outcome for case in report.failed_first()] == ["failed", "invalid", "passed", "passed"]


def test_totals_by_group_and_language() -> None:
    assert totals_by_group(sample_reports.report().cases) == [
        GroupTotals("missing-info", "de", 1, 1),
        GroupTotals("missing-info", "en", 0, 1),
        GroupTotals("valid-warranty", "en", 1, 2),
    ]


def test_a_case_takes_as_long_as_all_of_its_runs() -> None:
    run = sample_reports.case().runs[0]
    assert sample_reports.case(runs=(run, run)).duration_ms == 6.0


def test_a_file_elsewhere_keeps_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert relative_to(str(tmp_path / "a" / "b.yaml")) == relative_to("a/b.yaml") == "a/b.yaml"
    assert relative_to("/elsewhere/b.yaml") == "/elsewhere/b.yaml"
