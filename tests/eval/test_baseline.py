"""A run of the suite that is held against an earlier one."""

import json
from pathlib import Path

import pytest
from kept_suite import KeptSuite
from scenario_folder import failing

from guarantee_email_agent.utils.errors import AgentError


@pytest.fixture
def suite(tmp_path: Path) -> KeptSuite:
    suite = KeptSuite(tmp_path / "scenarios")
    suite.write(1)
    suite.write(2)
    return suite


def test_a_scenario_that_passed_and_fails_ends_in_4_whatever_the_rate(suite: KeptSuite) -> None:
    suite.run()
    suite.write(2, failing)
    assert suite.run(threshold=50.0, baseline="run-1") == 0
    assert suite.run(threshold=50.0, baseline="run-1", no_regressions=True) == 4
    assert [each.verdict for each in suite.results()] == ["passed", "failed"]


def test_a_scenario_that_is_gone_is_a_regression_also_where_it_failed(suite: KeptSuite) -> None:
    path = suite.write(2, failing)
    suite.run(threshold=50.0)
    path.unlink()
    assert suite.run(baseline="last", no_regressions=True) == 4


def test_without_a_regression_the_gate_alone_decides(suite: KeptSuite) -> None:
    suite.write(2, failing)
    suite.run()
    assert suite.run(threshold=50.0, baseline="last", no_regressions=True) == 0
    assert suite.run(baseline="last", no_regressions=True) == 4


def test_a_part_is_held_against_the_whole_suite_and_removes_nothing(suite: KeptSuite) -> None:
    suite.run()
    assert suite.run(only=("valid_warranty_001",), baseline="green", no_regressions=True) == 0
    suite.write(3)
    with pytest.raises(AgentError, match="has no scenario in common with what is to run"):
        suite.run(only=("valid_warranty_003",), baseline="run-1", no_regressions=True)


def test_the_json_report_has_the_comparison(suite: KeptSuite, tmp_path: Path) -> None:
    suite.run()
    suite.write(2, failing)
    suite.run(baseline="green", no_regressions=True, json_file=tmp_path / "report.json", threshold=50.0)
    report = json.loads((tmp_path / "report.json").read_bytes())
    assert (report["gate"], report["comparison"]["regressions"]) == ("failed", ["valid_warranty_002"])


@pytest.mark.parametrize("name", ["last", "green", "run-9"])
def test_without_a_baseline_nothing_runs(suite: KeptSuite, name: str) -> None:
    suite.write(1, failing)
    suite.run_until(1)
    with pytest.raises(AgentError) as error:
        suite.run(baseline=name)
    assert error.value.exit_code == 2
    assert len(suite.results()) == 1


def test_an_unfinished_run_is_no_baseline(suite: KeptSuite) -> None:
    suite.run_until(1)
    with pytest.raises(AgentError, match="was not finished: 1 of 2 scenarios ran"):
        suite.run(baseline="run-1")


def test_no_regressions_needs_a_baseline_and_a_baseline_the_store(suite: KeptSuite) -> None:
    with pytest.raises(AgentError, match="--no-regressions needs --baseline"):
        suite.run(no_regressions=True)
    with pytest.raises(AgentError, match="need the run store"):
        suite.run(baseline="last", kept=None)


def test_last_failed_runs_what_failed_when_it_ran_last(suite: KeptSuite) -> None:
    suite.write(2, failing)
    suite.write(3, failing)
    suite.run()
    suite.write(2)
    suite.run(last_failed=True)
    assert [each.name for each in suite.results()] == ["valid_warranty_002", "valid_warranty_003"]
    suite.run(last_failed=True)
    assert [each.name for each in suite.results()] == ["valid_warranty_003"]


def test_where_nothing_failed_everything_runs(suite: KeptSuite, capsys: pytest.CaptureFixture[str]) -> None:
    suite.run(last_failed=True)
    assert len(suite.results()) == 2
    assert capsys.readouterr().err == "Nothing is known to have failed last time: every scenario runs\n"


def test_fail_fast_stops_at_the_first_failure_and_fails_the_run(suite: KeptSuite) -> None:
    suite.write(1, failing)
    assert suite.run(fail_fast=True, threshold=1.0) == 4
    assert [each.name for each in suite.results()] == ["valid_warranty_001"]
    printed = suite.evaluate(fail_fast=True)[1]
    assert "Eval failed (stopped at the first failure, 1 of 2 scenarios ran)" in printed


def test_quiet_says_nothing_of_what_passed(suite: KeptSuite) -> None:
    suite.write(2, failing)
    printed = suite.evaluate(quiet=True)[1]
    assert printed.startswith("✗ valid_warranty_002")
    assert "✓ valid_warranty_001" not in printed
    assert "✓ Passed: 1" in printed


def test_what_last_failed_or_fail_fast_left_out_is_not_gone(suite: KeptSuite) -> None:
    suite.write(2, failing)
    suite.run()
    suite.write(2)
    assert suite.run(last_failed=True, baseline="last", no_regressions=True) == 0
    suite.write(1, failing)
    printed = suite.run_and_print(fail_fast=True, baseline="run-1")[1]
    assert "Newly failing: 1\n    valid_warranty_001" in printed
    assert "Not reached by the run (failed): 1" in printed


def test_an_interrupted_run_is_compared_as_far_as_it_came(suite: KeptSuite, tmp_path: Path) -> None:
    suite.run()
    code, printed = suite.interrupt_and_print(1, baseline="run-1", json_file=tmp_path / "report.json")
    assert code == 130
    assert "Not reached by the run (interrupted): 1" in printed
    assert printed.endswith("✗ Not decided: no regression in what ran, but 1 of 2 were not reached")
    assert json.loads((tmp_path / "report.json").read_bytes())["comparison"]["missing"] == 1


def test_where_nothing_ran_nothing_is_compared(suite: KeptSuite) -> None:
    suite.run()
    printed = suite.interrupt_and_print(0, baseline="run-1")[1]
    assert printed.endswith("Not compared with the baseline: no scenario ran")


_LOOK = "'show valid_warranty_002' has all that happened"
_COMPARE = "'compare green last' has every difference"


@pytest.mark.parametrize("only", [(), ("valid_warranty_002",)])
@pytest.mark.parametrize("is_new", [False, True])
def test_a_failed_run_ends_with_what_changed_and_the_next_steps(
    suite: KeptSuite, is_new: bool, only: tuple[str, ...]
) -> None:
    path = suite.write(2)
    if is_new:
        path.unlink()
    assert "'show " not in suite.run_and_print()[1]
    suite.write(1, lambda text: text.replace("created: ", "created:  "))  # which is not why the other one fails
    suite.write(2, failing)
    said = "1 new scenario failing" if is_new else f'{path}:16 [-["warranty is valid",-] {{+["no such phrase",+}}'
    shown = suite.run_and_print(only=only)[1].splitlines()
    assert shown[-2:] == [f"Changed since green: {said}", f"{_LOOK}, {_COMPARE}, 'view' is for the browser"]


def test_of_a_suite_that_was_never_green_nothing_is_said_to_have_changed(suite: KeptSuite) -> None:
    suite.write(2, failing)
    assert suite.run_and_print()[1].splitlines()[-1] == f"{_LOOK}, 'view' is for the browser"
    assert "'show " not in suite.run_and_print(kept=None)[1]
