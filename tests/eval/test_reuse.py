import json
from pathlib import Path

import pytest
from kept_suite import KeptSuite, executed
from scenario_folder import failing
from stored_runs import results_of

from guarantee_email_agent.runlog.database import StoreError
from guarantee_email_agent.runlog.run_reader import RunStore
from guarantee_email_agent.utils.errors import ConfigurationError


@pytest.fixture
def suite(tmp_path: Path) -> KeptSuite:
    suite = KeptSuite(tmp_path / "scenarios")
    suite.write(1)
    suite.write(2, failing)
    suite.write(3)
    return suite


def test_what_ran_is_taken_over_and_the_report_is_that_of_the_whole(
    suite: KeptSuite, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level("INFO")
    whole = suite.timeless_report()
    assert suite.run_until(2) == 130
    caplog.clear()
    report_file = suite.folder.parent / "resumed.json"
    assert suite.run(resume="", json_file=report_file) == 4
    assert executed(caplog) == ["valid_warranty_003"]
    assert capsys.readouterr().err == "Resuming run-1: 2 results are taken over\n"
    report = json.loads(report_file.read_bytes())
    assert (report["run_id"], report["totals"]) == ("run-1", whole["totals"])
    for each in report["results"]:
        each.pop("processing_time_ms")
        each["actual_output"].pop("processing_time_ms")
    assert report["results"] == whole["results"]
    with RunStore(suite.file) as store:
        (run,) = store.runs()
        assert (run.outcome, run.exit_code, run.total, run.passed) == ("failed", 4, 3, 2)
        assert [each.position for each in results_of(store, run)] == [1, 2, 3]


def test_a_changed_scenario_runs_again(
    suite: KeptSuite, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    suite.run_until(2)
    suite.write(2)
    caplog.set_level("INFO")
    assert suite.run(resume="") == 0
    assert executed(caplog) == ["valid_warranty_002", "valid_warranty_003"]
    assert "1 results are taken over, 1 that changed since run again" in capsys.readouterr().err
    assert [each.verdict for each in suite.results()] == ["passed", "passed", "passed"]


def test_a_file_that_came_before_the_others_moves_them_also_where_the_run_crashed(suite: KeptSuite) -> None:
    with pytest.raises(OSError):
        suite.run_until(2, error=OSError)
    with pytest.raises(OSError):
        suite.run_until(0, error=OSError, resume="run-1")
    suite.write(0)
    suite.run(resume="")
    found = [(each.position, each.name) for each in suite.results()]
    assert found == [(number + 1, f"valid_warranty_{number:03}") for number in range(4)]


def test_without_an_interrupted_run_a_new_one_begins(suite: KeptSuite, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        suite.run(resume="")
        assert capsys.readouterr().err.startswith("Nothing to resume: ")
    with RunStore(suite.file) as store:
        assert [run.total for run in store.runs()] == [3, 3]


@pytest.mark.parametrize(
    ("run", "message"),
    [("run-1", "is complete"), ("../../etc/passwd", "is no id of a run"), ("run-9", "there is no run run-9")],
)
def test_a_run_that_cannot_go_on_is_refused(suite: KeptSuite, run: str, message: str) -> None:
    suite.run()
    with pytest.raises((StoreError, ConfigurationError), match=message) as caught:
        suite.run(resume=run)
    assert caught.value.exit_code == 2


def test_a_run_of_another_suite_is_refused(suite: KeptSuite) -> None:
    suite.run_until(1, only=("valid_warranty_00[12]",))
    with pytest.raises(ConfigurationError, match="is of another suite, selection, agent or model"):
        suite.run(resume="run-1")


def test_without_a_store_nothing_can_be_resumed(suite: KeptSuite) -> None:
    with pytest.raises(ConfigurationError, match="--resume needs the run store"):
        suite.evaluate(resume="")
