"""One stored result with everything that happened: for people, and for machines.

What stands in mails, replies and judgements was written by others: it reaches the terminal without control characters
and cut to a length that can be read. The JSON form has all of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from guarantee_email_agent.runlog.records import CaseResult
from guarantee_email_agent.runlog.stored_records import StoredRun
from guarantee_email_agent.runlog.views.transcript import Call, Section, sections
from guarantee_email_agent.utils.terminal import Terminal, pluralize
from guarantee_email_agent.utils.text import printable, truncate

SCHEMA_VERSION: Final = 1
_MAX_VALUE: Final = 500
_MAX_ARGUMENT: Final = 160
_INDENT: Final = "    "


def print_result(run: StoredRun, results: Sequence[CaseResult], terminal: Terminal) -> None:
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
        print_section(Section("took", "Took", text=_cost_line(result)), terminal)
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


def json_result(run: StoredRun, result: CaseResult) -> dict[str, Any]:
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
        "usage": result.usage._asdict(),
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
    took = "" if call.duration_ms is None else f" {_milliseconds(call.duration_ms)}"
    yield f"{call.name}({', '.join(f'{name}={_argument(value)}' for name, value in call.arguments)}){took}"
    if call.answer is not None:
        yield f"  → {_argument(call.answer, quoted=False)}"


def _argument(value: str, *, quoted: bool = True) -> str:
    text = truncate(" ".join(value[:_MAX_VALUE].split()), _MAX_ARGUMENT)
    return f"'{text}'" if quoted and not value.startswith(("{", "[")) else text


def _milliseconds(duration_ms: float) -> str:
    if duration_ms < 1:  # as of a mock
        return f"{duration_ms:.2f} ms"
    return f"{duration_ms:.1f} ms" if duration_ms < 10 else f"{duration_ms:,.0f} ms"


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


def _cost_line(result: CaseResult) -> str:
    usage = result.usage
    line = f"{result.duration_ms:.0f} ms"
    if not usage.calls:
        return line
    return f"{line}; {pluralize(usage.calls, 'answer')} of the model after {usage.latency_ms} ms, {usage.describe()}"
