"""The gate of the suite: passed, failed or inconclusive, and why. Whatever shows a run asks here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from guarantee_email_agent.runlog.records import Verdict
from guarantee_email_agent.runlog.statistics import Threshold, meets_threshold, threshold_fraction, threshold_text
from guarantee_email_agent.runlog.suite_manifest import DEVELOPMENT, SuiteManifest
from guarantee_email_agent.utils.terminal import pluralize

GateOutcome = Literal["passed", "failed", "inconclusive"]
"""inconclusive: the rate is reached, and only a proof that was asked for is missing."""


@dataclass(slots=True)
class Totals:
    """Counts of verdicts; `failed` includes `invalid`."""

    passed: int = 0
    failed: int = 0
    error: int = 0
    invalid: int = 0

    @classmethod
    def of(cls, verdicts: Iterable[Verdict]) -> Totals:
        totals = cls()
        for verdict in verdicts:
            totals.add(verdict)
        return totals

    @property
    def total(self) -> int:
        return self.passed + self.failed + self.error

    def add(self, verdict: Verdict) -> None:
        if verdict == "passed":
            self.passed += 1
        elif verdict == "error":
            self.error += 1
        else:
            self.failed += 1
            self.invalid += verdict == "invalid"


class GateDecision(NamedTuple):
    """why: in a few words, such as `<99% threshold`."""

    gate: GateOutcome
    why: str

    @property
    def passes(self) -> bool:
        return self.gate == "passed"


def decide_gate(
    totals: Totals,
    threshold: Threshold,
    *,
    require_proof: bool,
    fail_fast: bool = False,
    planned: int | None = None,
    must_failed: Sequence[str] = (),
    regressions: Sequence[str] = (),
    manifest: SuiteManifest = DEVELOPMENT,
    proven: float | None = None,
) -> GateDecision:
    """Whether the pass rate reaches `threshold` percent, and where a proof is required, whether it is proven to.

    fail_fast: whether the first failure fails the run, whatever the rate. planned: how many scenarios a whole run has;
    as many as there are if None. must_failed: which scenarios failed of those that must pass. regressions: what
    is worse than in the baseline and must not be. manifest: of the suite, and proven: its `lower_bound`.
    """
    wanted = threshold_text(threshold)
    failed_at_once = fail_fast and totals.passed < totals.total
    if failed_at_once and planned is not None and totals.total < planned:
        ran = f"{totals.total} of {pluralize(planned, 'scenario')} ran"
        return GateDecision("failed", f"stopped at the first failure, {ran}")
    below = [] if meets_threshold(totals.passed, totals.total, threshold) else [f"<{wanted}% threshold"]
    if must_failed:
        below.append(f"{pluralize(len(must_failed), 'scenario')} that must pass failed")
    if below:
        return GateDecision("failed", "; ".join(below))
    if regressions:
        return GateDecision("failed", f"{pluralize(len(regressions), 'regression')} since the baseline")
    if failed_at_once:
        return GateDecision("failed", "stopped at a failure")
    if require_proof and (proven is None or proven < threshold_fraction(threshold) * 100):
        return GateDecision("inconclusive", manifest.why_unproven(proven))
    return GateDecision("passed", f"≥{wanted}% threshold")
