"""One stored result with everything that happened: for people, and for machines.

What stands in mails, replies and judgements was written by others: it reaches the terminal without control characters
and cut to a length that can be read. The JSON form has all of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final

from guarantee_email_agent.runlog.records import NO_USAGE, Case, CaseResult, Run
from guarantee_email_agent.runlog.run_reader import RunStore
from guarantee_email_agent.runlog.statistics import format_percentage
from guarantee_email_agent.runlog.suite_statistics import describe_score
from guarantee_email_agent.runlog.views.comparison_report import describe_run
from guarantee_email_agent.runlog.views.transcript import Call, Section, sections
from guarantee_email_agent.utils.terminal import Terminal, pluralize
from guarantee_email_agent.utils.text import and_more, printable, time_taken, truncate

_MAX_CASES: Final = 100
_MAX_FAILED_CHECKS: Final = 3
SCHEMA_VERSION: Final = 1
_MAX_VALUE: Final = 500
_MAX_ARGUMENT: Final = 160
_INDENT: Final = "    "


def print_runs(runs: Iterable[Run], terminal: Terminal) -> None:
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


def print_run(store: RunStore, run: Run, terminal: Terminal) -> None:
    """What the run was, and what of it did not pass, each with its first failed checks."""
    run = store.with_counts(run)
    terminal.line(f"Run: {describe_run(run)}")
    if run.outcome == "interrupted" and run.exit_code is None:
        terminal.line("It has no end: it was killed, or the store could not be written any more")
    if run.require_proof:
        terminal.line(f"Gate: {run.state}, with a proof of {run.threshold:g}% asked for")
    terminal.line(printable(f"Version: {run.package_version}{f', git {run.commit}' if run.commit else ''}"))
    if run.taken:
        terminal.line(f"Model: {printable(run.model) or 'not known'}, {run.taken}")
    if "score" in run.facts:
        terminal.line(f"Mean score: {describe_score(run.facts['score'])}")
    for origin, count in store.taken_over(run):
        terminal.line(f"Taken over from {printable(origin)}: {pluralize(count, 'result')}")
    if missing := store.missing_cases(run):
        terminal.line(f"Did not run: {printable(and_more(missing, 10))}")
    for each in run.facts.get("accepted", ()):
        by = f"by {each['by']}, since {each['reason']}" if each["reason"] else f"by {each['by']}"
        where = pluralize(len(each["scenarios"]), "scenario")
        terminal.line(printable(f"Accepted in {where} {by}: '{each['before']}' is now '{each['now']}'"))
    for name in ("must_failed", "regressions"):
        if names := run.facts.get(name):
            terminal.line(f"{name.capitalize().replace('_', ' ')}: {printable(and_more(names, 10))}")
    for reason in store.incomplete_inputs(run):
        terminal.line(f"incomplete: {printable(reason)}")
    failed = run.total - run.passed
    for each in islice(store.outcomes(run, failed_only=True), _MAX_CASES):
        _print_failed(store, each, terminal)
    if failed > _MAX_CASES:
        terminal.line(f"… and {failed - _MAX_CASES} more that failed")
    terminal.outcome(f"✓ Passed: {run.passed}")
    terminal.outcome(f"✗ Failed: {failed}", paint=failed > 0)
    terminal.flush()


def _print_failed(store: RunStore, case: Case, terminal: Terminal) -> None:
    shown, count = case.shown, len(case.runs)
    described = f": {printable(truncate(shown.description, 200))}" if shown.description else ""
    repeated = "" if count == 1 else f" ({case.passed_runs} of {count} runs passed)"
    terminal.outcome(f"✗ {printable(case.name)}{described} - {case.verdict.upper()}{repeated}")
    checks = store.checks(shown.place.id)
    for check in checks[:_MAX_FAILED_CHECKS]:
        reason = truncate(" ".join(check.reason[:1_000].split()), 200)
        terminal.line(f"    {printable(check._replace(reason=reason).summary)}")
    if len(checks) > _MAX_FAILED_CHECKS:
        terminal.line(f"    … and {len(checks) - _MAX_FAILED_CHECKS} more")


def print_result(run: Run, results: Sequence[CaseResult], terminal: Terminal) -> None:
    """Every repetition of one case; one that is just like the one before is said to be."""
    before: tuple[object, ...] | None = None
    for result in results:
        _print_title(result, terminal)
        same = (result.request, result.response, result.trace, result.judgement, result.checks, result.verdict)
        if same == before:
            terminal.line(f"{_INDENT}the same as the one before")
            continue
        before = same
        for section in sections(result):
            print_section(section, terminal)
        asked = "" if result.usage == NO_USAGE else f"; {result.usage.describe(waited=True)}"
        print_section(Section("took", "Took", text=f"{time_taken(result.duration_ms)}{asked}"), terminal)
    if len(results) > 1:
        passed = sum(each.verdict == "passed" for each in results)
        terminal.line(f"{passed} of {pluralize(len(results), 'run')} passed")
    if results[0].repetition == 1 and run.outcome is None:
        terminal.line("The run is not at its end")
    terminal.flush()


def print_section(section: Section, terminal: Terminal) -> None:
    """A part of a transcript below its title, indented."""
    lines = list(_field_lines(section))
    if section.text:
        lines += [*([""] if lines else []), *section.text.rstrip().split("\n")]
    for call in section.calls:
        lines += _call_lines(call)
    lines += _check_lines(section, terminal)
    if section.note:
        lines.append(f"… and {section.note}; --json has all")
    terminal.line(f"{section.title}:")
    for line in lines:
        terminal.line(f"{_INDENT}{line}".rstrip())


def json_result(run: Run, result: CaseResult) -> dict[str, Any]:
    """One repetition as JSON holds it; durations in milliseconds."""
    source = result.source
    return {
        "schema_version": SCHEMA_VERSION,
        "run_id": run.id,
        "name": result.name,
        "category": result.category,
        "language": result.language,
        "description": result.description,
        "repetition": result.repetition,
        "verdict": result.verdict,
        **({"taken_over": result.taken_over} if result.taken_over else {}),
        "duration_ms": result.duration_ms,
        "step_ms": list(result.step_ms) or None,
        "usage": result.usage.as_json(),
        "failed_checks": [each._asdict() for each in result.failed_checks],
        "source": None if source is None else source.decode(errors="replace"),
        "request": result.request,
        "response": result.response,
        "trace": result.trace,
        "judgement": result.as_judged() or None,
    }


def _print_title(result: CaseResult, terminal: Terminal) -> None:
    sign = "✓" if result.verdict == "passed" else "✗"
    described = f": {printable(truncate(result.description, 200))}" if result.description else ""
    number = f" (run {result.repetition})" if result.repetition > 1 else ""
    verdict = "" if result.verdict == "passed" else f" - {result.verdict.upper()}"
    terminal.outcome(f"{sign} {printable(result.name)}{number}{described}{verdict}")
    if result.taken_over:
        terminal.line(f"{_INDENT}taken over from {printable(result.taken_over)}")


def _field_lines(section: Section) -> Iterator[str]:
    for name, value in section.fields:
        first, *more = truncate(value, _MAX_VALUE).split("\n")
        yield f"{name}: {first}"
        yield from (f"  {line}" for line in more)


def _call_lines(call: Call) -> Iterator[str]:
    took = "" if call.duration_ms is None else f" {time_taken(call.duration_ms)}"
    yield f"{call.name}({', '.join(f'{name}={_argument(value)}' for name, value in call.arguments)}){took}"
    if call.answer is not None:
        yield f"  → {_argument(call.answer, quoted=False)}"


def _argument(value: str, *, quoted: bool = True) -> str:
    text = truncate(" ".join(value[:_MAX_VALUE].split()), _MAX_ARGUMENT)
    return f"'{text}'" if quoted and not value.startswith(("{", "[")) else text


def _check_lines(section: Section, terminal: Terminal) -> Iterator[str]:
    for check in section.checks:
        expected, actual = (value and truncate(value, _MAX_VALUE) for value in (check.expected, check.actual))
        if check.passed:
            yield terminal.green(f"✓ {check.name}: {expected}")
        else:
            yield terminal.red(f"✗ {truncate(check.summary, _MAX_VALUE)}")
        if not check.passed and expected is not None:
            yield f"    expected: {expected}"
        if actual not in (None, expected):
            yield f"    actual:   {actual}"
