"""The gate's decision and its reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from guarantee_email_agent.runlog.suite_statistics import GateDecision, SuiteStatistics


def decide(passed: int, failed: int = 0, must_failed: Sequence[str] = (), **rules: Any) -> GateDecision:
    statistics = SuiteStatistics(deterministic=True)
    statistics.totals.passed, statistics.totals.failed = passed, failed
    statistics.must_failed += must_failed
    return statistics.decide_gate(99.0, **{"require_proof": False} | rules)


@pytest.mark.parametrize(
    ("decision", "expected"),
    [
        (decide(2), ("passed", "≥99% threshold")),
        (decide(1, 1), ("failed", "<99% threshold")),
        (decide(0), ("failed", "<99% threshold")),
        (decide(99, 1, must_failed=["a"]), ("failed", "1 scenario that must pass failed")),
        (decide(1, 2, must_failed=["a", "b"]), ("failed", "<99% threshold; 2 scenarios that must pass failed")),
        (
            decide(299, require_proof=True),
            ("inconclusive", "a suite that the agent was built on proves no rate on new mail"),
        ),
        (decide(1, 1, require_proof=True), ("failed", "<99% threshold")),
        (decide(99, regressions=["a", "b"]), ("failed", "2 regressions since the baseline")),
        (decide(99, regressions=["a"], require_proof=True), ("failed", "1 regression since the baseline")),
        (decide(99, 1, fail_fast=True), ("failed", "stopped at a failure")),
        (
            decide(99, 1, fail_fast=True, planned=120),
            ("failed", "stopped at the first failure, 100 of 120 scenarios ran"),
        ),
        (decide(99, fail_fast=True), ("passed", "≥99% threshold")),
    ],
)
def test_the_gate_and_why(decision: GateDecision, expected: tuple[str, str]) -> None:
    assert decision == expected
    assert decision.passes == (expected[0] == "passed")
