"""A stored run as a whole, and the list of runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from guarantee_email_agent.files.report_files import as_json_with_rows
from guarantee_email_agent.runlog.run_reader import RunStore
from guarantee_email_agent.runlog.statistics import format_percentage
from guarantee_email_agent.runlog.stored_records import CaseOutcome, StoredRun
from guarantee_email_agent.runlog.views.comparison_report import describe_run, json_run
from guarantee_email_agent.utils.terminal import Terminal, pluralize
from guarantee_email_agent.utils.text import printable, truncate

_MAX_CASES: Final = 100
_MAX_FAILED_CHECKS: Final = 3


def print_runs(runs: Iterable[StoredRun], terminal: Terminal) -> None:
    """A line a run, the newest first."""
    for run in runs:
        rate = format_percentage(run.passed, run.total, run.threshold) if run.total else "no result"
        selected = f" ({pluralize(len(run.selection), 'pattern')} of it)" if run.selection else ""
        suite = f"{run.command} {printable(truncate(run.suite, 60))}{selected}"
        repeated = f", {run.repeat} times" if run.repeat > 1 else ""
        paint = {"passed": terminal.green, "failed": terminal.red}.get(run.state, str)
        terminal.line(
            f"{run.id}  {run.started}  {paint(run.state)}  {run.passed}/{run.total} ({rate})  {suite}{repeated}"
        )
    terminal.flush()


def print_run(store: RunStore, run: StoredRun, terminal: Terminal) -> None:
    """What the run was, and what of it did not pass, each with its first failed checks."""
    run = store.with_counts(run)
    terminal.line(f"Run: {describe_run(run)}")
    if run.outcome == "interrupted" and run.exit_code is None:
        terminal.line("It has no end: it was killed, or the store could not be written any more")
    if run.require_proof:
        terminal.line(f"Gate: {run.state}, with a proof of {run.threshold:g}% asked for")
    terminal.line(f"Version: {printable(run.package_version)}{_revision(run)}")
    if run.tokens:
        cost = "cost not known" if run.cost_usd is None else f"${run.cost_usd:.4f}"
        terminal.line(f"Model: {printable(run.model)}, {run.tokens:,} tokens, {cost}")
    for origin, count in store.taken_over(run):
        terminal.line(f"Taken over from {printable(origin)}: {pluralize(count, 'result')}")
    for each in run.facts.get("accepted", ()):
        by = f"by {each['by']}, since {each['reason']}" if each["reason"] else f"by {each['by']}"
        where = pluralize(len(each["scenarios"]), "scenario")
        terminal.line(printable(f"Accepted in {where} {by}: '{each['before']}' is now '{each['now']}'"))
    for reason in store.incomplete_inputs(run):
        terminal.line(f"incomplete: {printable(reason)}")
    failed = run.total - run.passed
    for each in islice(store.case_outcomes(run, failed_only=True), _MAX_CASES):
        _print_failed(store, each, terminal)
    if failed > _MAX_CASES:
        terminal.line(f"… and {failed - _MAX_CASES} more that failed")
    terminal.outcome(f"✓ Passed: {run.passed}")
    terminal.outcome(f"✗ Failed: {failed}", paint=failed > 0)
    terminal.flush()


def json_run_report(store: RunStore, run: StoredRun) -> Iterator[bytes]:
    """A run with the outcome of each of its cases, piece by piece."""
    run = store.with_counts(run)
    outcomes = (
        {"name": each.name, "verdict": each.verdict, "passed": each.passed, "runs": each.runs}
        for each in store.case_outcomes(run)
    )
    inputs = {"taken_over": dict(store.taken_over(run)), "incomplete": store.incomplete_inputs(run)}
    head = {"schema_version": 1, "run": json_run(run), "gate": run.state, **inputs}
    yield from as_json_with_rows(head, "results", outcomes)


def _print_failed(store: RunStore, outcome: CaseOutcome, terminal: Terminal) -> None:
    described = f": {printable(truncate(outcome.description, 200))}" if outcome.description else ""
    repeated = "" if outcome.runs == 1 else f" ({outcome.passed} of {outcome.runs} runs passed)"
    terminal.outcome(f"✗ {printable(outcome.name)}{described} - {outcome.verdict.upper()}{repeated}")
    first = store.first_failed(outcome)
    checks = store.checks(first)
    for check in checks[:_MAX_FAILED_CHECKS]:
        reason = truncate(" ".join(check.reason[:1_000].split()), 200)
        terminal.line(f"    {printable(check._replace(reason=reason).summary)}")
    if len(checks) > _MAX_FAILED_CHECKS:
        terminal.line(f"    … and {len(checks) - _MAX_FAILED_CHECKS} more")


def _revision(run: StoredRun) -> str:
    if run.git_revision is None:
        return ""
    return f", git {run.git_revision[:12]}{' with changed files' if run.git_dirty else ''}"
