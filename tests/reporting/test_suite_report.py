from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from guarantee_email_agent.eval.export import json_rows
from guarantee_email_agent.eval.suite_report import SuiteFacts, suite_report
from guarantee_email_agent.eval.suite_statistics import SuiteStatistics

from guarantee_email_agent.eval.models import INVALID_FILE, EvalResult
from guarantee_email_agent.reporting.report import Report
from guarantee_email_agent.store.records import Check

MISS = Check("response_body_contains", "missing phrase 'a'", "'a'", "'b'")
Outcome = Callable[..., EvalResult]


def report(*results: EvalResult, **facts: Any) -> Report:
    known = {
        "suite": "evals/scenarios",
        "run_id": "r1",
        "started": "2026-01-18T10:00:00Z",
        "duration_s": 0.4,
        "threshold": 99.0,
        "planned": len(results),
        "llm": "offline",
        "model": "instruction-interpreter",
    }
    return suite_report(results, SuiteFacts(**known | facts))


class TestWhole:
    def test_a_suite_that_passed(self, outcome: Outcome) -> None:
        made = report(outcome())
        assert (made.gate, made.verdict, made.rate) == ("passed", "Eval passed (≥99% threshold)", "100%")
        assert made.notes[0].startswith("1 of 1 scenario passes. ")

    def test_a_suite_that_failed(self, outcome: Outcome) -> None:
        made = report(outcome(), outcome(MISS))
        assert (made.gate, made.verdict, made.rate) == ("failed", "Eval failed (<99% threshold)", "50.0%")
        assert made.causes == [("response_body_contains: missing phrase 'a'", ["valid_warranty_001"])]

    def test_a_proof_that_is_asked_for_and_missing(self, outcome: Outcome) -> None:
        made = report(outcome(), require_proof=True)
        assert (made.gate, made.verdict) == (
            "inconclusive",
            "Eval inconclusive (a suite that the agent was built on proves no rate on new mail)",
        )

    def test_a_run_that_was_stopped(self, outcome: Outcome) -> None:
        made = report(outcome(), interrupted=True, planned=3)
        assert (made.gate, made.verdict, made.planned, made.notes) == ("undecided", "Eval interrupted", 3, [])

    def test_a_run_that_ended_at_its_first_failure(self, outcome: Outcome) -> None:
        made = report(outcome(MISS), fail_fast=True, planned=3)
        assert (made.gate, made.planned) == ("failed", 3)
        assert made.verdict == "Eval failed (stopped at the first failure, 1 of 3 scenarios ran)"

    def test_a_run_that_is_worse_than_its_baseline(self, outcome: Outcome) -> None:
        facts = {"baseline": "r0", "regressions": ["no_reply_001"]}
        made = report(outcome(), **facts, no_regressions=True)
        assert (made.gate, made.verdict) == ("failed", "Eval failed (1 regression since the baseline)")
        assert dict(made.facts) | {"Baseline": "r0", "Regressions": "no_reply_001"} == dict(made.facts)
        assert report(outcome(), **facts).gate == "passed"

    def test_what_changed_since_the_baseline_is_named(self, outcome: Outcome) -> None:
        comparison = {
            "changed_contents": [{"kind": "instruction", "name": "main.md", "change": "changed", "cases": 9}],
            "changed_settings": [{"name": "package_version", "before": "1", "after": "2"}],
            "changed_replies": [{"name": f"no_reply_{number:03}", "before": "a", "after": "b"} for number in range(25)],
        }
        facts = dict(report(outcome(), baseline="r0", comparison=comparison).facts)
        assert facts["Changed since"] == "instruction main.md (changed), package version"
        assert facts["Other replies"].startswith("25: no_reply_000, no_reply_001, ")
        assert facts["Other replies"].endswith(", no_reply_019 and 5 more")
        unchanged = {"changed_contents": [], "changed_settings": [], "changed_replies": []}
        assert "Changed since" not in dict(report(outcome(), baseline="r0", comparison=unchanged).facts)

    def test_repetitions(self, outcome: Outcome) -> None:
        flaky = EvalResult.of_repetitions([outcome(), outcome(MISS), outcome()], 3)
        made = report(flaky, repeat=3)
        facts = dict(made.facts)
        assert (facts["Runs passed"], facts["Passed every time"]) == ("2/3 (66.7%)", "0/1 (0.0%)")
        assert facts["Flaky"] == "1: valid_warranty_001 (2 of 3)"
        assert made.notes[0].startswith("Repeats are no independent scenarios")
        assert [run.outcome for run in made.cases[0].runs] == ["passed", "failed", "passed"]

    def test_an_empty_suite(self) -> None:
        made = report()
        assert (made.gate, made.rate, made.notes) == ("failed", "0.0%", ["No scenario ran."])

    def test_the_language_is_that_of_the_summary_and_of_the_json_report(self, outcome: Outcome) -> None:
        read = replace(outcome(), reading={"language": "de"})
        expected_output = replace(read.test_case.expected_output, reply_language="fr")
        expected = replace(read, test_case=replace(read.test_case, expected_output=expected_output))
        assert [case.language for case in report(read, expected, outcome()).cases] == ["de", "fr", ""]
        assert report(read).cases[0].trace == {"read": {"language": "de"}}
        assert [row["language"] for row in json_rows([read, expected, outcome()])] == ["de", "fr", ""]
        counted = SuiteStatistics(deterministic=True)
        counted.add(read)
        counted.add(expected)
        assert set(counted.as_dict()["groups"]["language"]) == {"de", "fr"}

    def test_what_is_known_of_the_run(self, outcome: Outcome) -> None:
        offline = dict(report(outcome(), only=["no_reply_*"], repeat=3).facts)
        assert offline | {"Version": ""} == {
            "Language model": "offline (instruction-interpreter)",
            "Only": "no_reply_*",
            "Runs of each": "3",
            "Version": "",
        }
        assert "Language model" not in dict(report(outcome(), agent="command:cat").facts)


