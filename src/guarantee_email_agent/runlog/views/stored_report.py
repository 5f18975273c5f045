"""Any run of the store as a report, and its files: at the end of the run, and whenever they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final, cast

from guarantee_email_agent.files.report_files import as_json_with_rows, write_reports
from guarantee_email_agent.runlog.comparison import Comparison, compare_runs
from guarantee_email_agent.runlog.database import StoreError, not_kept
from guarantee_email_agent.runlog.records import COUNTED, NO_USAGE, PARTS, Case, CaseResult, Run, Usage
from guarantee_email_agent.runlog.run_reader import RunStore
from guarantee_email_agent.runlog.statistics import format_percentage, rounded_percentage, threshold_text
from guarantee_email_agent.runlog.suite_manifest import DistinctMails, SuiteManifest
from guarantee_email_agent.runlog.suite_statistics import (
    GateOutcome,
    GroupCounter,
    RubricCounter,
    ScoreCounter,
    SharedCauses,
    SuiteStatistics,
    Totals,
)
from guarantee_email_agent.runlog.views.comparison_report import json_comparison
from guarantee_email_agent.runlog.views.report import REPORT_FORMS, Report, RunOptions
from guarantee_email_agent.utils.text import and_more

SCHEMA_VERSION: Final = 1
_MAX_CHANGES: Final = 20


def suite_report(
    run: Run,
    cases: Iterable[Case],
    history: Sequence[Run] = (),
    comparison: Comparison | None = None,
    counted: Iterable[Case] | None = None,
    usage: Usage = NO_USAGE,
) -> Report:
    """run: with its counts. history: earlier runs of the same suite with this one. comparison: with the baseline that
    the run was held against. counted: the same cases with no more than `COUNTED`, where that takes less to read. usage:
    what all of it took of a model.
    """
    deterministic = not run.agent and run.llm in ("offline", "replay")
    manifest = SuiteManifest.of_facts(run.facts)
    statistics = SuiteStatistics(deterministic=deterministic, manifest=manifest, is_whole=not run.selection)
    totals, causes = statistics.totals, SharedCauses()
    for case in cases if counted is None else counted:
        statistics.add(case)
        if not case.passed:
            causes.add(case)
    if run.mails is not None and run.mails_passed is not None:
        statistics.mails.told = DistinctMails(run.mails, run.mails_passed)
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
        run=run,
        gate="undecided" if interrupted else gate,
        verdict=f"Eval {run.state}" if interrupted else f"Eval {gate} ({why})",
        totals=totals,
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
        summary={
            "schema_version": SCHEMA_VERSION,
            "run_id": run.id,
            "started": run.started,
            "duration_s": run.duration_s and round(run.duration_s, 3),
            "agent": run.agent or None,
            "llm": run.llm,
            "model": run.model,
            "tokens": usage.tokens(),
            "cost_usd": None if usage.cost_usd is None else round(usage.cost_usd, 9),
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
        json_case=_scenario_as_json,
    )


def describe_usage(model: str, usage: Usage) -> str:
    """One line for people: what a run took of the API."""
    return f"{model}: {usage.describe()}"


def _changes(comparison: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What is not as it was in the baseline: files and settings by name, and how many replies."""
    files = [f"{each['kind']} {each['name']} ({each['change']})" for each in comparison.get("changed_contents", ())]
    settings = [each["name"].replace("_", " ") for each in comparison.get("changed_settings", ())]
    yield "Changed since", and_more([*files, *settings], _MAX_CHANGES)
    replies = [each["name"] for each in comparison.get("changed_replies", ())]
    yield "Other replies", f"{len(replies)}: {and_more(replies, _MAX_CHANGES)}" if replies else ""


def _scenario_as_json(case: Case) -> dict[str, Any]:
    shown, count = case.shown, len(case.runs)
    took_ms = {"processing_time_ms": round(shown.duration_ms)}
    repeated = {"runs": count, "runs_passed": case.passed_runs} if count > 1 else {}
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


IN_MEMORY: Final = 2_000
"""Cases of which a run has more are read anew each time: they would take some 20 MB, and no end of it is known."""
_PAST_RUNS: Final = 30

ReadRecord = Callable[[CaseResult], CaseResult]
"""Adds what stands in a record beside the store, as `record_reference.with_record` does."""
WANTED_PERCENT: Final = 100
"""Nothing less than all is a success, so no rounding may say 100."""


class _StoredCases:
    """The cases of a run, to be gone through any number of times."""

    def __init__(self, store: RunStore, run: Run, read_record: ReadRecord, parts: Collection[str] = PARTS) -> None:
        self._store, self._run, self._read_record, self._parts = store, run, read_record, parts

    def __iter__(self) -> Iterator[Case]:
        for case in self._store.cases(self._run, self._parts):
            yield case._replace(runs=tuple(map(self._read_record, case.runs)))


def stored_report(store: RunStore, run: Run, read_record: ReadRecord = lambda result: result) -> Report:
    """The report of a run, as far as it came. Raises StoreError for a store that is damaged."""
    run = store.with_counts(run)
    cases = _StoredCases(store, run, read_record)
    held = list(cases) if run.total <= IN_MEMORY else cases
    counted = held if held is not cases else _StoredCases(store, run, read_record, COUNTED)
    history = [run, *store.runs(run.key, before=run.number, limit=_PAST_RUNS - 1)][::-1]
    if run.command != "eval":
        return task_report(run, held, history)
    comparison = None
    if (baseline := run.facts.get("baseline")) and run.total:
        with suppress(StoreError):  # it may have been deleted since
            comparison = compare_runs(store, store.find_run(baseline), run)
    report = suite_report(run, held, history, comparison, counted, _usage_of(store, run))
    missing = store.missing_cases(run)
    return replace(report, summary={**report.summary, "missing": missing}) if missing else report


