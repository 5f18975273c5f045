from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import junitparser
import pytest

from guarantee_email_agent.eval.export import write_json, write_junit
from guarantee_email_agent.eval.models import EvalResult, InvalidScenario
from guarantee_email_agent.utils.errors import ConfigurationError

MISS = "response_body_contains: missing phrase 'a'\n  expected: 'a'\n  actual:   'b'"
Outcome = Callable[..., EvalResult]


def exported(path: Path, results: list[EvalResult], threshold: float | str = 99.0) -> dict[str, Any]:
    write_json(
        path,
        results,
        run_id="r1",
        started="2026-01-18T10:00:00Z",
        duration_s=0.41234,
        llm="offline",
        model="interpreter",
        threshold=threshold,
    )
    report: dict[str, Any] = json.loads(path.read_bytes())
    return report


@pytest.fixture
def invalid() -> EvalResult:
    broken = InvalidScenario("a_1.yaml", "evals/a_1.yaml", "Missing field: created", "eval_missing_field")
    return EvalResult.of_invalid(broken)


class TestJson:
    def test_the_whole_report(self, tmp_path: Path, outcome: Outcome) -> None:
        report = exported(tmp_path / "report.json", [outcome()] * 34 + [outcome(MISS)])
        results = report.pop("results")
        assert report == {
            "schema_version": 1,
            "run_id": "r1",
            "started": "2026-01-18T10:00:00Z",
            "duration_s": 0.412,
            "llm": "offline",
            "model": "interpreter",
            "tokens": {"input": 0, "output": 0, "cache_read": 0, "cache_write": 0},
            "cost_usd": 0.0,
            "totals": {"total": 35, "passed": 34, "failed": 1, "invalid": 0},
            "pass_rate": 97.14,
            "threshold": 99.0,
            "lower_bound_95": 87.1,
            "gate": "failed",
        }
        assert results[-1] == {
            "scenario_id": "valid_warranty_001",
            "file": "evals/scenarios/valid_warranty_001.yaml",
            "description": "Customer asks",
            "category": "valid-warranty",
            "passed": False,
            "failures": [MISS],
            "processing_time_ms": 3,
            "actual_output": {"email_sent": True},
        }

    def test_invalid_files_are_results_too(self, tmp_path: Path, outcome: Outcome, invalid: EvalResult) -> None:
        report = exported(tmp_path / "report.json", [outcome(), invalid])
        assert report["totals"] == {"total": 2, "passed": 1, "failed": 1, "invalid": 1}
        assert report["results"][1]["file"] == "evals/a_1.yaml"
        assert report["results"][1]["failures"] == ["Invalid eval file: a_1.yaml - Missing field: created"]

    @pytest.mark.parametrize(
        ("passed", "failed", "gate", "rate"),
        [(99, 1, "passed", 99.0), (4949, 51, "failed", 98.98), (0, 0, "failed", 0), (1, 0, "passed", 100)],
    )
    def test_gate_and_rate(
        self, tmp_path: Path, outcome: Outcome, passed: int, failed: int, gate: str, rate: float
    ) -> None:
        report = exported(tmp_path / "report.json", [outcome()] * passed + [outcome(MISS)] * failed)
        assert (report["gate"], report["pass_rate"]) == (gate, rate)

    def test_the_rate_is_never_rounded_up_across_the_threshold(self, tmp_path: Path, outcome: Outcome) -> None:
        report = exported(tmp_path / "report.json", [outcome()] * 98_999 + [outcome(MISS)] * 1_001)
        assert (report["gate"], report["pass_rate"]) == ("failed", 98.99)

    def test_any_text_survives(self, tmp_path: Path, outcome: Outcome) -> None:
        odd = "日本 \x1b \u2028 \udcff ü 🎉"
        report = exported(tmp_path / "report.json", [outcome(odd, description=odd)])
        assert report["results"][0]["description"] == odd
        assert report["results"][0]["failures"] == [odd]

    def test_a_former_report_is_replaced_and_nothing_else_is_left(self, tmp_path: Path, outcome: Outcome) -> None:
        (tmp_path / "report.json").write_text("x" * 100_000)
        exported(tmp_path / "report.json", [outcome()])
        assert [file.name for file in tmp_path.iterdir()] == ["report.json"]

    def test_a_link_stays_a_link(self, tmp_path: Path, outcome: Outcome) -> None:
        (tmp_path / "link.json").symlink_to("report.json")
        exported(tmp_path / "link.json", [outcome()])
        assert (tmp_path / "link.json").is_symlink()
        assert (tmp_path / "report.json").is_file()

    @pytest.mark.skipif(not Path("/dev/null").exists(), reason="no devices here")
    def test_a_device_is_written_to_and_not_replaced(self, outcome: Outcome) -> None:
        write_junit("/dev/null", [outcome()], duration_s=0)
        assert not Path("/dev/null").is_file()

    @pytest.mark.parametrize("name", ["absent/report.json", "folder", "file/report.json", "nul\0.json"])
    def test_a_path_that_cannot_be_written(self, tmp_path: Path, outcome: Outcome, name: str) -> None:
        (tmp_path / "folder").mkdir()
        (tmp_path / "file").touch()
        with pytest.raises(ConfigurationError, match="the report cannot be written") as caught:
            exported(tmp_path / name, [outcome()])
        assert (caught.value.code, caught.value.exit_code) == ("eval_report_unwritable", 2)
        assert sorted(os.listdir(tmp_path)) == ["file", "folder"]


class TestJunit:
    def test_failures_and_invalid_files(self, tmp_path: Path, outcome: Outcome, invalid: EvalResult) -> None:
        write_junit(tmp_path / "junit.xml", [outcome(), outcome(MISS, took_ms=1500), invalid], duration_s=1.5)
        (suite,) = junitparser.JUnitXml.fromfile(str(tmp_path / "junit.xml"))
        assert (suite.tests, suite.failures, suite.errors, suite.time) == (3, 1, 1, 1.5)
        passed, failed, broken = suite
        assert (passed.name, passed.classname, passed.is_passed) == ("valid_warranty_001", "valid-warranty", True)
        (failure,) = failed.result
        assert isinstance(failure, junitparser.Failure)
        assert (failure.message, failure.text) == ("response_body_contains: missing phrase 'a'", MISS)
        assert failed.time == 1.5
        (error,) = broken.result
        assert isinstance(error, junitparser.Error)
        assert error.message == "Invalid eval file: a_1.yaml - Missing field: created"

    def test_text_that_xml_cannot_hold_is_written_out(self, tmp_path: Path, outcome: Outcome) -> None:
        write_junit(tmp_path / "junit.xml", [outcome("crash: \x00\x1b \ud800 \uffff <&> 日本")], duration_s=0)
        (suite,) = junitparser.JUnitXml.fromfile(str(tmp_path / "junit.xml"))
        (case,) = suite
        assert case.result[0].text == "crash: \\x00\\x1b \\ud800 \\uffff <&> 日本"

    def test_no_scenario(self, tmp_path: Path) -> None:
        write_junit(tmp_path / "junit.xml", [], duration_s=0)
        (suite,) = junitparser.JUnitXml.fromfile(str(tmp_path / "junit.xml"))
        assert suite.tests == 0

    def test_a_path_that_cannot_be_written(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigurationError, match="the report cannot be written"):
            write_junit(tmp_path / "absent" / "junit.xml", [], duration_s=0)
