"""A comparison of two runs for people, and for machines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from guarantee_email_agent.runlog.comparison import CaseChange, Changes, Comparison, ContentChange, ReplyChange, Sums
from guarantee_email_agent.runlog.records import Case, Run
from guarantee_email_agent.runlog.statistics import format_percentage
from guarantee_email_agent.runlog.views.word_diff import diff_lines, diff_text, paint_changes
from guarantee_email_agent.utils.terminal import Terminal, pluralize
from guarantee_email_agent.utils.text import amount, printable, truncate

SCHEMA_VERSION: Final = 1
_MAX_NAMES: Final = 50
_MAX_DIFFS: Final = 10
MAX_REPLIES: Final = 20 * _MAX_DIFFS
"""Changed replies that are looked at for people."""
_MAX_DIFF_LINES: Final = 20
_MAX_REPLY: Final = 4_000
_MAX_LINE: Final = 2_000
_CASES_BY_NAME: Final = (
    *("newly_failing", "newly_passing", "still_failing", "added", "removed"),
    *("not_reached", "not_reached_before", "not_selected"),
)


def print_comparison(comparison: Comparison, terminal: Terminal) -> None:
    """What changed between the runs, the worst first."""
    for run, title in ((comparison.baseline, "Baseline"), (comparison.run, "Run")):
        terminal.line(f"{title}: {describe_run(run)}")
    for name, before, after in comparison.settings:
        if name != "git_revision" or None not in (before, after):
            terminal.line(f"Changed {name.replace('_', ' ')}: {shown_setting(before)} → {shown_setting(after)}")
    for change in comparison.contents.shown[:_MAX_DIFFS]:
        _print_content(change, terminal)
    if (more := comparison.contents.total - _MAX_DIFFS) > 0:
        terminal.line(f"… and {pluralize(more, 'more changed file')}")
    if comparison.unknown_inputs:
        count = pluralize(comparison.unknown_inputs, "result")
        terminal.line(f"Of {count} it is not known what they depended on: files were edited during a run")
    _print_cases(comparison, terminal)
    print_replies(comparison.replies, terminal)
    print_replies(comparison.feedback, terminal, "Changed feedback", "feedback")
    _print_sums(comparison.sums, terminal)
    if comparison.regressions:
        terminal.line(terminal.red(f"✗ {pluralize(len(comparison.regressions), 'regression')}"))
    elif comparison.missing:
        reached = f"{comparison.missing} of {comparison.run.planned} were not reached"
        terminal.line(terminal.red(f"✗ Not decided: no regression in what ran, but {reached}"))
    elif not comparison.sums.cases:
        terminal.line(terminal.red("✗ Not decided: nothing can be compared"))
    else:
        terminal.line(terminal.green("✓ No regression"))
    terminal.flush()


def describe_run(run: Run) -> str:
    """One line: which run, of what, how it ended, and its count and rate."""
    parts = [run.id, f"{run.command} of {printable(run.suite)}"]
    if run.selection:
        parts.append(f"only {printable(truncate(', '.join(run.selection), 60))}")
    if run.llm not in ("", "offline"):
        parts.append(f"{run.llm} {printable(run.model)}")
    if run.agent:
        parts.append(printable(truncate(run.agent, 60)))
    rate = format_percentage(run.passed, run.total, run.threshold)
    counts = f"{run.state}, {run.passed}/{run.total} ({rate})" if run.total else run.state
    if run.reached:
        counts += f", {run.reached} ran"
    return ", ".join([*parts, run.started, counts])


def json_comparison(comparison: Comparison) -> dict[str, Any]:
    """The comparison as JSON holds it; durations in milliseconds."""
    sums = comparison.sums
    return {
        "schema_version": SCHEMA_VERSION,
        "baseline": json_run(comparison.baseline),
        "run": json_run(comparison.run),
        "same_suite": comparison.baseline.suite == comparison.run.suite,
        "regressions": comparison.regressions,
        **{kind: [each.name for each in getattr(comparison, kind)] for kind in _CASES_BY_NAME},
        "still_passing": comparison.still_passing,
        "missing": comparison.missing,
        "changed_replies": [each._asdict() for each in comparison.replies.shown],
        "changed_feedback": [each._asdict() for each in comparison.feedback.shown],
        "changed_contents": [
            {"kind": each.kind, "name": each.name, "change": each.verb, "cases": each.cases}
            for each in comparison.contents.shown
        ],
        "changed_settings": [{"name": name, "before": old, "after": new} for name, old, new in comparison.settings],
        "unknown_inputs": comparison.unknown_inputs,
        "duration_ms": {name: round(ms, 1) for name, ms in zip(("before", "after"), sums.duration_ms, strict=True)},
        "cost_usd": dict(zip(("before", "after"), sums.cost_usd, strict=True)),
    }


def json_run(run: Run) -> dict[str, Any]:
    """A run as JSON holds it."""
    names = ("id", "command", "suite", "selection", "agent", "llm", "model", "started", "ended", "outcome", "planned")
    counts = ("repeat", "threshold", "total", "passed", "failed", "error", "invalid", "tokens", "cost_usd")
    rest = ("exit_code", "duration_s", "package_version", "git_revision", "git_dirty")
    return {name: getattr(run, name) for name in (*names, *counts, *rest)}


def _print_content(change: ContentChange, terminal: Terminal) -> None:
    depend = pluralize(change.cases, "result")
    own = change.kind in ("scenario", "task") or ("/" in change.name and change.kind == "judge")
    which = "" if own else f" ({depend} {'depends' if change.cases == 1 else 'depend'} on it)"
    terminal.line(f"{change.verb.capitalize()} {change.kind}: {printable(change.name)}{which}")
    if change.before is not None and change.after is not None:
        for line in diff_lines(change.before, change.after, _MAX_DIFF_LINES):
            shown = f"    {printable(truncate(line, _MAX_LINE))}"
            paint = {"-": terminal.red, "+": terminal.green}.get(line[:1], str)
            terminal.line(paint(shown))


def _print_cases(comparison: Comparison, terminal: Terminal) -> None:
    paints = {"failed": terminal.red, "passed": terminal.green}
    for title, kind, cases, _ in comparison.groups():
        terminal.line(paints.get(kind, str)(f"{title}: {len(cases)}"))
        for line in _case_lines(cases) if cases is not comparison.not_selected else ():
            terminal.line(f"    {line}")
    terminal.line(f"Still passing: {comparison.still_passing}")


def _case_lines(cases: Sequence[CaseChange | Case]) -> Iterator[str]:
    for each in cases[:_MAX_NAMES]:
        outcome = each.after if isinstance(each, CaseChange) else each
        count, description = len(outcome.runs), outcome.shown.description
        repeated = "" if count == 1 else f" ({outcome.passed_runs} of {count} runs passed)"
        verdict = "" if isinstance(each, CaseChange) or outcome.passed else f" ({outcome.verdict})"
        described = f": {printable(truncate(description, 200))}" if description else ""
        yield f"{printable(outcome.name)}{described}{verdict}{repeated}"
    if len(cases) > _MAX_NAMES:
        yield f"… and {len(cases) - _MAX_NAMES} more"


def print_replies(
    replies: Changes[ReplyChange], terminal: Terminal, title: str = "Changed replies", noun: str = "reply"
) -> None:
    """How many replies changed and, word by word, what in them; those that changed alike once."""
    if not replies.shown:
        return
    terminal.line(f"{title}: {replies.total}")
    alike = alike_replies(replies.shown[:MAX_REPLIES], noun)
    for lines, names in list(alike.items())[:_MAX_DIFFS]:
        more = f" and {len(names) - 1} more alike" if len(names) > 1 else ""
        terminal.line(f"    {printable(names[0])}{more}:")
        for line in lines:
            terminal.line(f"      {paint_changes(printable(line), terminal)}")
    if len(alike) > _MAX_DIFFS:
        terminal.line("    … and others; --json has all")


def alike_replies(replies: Iterable[ReplyChange], noun: str = "reply") -> dict[tuple[str, ...], list[str]]:
    """The names of those that changed alike, by the lines of the difference, as `diff_text` has them."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for each in replies:
        alike.setdefault(tuple(_reply_lines(each, noun)), []).append(each.name)
    return alike


