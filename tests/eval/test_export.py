from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from guarantee_email_agent.eval.export import json_results, json_rows, json_summary
from guarantee_email_agent.eval.models import EvalResult
from guarantee_email_agent.store.records import Check

MISS = Check("response_body_contains", "missing phrase 'a'", "'a'", "'b'")
Outcome = Callable[..., EvalResult]


def exported(results: list[EvalResult]) -> dict[str, Any]:
    summary = json_summary(
        results,
        run_id="r1",
        started="2026-01-18T10:00:00Z",
        duration_s=0.41234,
        llm="offline",
        model="interpreter",
        threshold=99.0,
    )
    return {**summary, "results": list(json_results(results))}


class TestJson:
    def test_the_whole_report(self, outcome: Outcome) -> None:
        report = exported([outcome() for _ in range(34)] + [outcome(MISS)])
        results = report.pop("results")
        assert report == {
            "schema_version": 1,
            "run_id": "r1",
            "started": "2026-01-18T10:00:00Z",
            "duration_s": 0.412,
            "agent": None,
            "llm": "offline",
            "model": "interpreter",
            "tokens": {"input": 0, "output": 0, "cache_read": 0, "cache_write": 0},
            "cost_usd": 0.0,
            "planned": 35,
            "repeat": {
                "repeat": 1,
                "runs": {"passed": 34, "total": 35},
                "every_time": {"passed": 34, "total": 35},
                "flaky": [],
                "deterministic": True,
            },
            "groups": {
                "category": {"valid-warranty": {"passed": 34, "total": 35}},
                "language": {"(not known)": {"passed": 34, "total": 35}},
            },
            "totals": {
                "total": 35,
                "passed": 34,
                "failed": 1,
                "invalid": 0,
                "needs_review": 0,
                "distinct": 35,
                "harmful": 0,
            },
            "pass_rate": 97.14,
            "threshold": 99.0,
            "lower_bound_95": None,
            "gate": "failed",
            "interrupted": False,
            "causes": [{"cause": "response_body_contains: missing phrase 'a'", "scenario_ids": ["valid_warranty_001"]}],
        }
        assert results[-1] == {
            "scenario_id": "valid_warranty_001",
            "file": "evals/scenarios/valid_warranty_001.yaml",
            "description": "Customer asks",
            "category": "valid-warranty",
            "language": "",
            "passed": False,
            "needs_review": False,
            "failures": [str(MISS)],
            "harmful": [],
            "nearest": [],
            "processing_time_ms": 3,
            "actual_output": {"email_sent": True},
        }

    def test_scenarios_that_nobody_has_looked_at_are_counted_and_marked(self, outcome: Outcome) -> None:
        report = exported([outcome(), outcome(review=True)])
        assert report["totals"]["needs_review"] == 1
        assert [result["needs_review"] for result in report["results"]] == [False, True]

    def test_invalid_files_are_results_too(self, outcome: Outcome, invalid: EvalResult) -> None:
        report = exported([outcome(), invalid])
        assert report["totals"] == {
            "total": 2,
            "passed": 1,
            "failed": 1,
            "invalid": 1,
            "needs_review": 0,
            "distinct": 2,
            "harmful": 0,
        }
        assert report["results"][1]["file"] == "evals/a_1.yaml"
        assert report["results"][1]["failures"] == ["Invalid eval file: a_1.yaml - Missing field: created"]

    @pytest.mark.parametrize(
        ("passed", "failed", "gate", "rate"),
        [(99, 1, "passed", 99.0), (4949, 51, "failed", 98.98), (0, 0, "failed", 0), (1, 0, "passed", 100)],
    )
    def test_gate_and_rate(self, outcome: Outcome, passed: int, failed: int, gate: str, rate: float) -> None:
        report = exported([outcome()] * passed + [outcome(MISS)] * failed)
        assert (report["gate"], report["pass_rate"]) == (gate, rate)

    def test_the_rate_is_never_rounded_up_across_the_threshold(self, outcome: Outcome) -> None:
        report = exported([outcome()] * 98_999 + [outcome(MISS)] * 1_001)
        assert (report["gate"], report["pass_rate"]) == ("failed", 98.99)


class TestRows:
    def test_a_row_for_each_repetition(self, outcome: Outcome) -> None:
        repeated = EvalResult.of_repetitions([outcome(took_ms=1), outcome(MISS, took_ms=2)], 2)
        rows = list(json_rows([repeated, outcome()]))
        assert [(row["repetition"], row["passed"]) for row in rows] == [(1, True), (2, False), (1, True)]
        assert rows[2] == {"repetition": 1, **exported([outcome()])["results"][0]}