def _usage_of(store: RunStore, run: Run) -> Usage:
    """Also of repetitions whose scenario is not decided, and of what came to no result; not of what was taken over."""
    usage = NO_USAGE
    if "usage" in run.facts:
        return Usage(**run.facts["usage"])
    for case in store.outcomes(run, undecided=True) if run.taken else ():
        for each in case.runs:
            usage = usage if each.taken_over else usage.plus(each.usage)
    return usage


def write_stored_reports(
    file: Path, number: int, options: RunOptions, error_code: str, ran: int, read_record: ReadRecord
) -> None:
    """Every report that the options name. number: of the run. ran: how many cases it had.

    Raises ConfigurationError with `error_code` for a file that cannot be written, and where not all of the run could be
    kept.
    """
    try:
        with RunStore(file) as store:
            report = stored_report(store, store.run(number), read_record)
            if report.totals.total < ran:
                raise not_kept(f"{report.totals.total} of {ran} could be written")
            write_report_files(options, error_code, report)
    except StoreError as error:
        raise not_kept(error.message) from None


_RENDERERS: Final = {
    "jsonl": ("row_files", "as_json_lines"),
    "csv": ("row_files", "as_csv"),
    "junit": ("junit_report", "as_junit"),
    "html": ("html_report", "as_html"),
    "board": ("html_report", "as_board"),
    "markdown": ("markdown_report", "as_markdown"),
}
"""Module and function of each form; few runs need any."""


def write_report_files(options: RunOptions, error_code: str, report: Report) -> None:
    """Write what the options name, and show the run in the step of a workflow that runs us.

    Raises ConfigurationError with `error_code` for a file that cannot be written, once the others are.
    """

    def render(form: str) -> Iterator[bytes] | bytes:
        if form == "json":
            return as_json_with_rows(report.summary, "results", map(report.json_case, report.cases))
        module, function = _RENDERERS["board" if form == "html" and options.html_for == "board" else form]
        rendered: Iterator[bytes] | bytes = getattr(import_module(f"{__package__}.{module}"), function)(report)
        return rendered

    if options.github is not None:
        options.github(report)
    write_reports(error_code, *((getattr(options, f"{form}_file"), partial(render, form)) for form in REPORT_FORMS))


def task_report(run: Run, cases: Iterable[Case], history: Sequence[Run] = ()) -> Report:
    """run: of `grade` or `solve`. A run of `grade --validate` says nothing of an agent, so that no rate is due."""
    totals, groups, by_task = Totals(), GroupCounter(), dict[str, list[int]]()
    scores, rubric = ScoreCounter(), RubricCounter()
    for case in cases:
        totals.add(case.verdict)
        groups.add(case)
        scores.add(case)
        rubric.add(case)
        counts = by_task.setdefault(case.shown.name, [0, 0, 0])
        counts[0] += case.passed
        counts[1] += 1
        counts[2] = max(counts[1], case.shown.of)
    interrupted = run.outcome in (None, "interrupted", "crashed")
    passes = totals.passed == totals.total > 0
    verdict = run.state if interrupted else "passed" if passes else "failed"
    measures_agent = not run.options.get("validate")
    return Report(
        run=run,
        gate="undecided" if interrupted else "passed" if passes else "failed",
        verdict=f"{run.command.capitalize()} {verdict}",
        totals=totals,
        cases=cases,
        rate=format_percentage(totals.passed, totals.total, WANTED_PERCENT) if measures_agent else "",
        facts=[*scores.facts(), *rubric.facts(), ("Version", run.package_version)],
        groups=groups.rows(),
        history=history,
        summary=_summary(run, totals, by_task, interrupted=interrupted)
        | {name: said for name, each in (("score", scores), ("rubric", rubric)) if (said := each.as_dict())},
        json_case=_task_as_json,
    )


def _summary(run: Run, totals: Totals, by_task: dict[str, list[int]], *, interrupted: bool) -> dict[str, Any]:
    """Where a task has several records, `tasks` sums them up: it passed where every one of them did.

    Where all passed that were judged before an interruption, nobody knows.
    """
    tasks = [
        {
            "task_name": name,
            "passed": None if passed == judged < total else passed == total,
            "records_passed": passed,
            "records": total,
        }
        for name, (passed, judged, total) in by_task.items()
    ]
    return {
        "schema_version": SCHEMA_VERSION,
        "planned": run.planned,
        "totals": {"total": totals.total, "passed": totals.passed, "failed": totals.failed, "error": totals.error},
        "interrupted": interrupted,
        **({"tasks": tasks} if any(each["records"] != 1 for each in tasks) else {}),
    }


def _task_as_json(case: Case) -> dict[str, Any]:
    """duration_ms: wall time of the judge."""
    shown = case.shown
    said = shown.judgement or {}
    returned = {"passed": case.passed, "feedback": said["feedback"], "details": said["details"]}
    returned |= {name: said[name] for name in ("score", "rubric") if name in said}
    return {
        "task_name": shown.name,
        **({"index": shown.repetition} if shown.of > 1 else {}),
        "verdict": case.verdict,
        "eval": None if case.verdict == "error" else returned,
        "error": said["error"],
        "output": said["output"],
        "duration_ms": round(shown.duration_ms, 1),
    }
