"""The report of a run of the suite."""

from __future__ import annotations

from typing import Any

import pytest
from sample_reports import MISSING, case, result
from stored_runs import stored_run

from guarantee_email_agent.runlog.records import Case, Usage
from guarantee_email_agent.runlog.views.report import Report
from guarantee_email_agent.runlog.views.stored_report import suite_report


def report(*cases: Case, **run: Any) -> Report:
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
    made = report(*cases, **run)
    assert (made.gate, made.verdict) == (gate, verdict)
    assert made.summary["gate"] == ("failed" if gate == "undecided" else gate)
    assert bool(made.notes) == (gate != "undecided")


def test_causes_have_the_names_of_their_scenarios() -> None:
    cause = ("response_body_contains: missing phrase 'type plate'", ["valid_warranty_001"])
    assert report(case(), case(passed=False)).causes == [cause]


def test_a_run_that_is_worse_than_its_baseline() -> None:
    facts = {"baseline": "r0", "regressions": ["no_reply_001"]}
    made = report(case(), facts=facts | {"no_regressions": True}, outcome="failed")
    assert (made.gate, made.verdict) == ("failed", "Eval failed (1 regression since the baseline)")
    assert dict(made.facts) | {"Baseline": "r0", "Regressions": "no_reply_001"} == dict(made.facts)
    assert report(case(), facts=facts).gate == "passed"


def test_repetitions() -> None:
    made = report(Case((result(), result(passed=False, repetition=2), result(repetition=3))), repeat=3)
    facts = dict(made.facts)
    assert (facts["Runs passed"], facts["Passed every time"]) == ("2/3 (66.7%)", "0/1 (0.0%)")
    assert facts["Flaky"] == "1: valid_warranty_001 (2 of 3)"
    assert made.notes[0].startswith("Repeats are no independent scenarios")
    row = made.json_case(next(iter(made.cases)))
    assert (row["runs"], row["runs_passed"], row["failures"]) == (3, 2, [f"run 2 of 3: {MISSING}"])


def test_what_is_known_of_the_run() -> None:
    offline = dict(report(case(), selection=("no_reply_*",), repeat=3).facts)
    assert offline == {
        "Language model": "offline (instruction-interpreter)",
        "Only": "no_reply_*",
        "Runs of each": "3",
        "Version": "0.1.0",
    }
    assert "Language model" not in dict(report(case(), agent="command:cat").facts)


def test_what_live_scenarios_took_that_came_to_no_result_is_paid_for_too() -> None:
    paid = case(usage=Usage(1, 10, 5, cost_usd=0.25))
    by_result = report(paid, paid, llm="live", model="m")
    assert (by_result.summary["tokens"]["input"], by_result.summary["cost_usd"]) == (20, 0.5)
    unseen = report(paid, case(usage=Usage(cost_usd=None)), paid)
    assert (unseen.summary["tokens"], unseen.summary["cost_usd"]) == (None, None)
    whole = report(paid, llm="live", model="m", facts={"usage": Usage(3, 30, 15, cost_usd=1.5)._asdict()})
    assert whole.summary["cost_usd"] == 1.5
    assert dict(whole.facts)["Cost"] == "m: 3 answers, 30 tokens sent, 15 received, $1.5000"