class TestCase:
    def test_a_scenario_with_what_happened(self, outcome: Outcome) -> None:
        (case,) = report(outcome(MISS, took_ms=7)).cases
        assert (case.name, case.group, case.outcome, case.duration_ms) == (
            "valid_warranty_001",
            "valid-warranty",
            "failed",
            7,
        )
        assert case.failed_checks == (MISS,)
        assert case.request["subject"] == "Hi"
        assert case.response == {"email_sent": True}

    def test_a_file_that_cannot_be_used(self, invalid: EvalResult) -> None:
        (case,) = report(invalid).cases
        assert (case.outcome, case.file, case.request, case.response) == ("invalid", "evals/a_1.yaml", None, None)
        assert str(case.failed_checks[0]) == "Invalid eval file: a_1.yaml - Missing field: created"

    def test_every_repetition_is_a_run(self, outcome: Outcome) -> None:
        (case,) = report(EvalResult.of_repetitions([outcome(), outcome(MISS)], 2)).cases
        assert [run.outcome for run in case.runs] == ["passed", "failed"]

    @pytest.mark.parametrize(
        ("check", "line"), [("response_body_contains", 3), ("ticket_fields", 4), ("email_sent", 2), ("crash", 1)]
    )
    def test_a_miss_is_located_where_it_was_expected(self, outcome: Outcome, check: str, line: int) -> None:
        text = 'expected_output:\n  email_sent: true\n  response_body_contains: ["a"]\n  "ticket_fields": {}\n'
        (case,) = report(outcome(f"{check}: no", text=text)).cases
        assert case.locate(case.failed_checks[0]) == line

    @pytest.mark.parametrize(("problem", "line"), [("Unknown key: x (line 16)", 16), ("Missing field: x", 1)])
    def test_a_problem_of_a_file_is_located_where_it_says(self, outcome: Outcome, problem: str, line: int) -> None:
        (case,) = report(outcome()).cases
        assert case.locate(Check(INVALID_FILE, f"a_1.yaml - {problem}")) == line
