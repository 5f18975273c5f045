"""A run as Markdown: for a pull request's comment or the summary of a CI step, as GitHub and GitLab show it.

What a stranger wrote stands in code, where no HTML, link or @mention is read, or with each sign of Markdown escaped.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

from guarantee_email_agent.runlog.records import Case
from guarantee_email_agent.runlog.views.report import SIGNS, WORDS, Report, relative_to
from guarantee_email_agent.runlog.views.transcript import cut
from guarantee_email_agent.utils.text import printable, truncate, visible

MAX_CHARACTERS: Final = 65_000
"""A comment on GitHub may have 65,536; the summary of a step may have sixteen times as many bytes."""

_FOR_PASSED: Final = 12_000
_MAX_CASE: Final = 2_000
_MAX_NAME: Final = 200
_MAX_GROUPS: Final = 100
_PUNCTUATION: Final = re.compile(r"([!-/:-@\[-`{-~])")
_ZERO_WIDTH_SPACE: Final = "\u200b"
_GATES: Final = {"passed": "✅", "failed": "❌", "inconclusive": "⚠️", "undecided": "⚠️"}


def as_markdown(report: Report) -> bytes:
    """At most `MAX_CHARACTERS`; what is left out for that is said."""
    head = "\n".join(_head(report))
    passed = "\n".join(_passed(report))
    failed = "\n".join(_failed(report, MAX_CHARACTERS - len(head) - len(passed)))
    return f"{head}\n{failed}\n{passed}".rstrip("\n").encode(errors="backslashreplace") + b"\n"


def escaped(text: str) -> str:
    """`text` on one line, in which Markdown sees nothing but text, no name is mentioned and no number linked."""
    shown = _PUNCTUATION.sub(r"\\\1", printable(" ".join(text.split())))
    return re.sub("([@#])", rf"\1{_ZERO_WIDTH_SPACE}", shown)


def code_span(text: str) -> str:
    """`text` on one line as code, also within a table."""
    shown = printable(" ".join(truncate(text, _MAX_NAME).split())) or " "
    fence = "`" * (_longest_run(shown) + 1)
    padding = " " if shown[0] == "`" or shown[-1] == "`" else ""
    return f"{fence}{padding}{shown}{padding}{fence}".replace("|", "\\|")


def code_block(text: str) -> str:
    """`text` as a block of code that nothing in it ends."""
    shown = visible(text)
    fence = "`" * max(3, _longest_run(shown) + 1)
    return f"{fence}text\n{shown}\n{fence}"


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)


def _head(report: Report) -> Iterator[str]:
    totals = report.totals
    yield f"## {_GATES[report.gate]} {escaped(report.title)}\n"
    if report.interrupted:
        ran = f"{totals.total:,} of {report.run.planned:,} {report.noun}s ran"
        yield f"**Interrupted:** {ran}. The gate is not decided.\n"
    rate = f"**{report.rate}** passed: " if report.rate else "Passed: "
    errors = f", {totals.error:,} errors" if totals.error else ""
    invalid = f" ({totals.invalid:,} invalid files)" if totals.invalid else ""
    yield f"{rate}{totals.passed:,} of {totals.total:,}, {totals.failed:,} failed{invalid}{errors}.\n"
    if report.notes:
        yield " ".join(report.notes) + "\n"
    facts = [("Suite", report.suite), *report.facts, ("Run", report.run.id)]
    yield _table(("", ""), [(escaped(name), code_span(value)) for name, value in facts if value])
    groups = report.groups
    if len(groups) > 1:
        rows = [
            (code_span(row.category or "–"), code_span(row.language or "–"), f"{row.passed:,}", f"{row.failed:,}")
            for row in groups[:_MAX_GROUPS]
        ]
        more = f"\n… and {len(groups) - _MAX_GROUPS:,} more.\n" if len(groups) > _MAX_GROUPS else ""
        table = _table(("Category", "Language", "Passed", "Failed"), rows)
        yield _folded("By category and language", f"{table}{more}")


def _failed(report: Report, budget: int) -> Iterator[str]:
    if not report.failed_count:
        return
    title = f"### Not passed ({report.failed_count:,})\n"
    yield title
    budget -= len(title) + 400
    failed = report.cases_that(passed=False)
    for number, case in enumerate(failed):
        text = _case(case)
        if len(text) > budget:
            more = report.failed_count - number
            names, listed = _names(chain([case], failed), max(budget, 0))
            rest = f" and {more - listed:,} more" if listed < more else ""
            yield f"{more:,} more, whose reasons stand in the reports of --json and --html: {names}{rest}\n"
            return
        budget -= len(text) + 1
        yield text


def _case(case: Case) -> str:
    shown = case.shown
    reasons = "\n".join([*map(str, case.failed_checks), *(f"harmful: {each}" for each in case.harm)])
    excerpt, note = cut(reasons, _MAX_CASE)
    text = code_block(f"{excerpt}\n… {note}" if note else excerpt) if excerpt else ""
    about = [escaped(truncate(shown.description, _MAX_NAME))] if shown.description else []
    if shown.file:
        about.append(code_span(relative_to(shown.file)))
    name = html.escape(printable(truncate(case.name, _MAX_NAME)))
    summary = (
        f"{SIGNS[case.verdict]} <code>{name}</code> {WORDS[case.verdict].lower()}{', harmful' if case.harm else ''}"
        f"{f', taken over from {html.escape(shown.taken_over)}' if shown.taken_over else ''}"
    )
    return _folded(summary, f"{' · '.join(about)}\n\n{text}\n" if about else f"{text}\n", is_html=True)


def _passed(report: Report) -> Iterator[str]:
    if passed := report.totals.passed:
        names, listed = _names(report.cases_that(passed=True), _FOR_PASSED)
        rest = f" and {passed - listed:,} more" if listed < passed else ""
        yield _folded(f"Passed ({passed:,})", f"{names}{rest}\n")


def _names(cases: Iterable[Case], budget: int) -> tuple[str, int]:
    """As many names as there is room for, and how many these are."""
    names: list[str] = []
    for case in cases:
        name = f"{code_span(case.name)}{' (taken over)' if case.shown.taken_over else ''}"
        budget -= len(name) + 2
        if budget < 0:
            break
        names.append(name)
    return ", ".join(names), len(names)


def _folded(summary: str, content: str, *, is_html: bool = False) -> str:
    return f"<details><summary>{summary if is_html else html.escape(summary)}</summary>\n\n{content}\n</details>\n"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"
