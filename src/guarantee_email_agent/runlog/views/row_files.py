"""A run as rows, one for each repetition: CSV for spreadsheets, JSON lines for programs."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Final

from guarantee_email_agent.runlog.records import Case
from guarantee_email_agent.runlog.views.report import Report, relative_to
from guarantee_email_agent.runlog.views.transcript import cut
from guarantee_email_agent.utils.text import visible

COLUMNS: Final = (
    "run_id",
    "name",
    "repetition",
    "repetitions",
    "category",
    "language",
    "verdict",
    "duration_ms",
    "tokens",
    "cost_usd",
    "failures",
    "description",
    "file",
    "planned",
    "interrupted",
    "taken_over",
    "score",
)
"""planned: how many cases a whole run has; interrupted: whether this one was stopped before its end; taken_over: the
earlier run that gave a result; score: of the judge, empty where it is not known."""
_MAX_CELL: Final = 32_000
"""A spreadsheet's cell holds 32,767 characters."""
_FORMULA: Final = re.compile(r"(^|[;\n])(?=[\s\"']*[=+\-@＝＋－＠])")
"""Where one may begin: spreadsheets pass over white space, and split at semicolons where these stand in no quotes."""


def as_csv(report: Report) -> Iterator[bytes]:
    """RFC 4180 in UTF-8, case by case, with a header.

    What a spreadsheet would take for a formula gets an apostrophe. Where a run was stopped before its first
    result, a row without a case says so.
    """
    writer = csv.writer(_Encoder(), lineterminator="\r\n")
    yield writer.writerow(COLUMNS)
    for case in report.cases:
        for number, run in enumerate(case.runs, 1):
            cost_usd, tokens = run.usage.cost_usd, run.usage.tokens()
            row = (
                report.run.id,
                case.name,
                number,
                len(case.runs),
                run.category,
                run.language,
                run.verdict,
                round(run.duration_ms, 3),
                None if tokens is None else sum(tokens.values()),
                None if cost_usd is None else round(cost_usd, 9),
                "\n".join(check.summary for check in run.failed_checks),
                run.description,
                relative_to(run.file),
                report.run.planned,
                str(report.interrupted).lower(),
                run.taken_over,
                run.score,
            )
            yield writer.writerow([_cell(value) if isinstance(value, str) else value for value in row])
    if report.interrupted and not report.totals.total:
        told = {"run_id": report.run.id, "planned": report.run.planned, "interrupted": "true"}
        yield writer.writerow([told.get(name) for name in COLUMNS])


def as_json_lines(report: Report) -> Iterator[bytes]:
    """One JSON object a line and repetition, in UTF-8, each with the run that it is of, and whether that is whole.

    Where a run was stopped before its first result, one line says this alone.
    """
    run = {"run_id": report.run.id, "planned": report.run.planned, "interrupted": report.interrupted}
    no_case: Iterable[Mapping[str, Any]] = [{}] if report.interrupted and not report.totals.total else []
    rows = (
        {"repetition": each.repetition, **report.json_case(Case((each,)))}
        for case in report.cases
        for each in case.runs
    )
    for row in chain(rows, no_case):
        line = json.dumps({**run, **row}, ensure_ascii=False, default=str)
        # Half of a surrogate pair cannot be UTF-8; its escape, \udc80, is just how JSON writes it.
        yield f"{line}\n".encode(errors="backslashreplace")


class _Encoder:
    """A file for `csv`, which hands back what writing a row has returned."""

    def write(self, text: str) -> bytes:
        return text.encode(errors="backslashreplace")


def _cell(text: str) -> str:
    shown, note = cut(visible(text), _MAX_CELL)
    shown = _FORMULA.sub(r"\1'", shown)
    return f"{shown}\n… {note}" if note else shown
