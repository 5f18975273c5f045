from __future__ import annotations

import io
import json
import logging
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from guarantee_email_agent.config.loader import load_config
from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.eval.suite import MAX_CHUNK, EvalOptions, evaluate
from guarantee_email_agent.utils.errors import ConfigurationError, EvalError, InstructionError

ROOT = Path(__file__).parents[2]
SHIPPED = ROOT / "evals" / "scenarios"
TEMPLATE = (SHIPPED / "valid_warranty_001.yaml").read_text(encoding="utf-8")


@pytest.fixture
def config() -> Config:
    return load_config(cwd=ROOT, environ={})


class Suite:
    """A folder of scenarios made from one that passes."""

    def __init__(self, folder: Path, config: Config) -> None:
        self.folder = folder
        self.config = config

    def write(self, number: int, edit: Callable[[str], str] = str) -> Path:
        path = self.folder / f"valid_warranty_{number:03}.yaml"
        text = TEMPLATE.replace("scenario_id: valid_warranty_001", f"scenario_id: valid_warranty_{number:03}")
        path.write_text(edit(text), encoding="utf-8")
        return path

    def evaluate(self, **options: Any) -> tuple[int, str]:
        """Exit code and what was printed, without the line that tells the time."""
        stream = io.StringIO()
        code = evaluate(EvalOptions(**({"directory": self.folder, "threshold": 99.0} | options)), self.config, stream)
        lines = [line for line in stream.getvalue().splitlines() if not line.startswith("Duration: ")]
        return code, "\n".join(lines)

    def report(self, **options: Any) -> dict[str, Any]:
        path = self.folder / "report.json"
        self.evaluate(json_file=path, run_id="run", started="2026-01-18T10:00:00Z", **options)
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        content.pop("duration_s")
        for result in content["results"]:
            result.pop("processing_time_ms")
            result["actual_output"].pop("processing_time_ms", None)
        return content


def failing(text: str) -> str:
    return text.replace('"warranty is valid"', '"no such phrase"')


def broken(text: str) -> str:
    return text.replace("scenario_id:", "scenario_id: [")


@pytest.fixture
def suite(tmp_path: Path, config: Config) -> Suite:
    folder = tmp_path / "scenarios"
    folder.mkdir()
    return Suite(folder, config)


# The gate ------------------------------------------------------------------------------------------------------------


def test_a_suite_that_passes_ends_in_0(suite: Suite) -> None:
    suite.write(1)

    code, printed = suite.evaluate()

    assert code == 0
    assert "Running evaluation suite... (1 scenario)" in printed
    assert "✓ valid_warranty_001: Customer with valid warranty requests status check" in printed
    assert "Pass rate: 1/1 (100%)" in printed
    assert "🎉 Eval passed! (≥99% threshold)" in printed


def test_a_suite_below_the_threshold_ends_in_4(suite: Suite) -> None:
    suite.write(1)
    suite.write(2, failing)

    code, printed = suite.evaluate()

    assert code == 4
    assert "Pass rate: 1/2 (50.0%)" in printed
    assert "⚠️  Eval failed (<99% threshold)" in printed


def test_a_suite_just_at_the_threshold_passes(suite: Suite) -> None:
    suite.write(1)
    suite.write(2, failing)

    assert suite.evaluate(threshold=50.0)[0] == 0
    assert suite.evaluate(threshold=50.1)[0] == 4


def test_an_empty_folder_is_a_pass_rate_of_0(suite: Suite) -> None:
    code, printed = suite.evaluate()

    assert code == 4
    assert "Pass rate: 0/0 (0.0%)" in printed


def test_a_missing_folder_is_an_error(suite: Suite, tmp_path: Path) -> None:
    with pytest.raises(EvalError, match="does not exist") as caught:
        suite.evaluate(directory=tmp_path / "nowhere")
    assert caught.value.code == "eval_file_not_found"


def test_bad_instructions_are_an_error_before_anything_is_printed(suite: Suite, tmp_path: Path) -> None:
    suite.write(1)
    suite.config = replace(suite.config, instructions=replace(suite.config.instructions, main=tmp_path / "main.md"))

    with pytest.raises(InstructionError):
        suite.evaluate()


# What is printed -----------------------------------------------------------------------------------------------------


def test_passed_scenarios_come_first_and_failed_ones_with_their_reasons(suite: Suite) -> None:
    suite.write(1, failing)
    suite.write(2)

    _, printed = suite.evaluate()

    lines = printed.splitlines()
    assert lines[1].startswith("✓ valid_warranty_002")
    assert lines[2] == "✗ valid_warranty_001: Customer with valid warranty requests status check - FAILED"
    assert lines[3] == "    response_body_contains: missing phrase 'no such phrase'"
    assert lines[4] == "      expected: 'no such phrase'"
    assert lines[5].startswith("      actual:   'Hello, Thank you")


def test_an_invalid_file_counts_and_is_named(suite: Suite, caplog: pytest.LogCaptureFixture) -> None:
    suite.write(1)
    suite.write(2, broken)

    code, printed = suite.evaluate()

    assert code == 4
    assert "Pass rate: 1/2 (50.0%)" in printed
    assert "of which invalid files: 1" in printed
    assert any(message.startswith("Invalid eval file: valid_warranty_002.yaml - ") for message in caplog.messages)


def test_scenarios_run_in_the_order_of_their_files(suite: Suite, caplog: pytest.LogCaptureFixture) -> None:
    for number in (10, 2, 1):
        suite.write(number)

    with caplog.at_level(logging.INFO):
        suite.evaluate()

    assert [message for message in caplog.messages if message.startswith("Executing ") and "/" in message] == [
        "Executing 1/3: valid_warranty_001",
        "Executing 2/3: valid_warranty_002",
        "Executing 3/3: valid_warranty_010",
    ]


