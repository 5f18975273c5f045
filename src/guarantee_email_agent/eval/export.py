"""A run's results for programs, as JSON holds them: the run as a whole, its results, or row by row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from guarantee_email_agent.eval.distinct_mails import MailCounter
from guarantee_email_agent.eval.failure_details import SharedCauses, nearest_sentences
from guarantee_email_agent.eval.gate import decide_gate
from guarantee_email_agent.eval.models import EvalResult
from guarantee_email_agent.eval.suite_statistics import SuiteStatistics
from guarantee_email_agent.llm.port import NO_TOKENS, TokenUsage
from guarantee_email_agent.reporting.kept_results import Results
from guarantee_email_agent.reporting.statistics import Threshold, rounded_percentage, threshold_text
from guarantee_email_agent.reporting.totals import Totals

SCHEMA_VERSION: Final = 1


def json_summary(
    results: Results[EvalResult],
    *,
    run_id: str,
    started: str,
    duration_s: float,
    llm: str,
    model: str,
    threshold: Threshold,
    require_proof: bool = False,
    tokens: TokenUsage = NO_TOKENS,
    cost_usd: float | None = 0.0,
    agent: str | None = None,
    interrupted: bool = False,
    fail_fast: bool = False,
    planned: int | None = None,
    regressions: Sequence[str] = (),
    comparison: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The report but for its last key, `results`.

    started: ISO 8601. duration_s: seconds. Rate and threshold: percent.

    require_proof, fail_fast: as `EvalReporter` takes them. agent: as `--agent` has it; None for our own in this
    process. tokens, cost_usd: what this run took of the API, in US dollars; None where the model's price is not known.
    interrupted: whether scenarios are missing, so that the gate cannot be passed. planned: how many scenarios a whole
    run has. regressions: those that the gate rests on. comparison: with the baseline.
    """
    statistics = SuiteStatistics(deterministic=llm in ("offline", "replay") and agent is None)
    totals, counter, causes, needing_review = Totals(), MailCounter(), SharedCauses(), 0
    for result in results:
        totals.add(result.outcome)
        counter.add(result)
        statistics.add(result)
        needing_review += result.needs_review
        if not result.passed:
            causes.add(result)
    passed, total, mails = totals.passed, totals.total, counter.count()
    planned = total if planned is None else planned
    decision = decide_gate(totals, threshold, require_proof=require_proof, fail_fast=fail_fast, regressions=regressions)
    return {
        "schema_version": SCHEMA_VERSION,
        "run_id": run_id,
        "started": started,
        "duration_s": round(duration_s, 3),
        "agent": agent,
        "llm": llm,
        "model": model,
        "tokens": tokens.as_dict(),
        "cost_usd": None if cost_usd is None else round(cost_usd, 6),
        "planned": planned,
        "totals": {
            "total": total,
            "passed": passed,
            "failed": totals.failed,
            "invalid": totals.invalid,
            "needs_review": needing_review,
            "distinct": mails.total,
            "harmful": statistics.selectivity.harmful,
        },
        "pass_rate": rounded_percentage(passed, total, threshold),
        "threshold": float(threshold_text(threshold)),
        "lower_bound_95": None,
        "gate": "failed" if interrupted or total < planned else decision.gate,
        "interrupted": interrupted,
        **statistics.as_dict(),
        **({} if comparison is None else {"comparison": comparison}),
        "causes": [{"cause": cause, "scenario_ids": list(ids)} for cause, ids in causes.counts()],
    }


def json_results(results: Results[EvalResult]) -> Iterator[dict[str, Any]]:
    """One for each scenario."""
    return map(_json_result, results)


def json_rows(results: Results[EvalResult]) -> Iterator[dict[str, Any]]:
    """Every repetition of every result, as `json_results` has it, with the repetition's number."""
    for result in results:
        for number, each in enumerate(result.repetitions or (result,), 1):
            yield {"repetition": number, **_json_result(each)}


def _passed_runs(result: EvalResult) -> int:
    return sum(each.passed for each in result.repetitions)


def _json_result(result: EvalResult) -> dict[str, Any]:
    scenario = result.test_case
    return {
        "scenario_id": scenario.scenario_id,
        "file": scenario.file,
        "description": scenario.description,
        "category": scenario.category,
        "language": result.language,
        "passed": result.passed,
        **({"taken_over": result.taken_over} if result.taken_over else {}),
        "needs_review": result.needs_review,
        **({"runs": len(result.repetitions), "runs_passed": _passed_runs(result)} if result.repetitions else {}),
        "failures": list(result.failures),
        "harmful": list(result.harm),
        "nearest": [] if result.passed else [asdict(each) for each in nearest_sentences(result)],
        "processing_time_ms": result.processing_time_ms,
        "actual_output": dict(result.actual_output),
    }