def _reply_lines(change: ReplyChange, noun: str) -> Iterator[str]:
    if change.after is None:
        yield f"no {noun} any more"
    elif change.before is None:
        yield f"{'a ' if noun == 'reply' else ''}{noun}, where there was none"
    else:
        lines = diff_text(change.before[:_MAX_REPLY], change.after[:_MAX_REPLY])
        yield from (truncate(line, _MAX_LINE) for line in lines)
        if max(len(change.before), len(change.after)) > _MAX_REPLY:
            yield f"(compared up to {_MAX_REPLY:,} characters)"


def _print_sums(sums: Sums, terminal: Terminal) -> None:
    if not sums.cases:
        terminal.line("The runs have no result in common")
        return
    before_ms, after_ms = sums.duration_ms
    line = f"Together the {sums.cases} of both took {before_ms / 1000:.1f}s, now {after_ms / 1000:.1f}s"
    costs = ["not known" if cost is None else f"${amount(cost)}" for cost in sums.cost_usd]
    if sums.cost_usd != (0, 0):
        line += f"; they cost {costs[0]}, now {costs[1]}"
    terminal.line(line)


def shown_setting(value: object) -> str:
    """What a run was begun with, short and on one line."""
    if isinstance(value, str):
        return printable(truncate(value, 100)) or "(none)"
    if isinstance(value, tuple):
        return printable(truncate(", ".join(map(str, value)), 100)) or "(all)"
    return printable(truncate(str(value), 200))
