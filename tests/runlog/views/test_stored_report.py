"""Reports made of a run's log: whatever the run was, and whatever became of it since."""

import json
import shutil
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kept_suite import KeptSuite
from sample_reports import MISSING, case
from sample_reports import result as sample_result
from scenario_folder import broken, failing
from stored_runs import StoredRuns, new_run, result, stored_run

from guarantee_email_agent.judging.grade_report import as_cases
from guarantee_email_agent.judging.verdict import Graded, Verdict
from guarantee_email_agent.runlog.database import temporary_store
from guarantee_email_agent.runlog.records import NOT_STORED, Case, CaseResult, Check, Input, InputSet, Usage
from guarantee_email_agent.runlog.run_reader import RunStore
from guarantee_email_agent.runlog.run_writer import RunWriter
from guarantee_email_agent.runlog.views import stored_report
from guarantee_email_agent.runlog.views.report import Report, RunOptions
from guarantee_email_agent.runlog.views.stored_report import suite_report, task_report
from guarantee_email_agent.utils.errors import ConfigurationError


def last_report(runs: StoredRuns) -> Report:
    with RunStore(runs.file) as store:
        return stored_report.stored_report(store, store.find_run("last"))


def written(runs: StoredRuns, ran: int) -> Any:
    options = RunOptions(directory=runs.file.parent, json_file=runs.file.with_name("r.json"))
    stored_report.write_stored_reports(runs.file, 1, options, "report_unwritable", ran, lambda each: each)
    return json.loads(runs.file.with_name("r.json").read_bytes())


def test_what_eval_writes_reads_back_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    suite = KeptSuite(tmp_path / "suite")
    suite.write(1)
    path = suite.write(2, failing)
    suite.write(3, broken)
    kept: list[CaseResult] = []
    write = RunWriter._write
    monkeypatch.setattr(RunWriter, "_write", lambda *given: (kept.append(given[-1]), write(*given)))
    suite.run()
    with RunStore(suite.file) as store:
        read = [each._replace(place=NOT_STORED) for case in store.cases(store.find_run("last")) for each in case.runs]
    assert read == [
        each._replace(inputs=None, step_ms=tuple(float(f"{took:.3g}") for took in each.step_ms)) for each in kept
    ]
    passed, failed, invalid = read
    assert (passed.verdict, failed.verdict, invalid.verdict) == ("passed", "failed", "invalid")
    assert (passed.language, passed.file) == ("en", str(suite.folder / "valid_warranty_001.yaml"))
    assert passed.request["subject"] == "Warranty status inquiry"
    (check,) = failed.failed_checks
    assert (check.name, check.reason) == ("response_body_contains", "missing phrase 'no such phrase'")
    assert (check.expected, check.actual[:7]) == ("'no such phrase'", "'Hello,")
    assert (failed.source, "processing_time_ms" in failed.response) == (path.read_bytes(), False)
    assert failed.response["ticket_fields"]["serial_number"] == "SN12345"
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
    assert (report.gate, report.totals.total, report.run.planned) == ("undecided", 1, 3)
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
    six = {"task_name": "six", "passed": False, "records_passed": 1, "records": 2}
    assert made.summary["tasks"] == [six, {"task_name": "eight", "passed": False, "records_passed": 0, "records": 1}]
    half = report(Graded("six", replace(PASSED.verdict, score=0.5), 1, 2)).summary  # then it was interrupted
    assert (half["tasks"], "score" in half) == ([six | {"passed": None}], False)


def report_of_suite(*cases: Case, **run: Any) -> Report:
    outcome = "passed" if cases and all(each.passed for each in cases) else "failed"
    known = {"threshold": 99.0, "planned": len(cases), "model": "instruction-interpreter", "outcome": outcome}
    return suite_report(stored_run(**known | run), cases)


PROOF = "Eval inconclusive (a suite that the agent was built on proves no rate on new mail)"


