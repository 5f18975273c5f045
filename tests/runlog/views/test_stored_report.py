"""Reports made of a run's log: whatever the run was, and whatever became of it since."""

from __future__ import annotations

import json
import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from kept_suite import KeptSuite
from scenario_folder import broken, failing
from stored_runs import StoredRuns, new_run, result

from guarantee_email_agent.runlog.database import temporary_store
from guarantee_email_agent.runlog.records import CaseResult, Check, Input, InputSet
from guarantee_email_agent.runlog.run_reader import RunStore
from guarantee_email_agent.runlog.run_writer import RunWriter
from guarantee_email_agent.runlog.views import stored_report
from guarantee_email_agent.runlog.views.report import Report
from guarantee_email_agent.runlog.views.run_report import RunOptions
from guarantee_email_agent.utils.errors import ConfigurationError


def last_report(runs: StoredRuns) -> Report:
    with RunStore(runs.file) as store:
        return stored_report.stored_report(store, store.find_run("last"))


def written(runs: StoredRuns, ran: int) -> Any:
    options = RunOptions(directory=runs.file.parent, json_file=runs.file.with_name("r.json"))
    stored_report.write_stored_reports(runs.file, 1, options, "report_unwritable", ran)
    return json.loads(runs.file.with_name("r.json").read_bytes())


def test_what_eval_writes_reads_back_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    suite = KeptSuite(tmp_path / "suite")
    suite.write(1)
    suite.write(2, failing)
    suite.write(3, broken)
    kept: list[CaseResult] = []
    write = RunWriter._write
    monkeypatch.setattr(RunWriter, "_write", lambda *given: (kept.append(given[-1]), write(*given)))
    suite.run()
    with RunStore(suite.file) as store:
        read = [each for case in store.cases(store.find_run("last")) for each in case.runs]
    assert read == [
        each._replace(inputs=None, step_ms=tuple(float(f"{took:.3g}") for took in each.step_ms)) for each in kept
    ]
    passed, failed, invalid = read
    assert (passed.verdict, failed.verdict, invalid.verdict) == ("passed", "failed", "invalid")
    assert (passed.language, passed.file) == ("en", str(suite.folder / "valid_warranty_001.yaml"))
    assert passed.request["subject"] == "Warranty status inquiry"
    assert [check.name for check in failed.failed_checks] == ["response_body_contains"]
    assert (invalid.request, invalid.response, invalid.failed_checks[0].name) == (None, None, "Invalid eval file")


def test_a_large_run_is_read_anew_each_time_and_reported_alike(
    runs: StoredRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs.write(1, [result(1), result(2, "failed", checks=(Check("a", "b"),))], "failed", 4)
    held = written(runs, 2)
    monkeypatch.setattr(stored_report, "IN_MEMORY", 1)
    assert written(runs, 2) == held
    assert held["totals"]["total"] == len(held["results"]) == 2


def test_a_run_that_goes_on_is_reported_as_far_as_it_came(runs: StoredRuns) -> None:
    writer = runs.begin(1, at_once=True, planned=3)
    writer.add(result(1))
    report = last_report(runs)
    assert (report.gate, report.totals.total, report.planned) == ("undecided", 1, 3)
    writer._database.close()


def test_what_changed_since_the_baseline_is_named_as_long_as_that_is_kept(runs: StoredRuns) -> None:
    def results(text: str) -> list[CaseResult]:
        inputs = InputSet([Input.of("instruction", "main.md", text.encode())])
        replies = ({"response_body": f"{text} {number}"} for number in range(1, 26))
        return [result(number, response=reply, inputs=inputs) for number, reply in enumerate(replies, 1)]

    runs.write(1, results("a"))
    baseline = {"baseline": new_run(1).id}
    runs.write(2, results("b"), facts=baseline, package_version="0.2.0")
    report = last_report(runs)
    facts = dict(report.facts)
    assert facts["Changed since"] == "instruction main.md (changed), package version"
    assert facts["Other replies"].startswith("25: valid_warranty_001, valid_warranty_002, ")
    assert facts["Other replies"].endswith(", valid_warranty_020 and 5 more")
    assert [past.id for past in report.history] == [new_run(1).id, new_run(2).id]
    runs.write(3, results("a"), facts=baseline)
    unchanged = last_report(runs)
    assert ("Changed since" in dict(unchanged.facts), "comparison" in unchanged.summary) == (False, True)
    runs.write(4, results("b"), facts={"baseline": new_run(9).id})
    gone = last_report(runs)
    assert (dict(gone.facts)["Baseline"], "comparison" in gone.summary) == (new_run(9).id, False)


def test_results_that_could_not_be_kept_are_in_no_report(runs: StoredRuns) -> None:
    runs.write(1, [result(1)])
    with pytest.raises(
        ConfigurationError, match=r"cannot be kept for its reports \(1 of 2 could .* in TMPDIR"
    ) as caught:
        written(runs, 2)
    assert caught.value.code == "report_no_room"
    runs.file.unlink()
    with pytest.raises(ConfigurationError, match="there is no run store"):
        written(runs, 2)


def test_a_run_that_nobody_keeps_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with ExitStack() as resources:
        StoredRuns(temporary_store(resources).file).write(1, [result(1)])
        assert len(list(tmp_path.iterdir())) == 1
    assert list(tmp_path.iterdir()) == []
    shutil.rmtree(tmp_path)
    with ExitStack() as resources, pytest.raises(ConfigurationError, match="cannot be kept for its reports"):
        temporary_store(resources)
