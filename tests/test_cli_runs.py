"""The commands that tell what runs did, as their users meet them."""

import json
from pathlib import Path

import pytest
from command_line import Run, WriteSuite
from stored_runs import StoredRuns, result


@pytest.fixture
def runs(tmp_path: Path) -> StoredRuns:
    """In the store of a folder with a configuration."""
    (tmp_path / "config.yaml").write_text("{}\n")
    return StoredRuns(tmp_path / "runs.db")


def test_a_comparison_ends_in_0_and_with_no_regressions_in_4(run: Run, runs: StoredRuns) -> None:
    runs.write(1, [result(1)])
    runs.write(2, [result(1, "failed")], "failed", 4, facts={"regressions": ["valid_warranty_001"]})
    assert "Regressions: valid_warranty_001\n" in run("show").stdout
    done = run("compare", "green")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Newly failing: 1\n    valid_warranty_001: Customer 1\n" in done.stdout
    assert run("compare", "green", "last", "--no-regressions").returncode == 4
    assert run("compare", "20260118T100002", "20260118T100001", "--no-regressions").returncode == 0


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("../../etc/passwd", "'../../etc/passwd' is no id of a run"),
        ("20260118T10000", "is the beginning of several runs: 20260118T100002-00000002, 20260118T100001-00000001"),
        ("lst", "there is no run lst – did you mean 'last'?"),
        ("last", "20260118T100002-00000002 cannot be compared with itself. Name an earlier run first"),
        ("20260118T100002", "20260118T100002-00000002 cannot be compared with itself. Name an earlier run first"),
        ("green", "no run of evals/scenarios has passed its gate before 20260118T100002-00000002. Name a run by"),
    ],
)
def test_a_run_that_cannot_be_found_is_one_line_and_ends_in_2(
    run: Run, runs: StoredRuns, name: str, problem: str
) -> None:
    runs.write(1, [result(1, "failed")], "failed", 4)
    runs.write(2, [result(1)])
    done = run("compare", name)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert problem in done.stderr


def test_show_finds_a_run_a_result_of_the_last_one_and_one_of_another(run: Run, runs: StoredRuns) -> None:
    runs.write(1, [result(1, response={"response_body": "The first"})])
    runs.write(2, [result(1, "failed", response={"response_body": "The second"})], "failed", 4)
    assert "The second" in run("show", "valid_warranty_001").stdout
    assert "The first" in run("show", "green", "valid_warranty_001").stdout
    assert run("show").stdout.startswith("Run: 20260118T100002")
    assert run("show", "20260118T100001").stdout.startswith("Run: 20260118T100001")
    assert len(run("show", "--list").stdout.splitlines()) == 2
    runs.write(3, [result(1, response={"ticket_fields": 1})])
    assert "what it holds cannot be told (AttributeError). Restore" in run("show", "valid_warranty_001").stderr


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["valid_warranty_01"], "there is no 'valid_warranty_01' in the run 20260118T100001-00000001 – did you mean"),
        (["last", "../../etc/passwd"], "there is no '../../etc/passwd' in the run"),
        (["../../etc/passwd"], "there is no '../../etc/passwd' in the run"),
        (["no-such-run", "valid_warranty_001"], "there is no run no-such-run"),
        (["green"], "no run has passed its gate yet"),
        (["a", "b", "c"], "write at most a run and one scenario or task"),
        (["--list", "last"], "--list takes no run"),
    ],
)
def test_show_says_in_one_line_what_cannot_be_found(
    run: Run, runs: StoredRuns, arguments: list[str], problem: str
) -> None:
    runs.write(1, [result(1, "failed")], "failed", 4)
    done = run("show", *arguments)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert problem in done.stderr


def test_show_writes_all_of_a_result_as_json(run: Run, runs: StoredRuns) -> None:
    runs.write(1, [result(1), result(1, repetition=2)])
    report = json.loads(run("show", "valid_warranty_001", "--json", "-").stdout)
    assert [each["repetition"] for each in report] == [1, 2]
    whole = json.loads(run("show", "last", "--json", "-").stdout)
    assert ([each["runs"] for each in whole["results"]], whole["incomplete"]) == ([2], [])


def test_stale_ends_in_4_once_a_scenario_changed(run: Run, suite: WriteSuite) -> None:
    run("eval", "--eval-dir", folder := suite(2))
    with (folder / "valid_warranty_00001.yaml").open("a") as file:
        file.write("# edited\n")
    done = run("stale", "--eval-dir", folder)
    assert done.returncode == 4
    assert done.stdout.endswith("Changed scenario: valid_warranty_00001\n✗ 1 of 2 verdicts are out of date\n")
