"""Graded work as the data of a report: each task with what its judge said, and what came of the whole."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from guarantee_email_agent.judging.grade_report import UNWRITABLE, WANTED_PERCENT, json_results, json_rows, json_summary
from guarantee_email_agent.judging.record_files import RecordPlace
from guarantee_email_agent.judging.record_reference import transcript_parts
from guarantee_email_agent.judging.task import TEST_FILE
from guarantee_email_agent.judging.verdict import Graded
from guarantee_email_agent.reporting.kept_results import Results, mapped
from guarantee_email_agent.reporting.report import Case, Report, Run, relative_to
from guarantee_email_agent.reporting.run_report import RunOptions
from guarantee_email_agent.reporting.statistics import format_percentage
from guarantee_email_agent.reporting.totals import Totals
from guarantee_email_agent.reporting.transcript import MAX_TEXT
from guarantee_email_agent.store.records import Check
from guarantee_email_agent.utils.errors import TaskError
from guarantee_email_agent.utils.text import truncate
from guarantee_email_agent.utils.version import __version__

if TYPE_CHECKING:
    from guarantee_email_agent.judging.grade_recorder import GradeRecorder

_MAX_ENTRIES: Final = 100


def write_task_reports(
    command: str,
    options: RunOptions,
    planned: int,
    recorder: GradeRecorder | None,
    measures_agent: bool,
    results: Results[Graded],
    duration_s: float,
    *,
    interrupted: bool,
) -> None:
    """The report files of `grade` and `solve`, whose content has one shape.

    recorder: None where the run is not kept, so that it has no id and no history.
    """
    from guarantee_email_agent.reporting.report_formats import write_report_files

    report = task_report(
        command,
        options.directory,
        results,
        duration_s,
        planned,
        interrupted=interrupted,
        measures_agent=measures_agent,
        with_records=options.html_file is not None,
    )
    if recorder is not None:
        from guarantee_email_agent.store.run_reader import past_runs

        run = recorder.run
        report = replace(report, run_id=run.id, started=run.started, history=past_runs(recorder.file, run.id))
    write_report_files(
        options,
        UNWRITABLE,
        report,
        lambda: json_summary(results, interrupted=interrupted, planned=planned),
        lambda: json_results(results),
        lambda: json_rows(results),
    )


def task_report(
    command: str,
    directory: Path,
    results: Results[Graded],
    duration_s: float,
    planned: int,
    *,
    interrupted: bool,
    measures_agent: bool,
    with_records: bool = False,
) -> Report:
    """command: `grade` or `solve`. directory: of the tasks. duration_s: seconds. planned: results of a whole run.

    measures_agent: whether the results say how good an agent is, so that a rate is due. with_records: whether anybody
    looks at what the agent did.
    """
    totals = Totals.of(graded.verdict.verdict for graded in results)
    passes = totals.passed == totals.total > 0
    verdict = "interrupted" if interrupted else "passed" if passes else "failed"
    return Report(
        command=command,
        noun="task",
        suite=str(directory),
        run_id="",
        started="",
        duration_s=duration_s,
        gate="undecided" if interrupted else "passed" if passes else "failed",
        verdict=f"{command.capitalize()} {verdict}",
        totals=totals,
        planned=planned,
        cases=mapped(results, partial(_case, directory=directory, with_record=with_records)),
        rate=format_percentage(totals.passed, totals.total, WANTED_PERCENT) if measures_agent else "",
        facts=[("Version", __version__)],
    )


def _case(graded: Graded, directory: Path, with_record: bool) -> Case:
    verdict = graded.verdict
    failed = () if verdict.verdict == "passed" else (Check("", verdict.error or verdict.feedback or verdict.verdict),)
    said = {"feedback": verdict.feedback if not failed else "", "details": dict(verdict.details)}
    return Case(
        name=graded.name,
        outcome=verdict.verdict,
        runs=(Run(verdict.verdict, verdict.duration_ms, failed),),
        failed_checks=failed,
        group="tasks",
        file=_judge_of(directory, graded.task_name),
        output=verdict.output,
        judgement={name: value for name, value in said.items() if value} or None,
        **(_work(graded.place) if with_record and graded.place is not None else {}),
    )


def _work(place: RecordPlace) -> dict[str, Any]:
    """What the agent did, as far as a page shows it: many records of any size make one page."""
    try:
        parts = transcript_parts(place.read())
        trace = {name: _shown(entries) for name, entries in parts["trace"].items()}
    except (TaskError, ValueError, RecursionError):  # the verdict says so
        return {}
    return {**parts, "trace": trace}


def _shown(entries: list[Any]) -> list[Any]:
    """As many as before, since they are counted; those that no page shows without their content."""
    return [_cut(entry) for entry in entries[:_MAX_ENTRIES]] + [None] * (len(entries) - _MAX_ENTRIES)


def _cut(entry: Any) -> Any:
    """A message or a step with texts that are no longer than a page shows."""
    if isinstance(entry, str):
        return truncate(entry, MAX_TEXT)
    if isinstance(entry, dict):
        return {name: _cut(value) for name, value in entry.items()}
    return [_cut(each) for each in entry[:_MAX_ENTRIES]] if isinstance(entry, list) else entry


def _judge_of(directory: Path, task_name: str) -> str:
    """The task's test.py; empty where there is none, as for a record without a task."""
    for folder in (directory / task_name, directory):
        if folder.name == task_name and (folder / TEST_FILE).is_file():
            return relative_to(str(folder / TEST_FILE))
    return ""
