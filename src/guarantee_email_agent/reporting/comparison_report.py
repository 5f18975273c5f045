"""A comparison of two runs for people, and for machines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from guarantee_email_agent.reporting.statistics import format_percentage
from guarantee_email_agent.reporting.terminal import Terminal, pluralize
from guarantee_email_agent.reporting.word_diff import diff_lines, diff_text, paint_changes
from guarantee_email_agent.store.comparison import CaseChange, Comparison, ContentChange, ReplyChange
from guarantee_email_agent.store.run_reader import CaseOutcome, StoredRun
from guarantee_email_agent.utils.text import printable, truncate

SCHEMA_VERSION: Final = 1
_MAX_NAMES: Final = 50
_MAX_DIFFS: Final = 10
_MAX_DIFF_LINES: Final = 20
_MAX_REPLY: Final = 4_000
_MAX_LINE: Final = 2_000


def print_comparison(comparison: Comparison, terminal: Terminal) -> None:
    """What changed between the runs, the worst first."""
    for run, title in ((comparison.baseline, "Baseline"), (comparison.run, "Run")):
        terminal.line(f"{title}: {describe_run(run)}")
    for name, before, after in comparison.settings:
        if name != "git_revision" or None not in (before, after):
            terminal.line(f"Changed {name.replace('_', ' ')}: {_shown(before)} → {_shown(after)}")
    for change in comparison.contents[:_MAX_DIFFS]:
        _print_content(change, terminal)
    if (more := len(comparison.contents) - _MAX_DIFFS) > 0:
        terminal.line(f"… and {pluralize(more, 'more changed file')}")
    if comparison.unknown_inputs:
        count = pluralize(comparison.unknown_inputs, "result")
        terminal.line(f"Of {count} it is not known what they depended on: files were edited during a run")
    _print_cases(comparison, terminal)
    _print_replies(comparison.replies, terminal)
    _print_sums(comparison.common, terminal)
    if comparison.regressions:
        terminal.line(terminal.red(f"✗ {pluralize(len(comparison.regressions), 'regression')}"))
    else:
        terminal.line(terminal.green("✓ No regression"))
    terminal.flush()


def describe_run(run: StoredRun) -> str:
    """One line: which run, of what, how it ended, and its count and rate."""
    parts = [run.id, f"{run.command} of {printable(run.suite)}"]
    if run.selection:
        parts.append(f"only {printable(truncate(', '.join(run.selection), 60))}")
    if run.llm not in ("", "offline"):
        parts.append(f"{run.llm} {printable(run.model)}")
    if run.agent:
        parts.append(printable(truncate(run.agent, 60)))
    outcome = run.outcome or "not at its end"
    rate = format_percentage(run.passed, run.total, run.threshold)
    counts = f"{outcome}, {run.passed}/{run.total} ({rate})" if run.total else outcome
    if run.total < run.planned and run.outcome is not None:
        counts += f", {run.total} of {run.planned} ran"
    return ", ".join([*parts, run.started, counts])


def json_comparison(comparison: Comparison) -> dict[str, Any]:
    """The comparison as JSON holds it; durations in milliseconds."""
    before, after = _sums(comparison.common)
    return {
        "schema_version": SCHEMA_VERSION,
        "baseline": json_run(comparison.baseline),
        "run": json_run(comparison.run),
        "same_suite": comparison.baseline.suite == comparison.run.suite,
        "regressions": comparison.regressions,
        **{
            kind: [each.name for each in getattr(comparison, kind)]
            for kind in ("newly_failing", "newly_passing", "still_failing", "added", "removed", "not_selected")
        },
        "still_passing": len(comparison.still_passing),
        "changed_replies": [each._asdict() for each in comparison.replies],
        "changed_contents": [
            {"kind": each.kind, "name": each.name, "change": _verb(each), "cases": each.cases}
            for each in comparison.contents
        ],
        "changed_settings": [{"name": name, "before": old, "after": new} for name, old, new in comparison.settings],
        "unknown_inputs": comparison.unknown_inputs,
        "duration_ms": {"before": round(before[0], 1), "after": round(after[0], 1)},
        "cost_usd": {"before": before[1], "after": after[1]},
    }


def json_run(run: StoredRun) -> dict[str, Any]:
    """A run as JSON holds it."""
    names = ("id", "command", "suite", "selection", "agent", "llm", "model", "started", "ended", "outcome", "planned")
    counts = ("repeat", "threshold", "total", "passed", "failed", "error", "invalid", "tokens", "cost_usd")
    rest = ("exit_code", "duration_s", "package_version", "git_revision", "git_dirty")
    return {name: getattr(run, name) for name in (*names, *counts, *rest)}


def _print_content(change: ContentChange, terminal: Terminal) -> None:
    depend = pluralize(change.cases, "result")
    own = change.kind in ("scenario", "task")
    which = "" if own else f" ({depend} {'depends' if change.cases == 1 else 'depend'} on it)"
    terminal.line(f"{_verb(change).capitalize()} {change.kind}: {printable(change.name)}{which}")
    if change.before is not None and change.after is not None:
        for line in diff_lines(change.before, change.after, _MAX_DIFF_LINES):
            shown = f"    {printable(truncate(line, _MAX_LINE))}"
            paint = {"-": terminal.red, "+": terminal.green}.get(line[:1], str)
            terminal.line(paint(shown))


def _verb(change: ContentChange) -> str:
    return "changed" if change.existed and change.exists else "added" if change.exists else "removed"


def _print_cases(comparison: Comparison, terminal: Terminal) -> None:
    kinds = (
        ("Newly failing", comparison.newly_failing, terminal.red),
        ("Removed, which counts as a regression", comparison.removed, terminal.red),
        ("Still failing", comparison.still_failing, str),
        ("Newly passing", comparison.newly_passing, terminal.green),
        ("Added", comparison.added, str),
    )
    for title, cases, paint in kinds:
        if cases:
            terminal.line(paint(f"{title}: {len(cases)}"))
            for line in _case_lines(cases):
                terminal.line(f"    {line}")
    if comparison.not_selected:
        terminal.line(f"Not selected this time: {len(comparison.not_selected)}")
    terminal.line(f"Still passing: {len(comparison.still_passing)}")


def _case_lines(cases: Sequence[CaseChange | CaseOutcome]) -> Iterator[str]:
    for each in cases[:_MAX_NAMES]:
        outcome = each.after if isinstance(each, CaseChange) else each
        repeated = "" if outcome.runs == 1 else f" ({outcome.passed} of {outcome.runs} runs passed)"
        verdict = "" if isinstance(each, CaseChange) or outcome.verdict == "passed" else f" ({outcome.verdict})"
        described = f": {printable(truncate(outcome.description, 200))}" if outcome.description else ""
        yield f"{printable(outcome.name)}{described}{verdict}{repeated}"
    if len(cases) > _MAX_NAMES:
        yield f"… and {len(cases) - _MAX_NAMES} more"


def _print_replies(replies: Sequence[ReplyChange], terminal: Terminal) -> None:
    if not replies:
        return
    terminal.line(f"Changed replies: {len(replies)}")
    alike: dict[tuple[str, ...], list[str]] = {}
    for each in replies[: 20 * _MAX_DIFFS]:
        alike.setdefault(tuple(_reply_lines(each)), []).append(each.name)
    for lines, names in list(alike.items())[:_MAX_DIFFS]:
        more = f" and {len(names) - 1} more alike" if len(names) > 1 else ""
        terminal.line(f"    {printable(names[0])}{more}:")
        for line in lines:
            terminal.line(f"      {paint_changes(printable(line), terminal)}")
    if len(alike) > _MAX_DIFFS:
        terminal.line("    … and others; --json has all")


def _reply_lines(change: ReplyChange) -> Iterator[str]:
    if change.before is None or change.after is None:
        yield "no reply any more" if change.after is None else "a reply, where there was none"
        return
    lines = list(diff_text(change.before[:_MAX_REPLY], change.after[:_MAX_REPLY]))
    yield from (truncate(line, _MAX_LINE) for line in lines)
    if max(len(change.before), len(change.after)) > _MAX_REPLY:
        yield f"(compared up to {_MAX_REPLY:,} characters)"


def _sums(cases: Sequence[CaseChange]) -> list[tuple[float, float | None]]:
    """Duration in milliseconds and cost in dollars of the cases of both runs, before and after."""
    sums: list[tuple[float, float | None]] = []
    for outcomes in ([each.before for each in cases], [each.after for each in cases]):
        known = [outcome.cost_usd for outcome in outcomes if outcome.cost_usd is not None]
        cost = sum(known) if len(known) == len(outcomes) else None
        sums.append((sum(outcome.duration_ms for outcome in outcomes), cost))
    return sums


def _print_sums(cases: Sequence[CaseChange], terminal: Terminal) -> None:
    if not cases:
        terminal.line("The runs have no result in common")
        return
    before, after = _sums(cases)
    line = f"Together the {len(cases)} of both took {before[0] / 1000:.1f}s, now {after[0] / 1000:.1f}s"
    costs = ["not known" if cost is None else f"${cost:.4f}" for cost in (before[1], after[1])]
    if before[1] != 0 or after[1] != 0:
        line += f"; they cost {costs[0]}, now {costs[1]}"
    terminal.line(line)


def _shown(value: object) -> str:
    if isinstance(value, str):
        return printable(truncate(value, 100)) or "(none)"
    if isinstance(value, tuple):
        return printable(truncate(", ".join(map(str, value)), 100)) or "(all)"
    return printable(truncate(str(value), 200))
