"""A run of the suite as the data of a report: its cases with what happened, and what came of the whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

from guarantee_email_agent.runlog.comparison import Comparison
from guarantee_email_agent.runlog.gate import GateOutcome
from guarantee_email_agent.runlog.records import NO_USAGE, Case, Usage
from guarantee_email_agent.runlog.statistics import format_percentage, rounded_percentage, threshold_text
from guarantee_email_agent.runlog.stored_records import StoredRun
from guarantee_email_agent.runlog.suite_manifest import DistinctMails, SuiteManifest
from guarantee_email_agent.runlog.suite_statistics import SharedCauses, SuiteStatistics
from guarantee_email_agent.runlog.views.comparison_report import json_comparison
from guarantee_email_agent.runlog.views.report import Report
from guarantee_email_agent.utils.terminal import pluralize
from guarantee_email_agent.utils.text import and_more

SCHEMA_VERSION: Final = 1
_MAX_CHANGES: Final = 20


def suite_report(
    run: StoredRun,
    cases: Iterable[Case],
    history: Sequence[StoredRun] = (),
    comparison: Comparison | None = None,
    counted: Iterable[Case] | None = None,
) -> Report:
    """run: with its counts. history: earlier runs of the same suite with this one. comparison: with the baseline that
    the run was held against. counted: the same cases with no more than `COUNTED`, where that takes less to read.
    """
    deterministic = not run.agent and run.llm in ("offline", "replay")
    manifest = SuiteManifest.of_facts(run.facts)
    statistics = SuiteStatistics(deterministic=deterministic, manifest=manifest, is_whole=not run.selection)
    totals, causes, usage = statistics.totals, SharedCauses(), NO_USAGE
    for case in cases if counted is None else counted:
        statistics.add(case)
        for each in case.runs:
            usage = usage.plus(each.usage)
        if not case.passed:
            causes.add(case)
    if run.mails is not None and run.mails_passed is not None:
        statistics.mails.told = DistinctMails(run.mails, run.mails_passed)
    if "usage" in run.facts:  # what scenarios took that came to no result is paid for, too
        usage = Usage(**run.facts["usage"])
    interrupted = run.outcome in (None, "interrupted", "crashed")
    regressions = run.facts.get("regressions", ())
    held = regressions if run.facts.get("no_regressions") else ()
    decision = statistics.decide_gate(
        run.threshold,
        require_proof=run.require_proof,
        fail_fast=bool(run.facts.get("fail_fast")),
        planned=run.planned,
        regressions=held,
    )
    # The run's own word counts: what its gate rested on may be kept no more, as in runs of earlier versions.
    gate = decision.gate if run.outcome is None or interrupted else cast("GateOutcome", run.outcome)
    why = decision.why if gate == decision.gate else "what decided it is not kept"
    compared = None if comparison is None else json_comparison(comparison)
    is_live = run.llm in ("live", "record")
    facts = [
        ("Agent", run.agent),
        ("Language model", "" if run.agent else f"{run.llm} ({run.model})"),
        ("Cost", describe_usage(run.model, usage) if is_live else ""),
        *statistics.must_facts(),
        *statistics.selectivity.facts(),
        *statistics.rubric.facts(),
        *statistics.taken_over_facts(),
        ("Only", " ".join(run.selection)),
        ("Runs of each", str(run.repeat) if run.repeat > 1 else ""),
        *statistics.repetition_facts(run.threshold),
        ("Baseline", str(run.facts.get("baseline", ""))),
        *_changes(compared or {}),
        ("Regressions", ", ".join(regressions)),
        ("Version", run.package_version),
    ]
    return Report(
        command="eval",
        noun="scenario",
        suite=run.suite,
        run_id=run.id,
        started=run.started,
        duration_s=run.duration_s,
        gate="undecided" if interrupted else gate,
        verdict=f"Eval {run.state}" if interrupted else f"Eval {gate} ({why})",
        totals=totals,
        planned=run.planned,
        cases=cases,
        rate=format_percentage(totals.passed, totals.total, run.threshold),
        threshold=threshold_text(run.threshold),
        notes=[
            *statistics.repetition_notes(),
            *([] if interrupted else [statistics.conclusion(run.planned)]),
        ],
        facts=[(name, value) for name, value in facts if value],
        causes=causes.counts(),
        groups=statistics.groups.rows(),
        history=history,
        commit=_commit(run),
        ran_by=str(run.facts.get("by", "")),
        summary={
            "schema_version": SCHEMA_VERSION,
            "run_id": run.id,
            "started": run.started,
            "duration_s": round(run.duration_s, 3),
            "agent": run.agent or None,
            "llm": run.llm,
            "model": run.model,
            "tokens": usage.tokens(),
            "cost_usd": None if usage.cost_usd is None else round(usage.cost_usd, 6),
            "planned": run.planned,
            "totals": {
                "total": totals.total,
                "passed": totals.passed,
                "failed": totals.failed,
                "invalid": totals.invalid,
                "needs_review": statistics.needing_review,
                "distinct": statistics.mails.count().total,
                "harmful": statistics.selectivity.harmful,
            },
            "pass_rate": rounded_percentage(totals.passed, totals.total, run.threshold),
            "threshold": float(threshold_text(run.threshold)),
            "lower_bound_95": statistics.proven(run.planned),
            "suite_kind": manifest.kind,
            "gate": "failed" if interrupted or totals.total < run.planned else gate,
            "interrupted": interrupted,
            **statistics.as_dict(),
            **({} if compared is None else {"comparison": compared}),
            "causes": [{"cause": cause, "scenario_ids": list(names)} for cause, names in causes.counts()],
        },
        json_case=_json_case,
    )


def _commit(run: StoredRun) -> str:
    if run.git_revision is None:
        return ""
    unknown = " (not known whether files were changed since)" if run.git_dirty is None else ""
    return f"{run.git_revision[:12]}{' with changed files' if run.git_dirty else unknown}"


def describe_usage(model: str, usage: Usage) -> str:
    """One line for people: what a run took of the API."""
    return f"{model}: {pluralize(usage.calls, 'answer')}, {usage.describe()}"


def _changes(comparison: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What is not as it was in the baseline: files and settings by name, and how many replies."""
    files = [f"{each['kind']} {each['name']} ({each['change']})" for each in comparison.get("changed_contents", ())]
    settings = [each["name"].replace("_", " ") for each in comparison.get("changed_settings", ())]
    yield "Changed since", and_more([*files, *settings], _MAX_CHANGES)
    replies = [each["name"] for each in comparison.get("changed_replies", ())]
    yield "Other replies", f"{len(replies)}: {and_more(replies, _MAX_CHANGES)}" if replies else ""


def _json_case(case: Case) -> dict[str, Any]:
    shown, count = case.shown, len(case.runs)
    took_ms = {"processing_time_ms": round(shown.duration_ms)}
    repeated = {"runs": count, "runs_passed": sum(run.passed for run in case.runs)} if count > 1 else {}
    return {
        "scenario_id": case.name,
        "file": shown.file,
        "description": shown.description,
        "category": shown.category,
        "language": shown.language,
        "passed": case.passed,
        **({"taken_over": shown.taken_over} if shown.taken_over else {}),
        "needs_review": shown.needs_review,
        "must": shown.must,
        **repeated,
        "failures": list(map(str, case.failed_checks)),
        "harmful": list(case.harm),
        **({} if shown.score is None else {"score": shown.score}),
        **({"rubric": shown.rubric} if shown.rubric else {}),
        "nearest": [each._asdict() for each in shown.nearest],
        **took_ms,
        "actual_output": {**shown.response, **took_ms} if shown.response else {},
    }
