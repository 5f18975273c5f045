"""From a folder of scenario files to the reports: the whole evaluation in one process and in several."""

import asyncio
import io
import json
from pathlib import Path

import pytest
from scenario_folder import BUILT_IN, SHIPPED, ScenarioFolder, broken, failing

from guarantee_email_agent.eval import EvalLoader, EvalReporter, EvalRunner


@pytest.fixture
def suite(tmp_path: Path) -> ScenarioFolder:
    return ScenarioFolder(tmp_path / "scenarios", BUILT_IN)


def test_a_script_needs_the_names_of_the_package_alone(suite: ScenarioFolder) -> None:
    suite.take("valid_warranty_001", "missing_info_001")
    suite.write(2, failing)
    suite.write(3, broken)

    runner, stream = EvalRunner(suite.config), io.StringIO()
    results = asyncio.run(runner.run_suite(EvalLoader().discover_test_cases(suite.folder)))
    reporter = EvalReporter(stream)
    reporter.print_scenario_results(results)
    reporter.print_summary(results, 0.1)

    assert reporter.calculate_pass_rate(results) == 50.0
    assert "Pass rate: 2/4 (50.0%)" in stream.getvalue()
    passed = [result for result in results if result.passed]
    assert [runner.validate_output(each.test_case.expected_output, each.actual_output) for each in passed] == [
        (True, [])
    ] * 2


def test_two_runs_give_the_same_report_byte_for_byte(suite: ScenarioFolder) -> None:
    suite.write(1)
    suite.write(2, failing)
    suite.write(3, broken)
    assert json.dumps(suite.timeless_report()) == json.dumps(suite.timeless_report())


def test_several_processes_give_the_same_results_in_the_same_order(suite: ScenarioFolder) -> None:
    suite.take(*(file.stem for file in sorted(SHIPPED.rglob("*_00*.yaml"))), origin=SHIPPED)
    for number in range(901, 914):
        suite.write(number, failing if number % 5 == 0 else broken if number == 907 else str)
    assert suite.timeless_report(jobs=3) == suite.timeless_report(jobs=1)
    assert suite.evaluate(jobs=3) == suite.evaluate(jobs=1)


def test_an_answer_to_a_machine_or_to_the_wrong_person_closes_the_gate_alone() -> None:
    cases = EvalLoader().discover_test_cases(SHIPPED)
    harming = [
        case for case in cases if case.category in ("no-reply", "unverified-sender") or case.expected_output.sent_to
    ]
    assert harming
    assert [case.scenario_id for case in harming if not case.must] == []