def test_a_run_is_told_in_the_log(suite: Suite, caplog: pytest.LogCaptureFixture) -> None:
    suite.write(1)

    with caplog.at_level(logging.INFO):
        suite.evaluate()

    messages = caplog.messages
    assert messages[:3] == [
        "Running in eval mode - using mocks",
        "Using mocked integrations for eval",
        "Discovered 1 eval test cases",
    ]
    assert "Executing eval: valid_warranty_001" in messages
    assert any(message.startswith("Eval suite completed in ") and message.endswith("s") for message in messages)


# Options -------------------------------------------------------------------------------------------------------------


def test_only_runs_what_its_glob_matches(suite: Suite) -> None:
    for number in (1, 2, 12):
        suite.write(number)

    _, printed = suite.evaluate(only="*_01?")

    assert "(1 scenario)" in printed
    assert "valid_warranty_012" in printed


def test_only_counts_an_invalid_file_that_matches(suite: Suite) -> None:
    suite.write(1, broken)
    suite.write(2)

    assert suite.evaluate(only="*_001")[0] == 4
    assert suite.evaluate(only="*_002")[0] == 0


def test_only_that_matches_nothing_fails_with_a_warning(suite: Suite, caplog: pytest.LogCaptureFixture) -> None:
    suite.write(1)

    assert suite.evaluate(only="nothing_*")[0] == 4
    assert "--only nothing_* matches none of the 1 scenario files" in caplog.messages


def test_repeat_runs_each_scenario_as_often_and_counts_it_once(suite: Suite, caplog: pytest.LogCaptureFixture) -> None:
    suite.write(1)

    with caplog.at_level(logging.INFO):
        _, printed = suite.evaluate(repeat=3)

    assert caplog.messages.count("Executing eval: valid_warranty_001") == 3
    assert "Pass rate: 1/1 (100%)" in printed


def test_two_runs_give_the_same_report_byte_for_byte(suite: Suite) -> None:
    suite.write(1)
    suite.write(2, failing)
    suite.write(3, broken)

    assert json.dumps(suite.report()) == json.dumps(suite.report())


@pytest.mark.parametrize("jobs", [2, 3, 50])
def test_several_processes_give_the_same_results_in_the_same_order(jobs: int, suite: Suite) -> None:
    for number in range(1, 14):
        suite.write(number, failing if number % 5 == 0 else broken if number == 7 else str)

    assert suite.report(jobs=jobs) == suite.report(jobs=1)
    assert suite.evaluate(jobs=jobs) == suite.evaluate(jobs=1)


def test_the_shipped_suite_gives_the_same_replies_from_several_processes(suite: Suite) -> None:
    suite.folder = shutil.copytree(SHIPPED, suite.folder, dirs_exist_ok=True)

    assert suite.report(jobs=3) == suite.report(jobs=1)


@pytest.mark.parametrize("jobs", [1, 3])
def test_a_duplicate_id_is_found_across_all_files(jobs: int, suite: Suite, caplog: pytest.LogCaptureFixture) -> None:
    for number in range(1, 31):
        suite.write(number)
    suite.write(99, lambda text: text.replace("valid_warranty_099", "valid_warranty_001"))

    code, printed = suite.evaluate(jobs=jobs)

    assert code == 4
    assert "Pass rate: 30/31" in printed
    assert any("Duplicate scenario_id: valid_warranty_001" in message for message in caplog.messages)


def test_invalid_files_are_logged_from_every_process(suite: Suite, caplog: pytest.LogCaptureFixture) -> None:
    for number in range(1, 9):
        suite.write(number, broken)

    suite.evaluate(jobs=3)

    assert sum(message.startswith("Invalid eval file: ") for message in caplog.messages) == 8


def test_more_scenarios_than_a_chunk_keep_their_order(suite: Suite) -> None:
    count = 2 * MAX_CHUNK + 3
    for number in range(1, count + 1):
        suite.write(number)

    ids = [result["scenario_id"] for result in suite.report(jobs=2)["results"]]

    assert ids == [f"valid_warranty_{number:03}" for number in range(1, count + 1)]


def test_the_json_report_holds_every_result(suite: Suite) -> None:
    suite.write(1)
    suite.write(2, broken)

    report = suite.report()

    assert report["totals"] == {"total": 2, "passed": 1, "failed": 1, "invalid": 1}
    assert (report["gate"], report["llm"], report["run_id"]) == ("failed", "offline", "run")
    assert [result["passed"] for result in report["results"]] == [True, False]


def test_a_junit_report_is_written(suite: Suite, tmp_path: Path) -> None:
    suite.write(1)

    suite.evaluate(junit_file=tmp_path / "report.xml")

    assert "valid_warranty_001" in (tmp_path / "report.xml").read_text(encoding="utf-8")


def test_a_report_that_cannot_be_written_is_an_error(suite: Suite, tmp_path: Path) -> None:
    suite.write(1)

    with pytest.raises(ConfigurationError):
        suite.evaluate(json_file=tmp_path / "nowhere" / "report.json")


# The suite that ships ------------------------------------------------------------------------------------------------


def test_the_shipped_suite_passes(suite: Suite) -> None:
    code, printed = suite.evaluate(directory=SHIPPED)

    assert code == 0, printed


def test_the_shipped_suite_covers_every_scenario_instruction(suite: Suite) -> None:
    results = suite.evaluate(directory=SHIPPED)[1]

    for name in ("valid", "invalid", "missing_info", "graceful_degradation", "out_of_scope", "no_reply"):
        assert f"✓ {name}_" in results