@pytest.mark.parametrize(
    ("cases", "run", "gate", "verdict"),
    [
        ([case()], {}, "passed", "Eval passed (≥99% threshold)"),
        ([case(), case(passed=False)], {}, "failed", "Eval failed (<99% threshold)"),
        ([], {}, "failed", "Eval failed (<99% threshold)"),
        ([case()], {"require_proof": True, "outcome": "inconclusive"}, "inconclusive", PROOF),
        ([case()], {"outcome": "interrupted", "planned": 3}, "undecided", "Eval interrupted"),
        ([case()], {"outcome": "crashed"}, "undecided", "Eval crashed"),
        ([case()], {"outcome": None}, "undecided", "Eval going on"),
        (
            [case(passed=False)],
            {"facts": {"fail_fast": True}, "planned": 3},
            "failed",
            "Eval failed (stopped at the first failure, 1 of 3 scenarios ran)",
        ),
        ([case()], {"outcome": "failed"}, "failed", "Eval failed (what decided it is not kept)"),
    ],
)
def test_the_gate_and_why(cases: list[Case], run: dict[str, Any], gate: str, verdict: str) -> None:
    made = report_of_suite(*cases, **run)
    assert (made.gate, made.verdict) == (gate, verdict)
    assert made.summary["gate"] == ("failed" if gate == "undecided" else gate)
    assert bool(made.notes) == (gate != "undecided")


def test_causes_have_the_names_of_their_scenarios() -> None:
    cause = ("response_body_contains: missing phrase 'type plate'", ["valid_warranty_001"])
    assert report_of_suite(case(), case(passed=False)).causes == [cause]


def test_a_run_that_is_worse_than_its_baseline() -> None:
    facts = {"baseline": "r0", "regressions": ["no_reply_001"]}
    made = report_of_suite(case(), facts=facts | {"no_regressions": True}, outcome="failed")
    assert (made.gate, made.verdict) == ("failed", "Eval failed (1 regression since the baseline)")
    assert dict(made.facts) | {"Baseline": "r0", "Regressions": "no_reply_001"} == dict(made.facts)
    assert report_of_suite(case(), facts=facts).gate == "passed"


def test_repetitions() -> None:
    made = report_of_suite(
        Case((sample_result(), sample_result(passed=False, repetition=2), sample_result(repetition=3))),
        repeat=3,
    )
    facts = dict(made.facts)
    assert (facts["Runs passed"], facts["Passed every time"]) == ("2/3 (66.7%)", "0/1 (0.0%)")
    assert facts["Flaky"] == "1: valid_warranty_001 (2 of 3)"
    assert made.notes[0].startswith("Repeats are no independent scenarios")
    row = made.json_case(next(iter(made.cases)))
    assert (row["runs"], row["runs_passed"], row["failures"]) == (3, 2, [f"run 2 of 3: {MISSING}"])


def test_what_is_known_of_the_run() -> None:
    offline = dict(report_of_suite(case(), selection=("no_reply_*",), repeat=3).facts)
    assert offline == {
        "Language model": "offline (instruction-interpreter)",
        "Only": "no_reply_*",
        "Runs of each": "3",
        "Version": "0.1.0",
    }
    assert "Language model" not in dict(report_of_suite(case(), agent="command:cat").facts)


def test_what_came_to_no_result_is_paid_for_too_and_what_was_taken_over_is_not(runs: StoredRuns) -> None:
    paid, other = (result(number, usage=Usage(1, 10, 5, cost_usd=0.25)) for number in (1, 2))
    runs.write(1, [paid, other._replace(usage=Usage(cost_usd=None))])
    runs.write(2, [paid, other], "interrupted", repeat=2)
    runs.write(3, [paid, other._replace(taken_over="run-1")])
    runs.write(4, [paid], llm="live", model="m", facts={"usage": Usage(3, 30, 15, cost_usd=1.5)._asdict()})
    with RunStore(runs.file) as store:
        made = [(run.cost_usd, stored_report.stored_report(store, run)) for run in store.runs()]
    assert [cost for cost, _ in made] == [each.summary["cost_usd"] for _, each in made] == [1.5, 0.25, 0.5, None]
    assert (made[2][1].summary["tokens"]["input"], made[3][1].summary["tokens"]) == (20, None)
    assert dict(made[0][1].facts)["Cost"] == "m: 3 answers, 30 tokens sent, 15 received, $1.5000"
