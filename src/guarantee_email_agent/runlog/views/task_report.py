"""Graded work as the data of a report: each task with what its judge said, and what came of the whole."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from guarantee_email_agent.runlog.records import Case
from guarantee_email_agent.runlog.statistics import format_percentage
from guarantee_email_agent.runlog.stored_records import StoredRun
from guarantee_email_agent.runlog.totals import Totals
from guarantee_email_agent.runlog.views.report import GroupCounter, PastRun, Report, relative_to

WANTED_PERCENT: Final = 100
"""Nothing less than all is a success, so no rounding may say 100."""

SCHEMA_VERSION: Final = 1


def task_report(run: StoredRun, cases: Iterable[Case], history: Sequence[PastRun] = ()) -> Report:
    """run: of `grade` or `solve`. A run of `grade --validate` says nothing of an agent, so that no rate is due."""
    totals, groups, by_task = Totals(), GroupCounter(), dict[str, list[int]]()
    for case in cases:
        totals.add(case.verdict)
        groups.add(case)
        counts = by_task.setdefault(case.shown.name, [0, 0])
        counts[0] += case.passed
        counts[1] += 1
    interrupted = run.outcome in (None, "interrupted", "crashed")
    passes = totals.passed == totals.total > 0
    verdict = run.state if interrupted else "passed" if passes else "failed"
    measures_agent = not run.options.get("validate")
    return Report(
        command=run.command,
        noun="task",
        suite=relative_to(run.suite),
        run_id=run.id,
        started=run.started,
        duration_s=run.duration_s,
        gate="undecided" if interrupted else "passed" if passes else "failed",
        verdict=f"{run.command.capitalize()} {verdict}",
        totals=totals,
        planned=run.planned,
        cases=cases,
        rate=format_percentage(totals.passed, totals.total, WANTED_PERCENT) if measures_agent else "",
        facts=[("Version", run.package_version)],
        groups=groups.rows(),
        history=history,
        summary=_summary(run, totals, by_task, interrupted=interrupted),
        json_case=_json_case,
    )


def _summary(run: StoredRun, totals: Totals, by_task: dict[str, list[int]], *, interrupted: bool) -> dict[str, Any]:
    """Where a task has several records, `tasks` sums them up: it passed where every one of them did."""
    tasks = [
        {"task_name": name, "passed": passed == total, "records_passed": passed, "records": total}
        for name, (passed, total) in by_task.items()
    ]
    return {
        "schema_version": SCHEMA_VERSION,
        "planned": run.planned,
        "totals": {"total": totals.total, "passed": totals.passed, "failed": totals.failed, "error": totals.error},
        "interrupted": interrupted,
        **({"tasks": tasks} if len(tasks) < totals.total else {}),
    }


def _json_case(case: Case) -> dict[str, Any]:
    """duration_ms: wall time of the judge."""
    shown = case.shown
    said = shown.judgement or {}
    returned = {"passed": case.passed, "feedback": said["feedback"], "details": said["details"]}
    return {
        "task_name": shown.name,
        **({"index": shown.repetition} if shown.of > 1 else {}),
        "verdict": case.verdict,
        "eval": None if case.verdict == "error" else returned,
        "error": said["error"],
        "output": said["output"],
        "duration_ms": round(shown.duration_ms, 1),
    }
