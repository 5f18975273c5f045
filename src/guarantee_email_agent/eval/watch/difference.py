"""What a save made different: the results of a suite before it and after it, for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from guarantee_email_agent.eval.case_result import as_case
from guarantee_email_agent.eval.models import EvalResult
from guarantee_email_agent.eval.reporter import describe_failure
from guarantee_email_agent.runlog.comparison import Changes, ReplyChange
from guarantee_email_agent.runlog.gate import Totals
from guarantee_email_agent.runlog.statistics import (
    Threshold,
    format_percentage,
    meets_threshold,
    threshold_text,
)
from guarantee_email_agent.runlog.suite_statistics import SharedCauses
from guarantee_email_agent.runlog.views.comparison_report import print_replies
from guarantee_email_agent.utils.terminal import Terminal, pluralize
from guarantee_email_agent.utils.text import printable

_MAX_DETAILS: Final = 20
_MAX_NAMES: Final = 50
_PLURALS: Final = {"changed reply": "changed replies"}


class Difference:
    """Of one save. What fails newly is printed at once, the rest with `print_rest`."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._causes = SharedCauses()
        self._counts: dict[str, int] = {}
        self._failing = 0
        self._detailed = 0
        self._named: dict[str, list[EvalResult]] = {}
        self._replies: list[ReplyChange] = []
        self._title = ""

    def add(self, before: EvalResult | None, after: EvalResult) -> None:
        """A scenario that ran; before: None for a new one."""
        if before is None:
            self._count("new")
            if after.passed:
                self._named.setdefault("New, and passing", []).append(after)
            else:
                self._print_failure("New, and failing", after)
            return
        if not after.passed and before.passed:
            self._count("newly failing")
            self._print_failure("Newly failing", after)
        elif after.passed and not before.passed:
            self._count("newly passing")
            self._named.setdefault("Newly passing", []).append(after)
        elif list(before.failures) != list(after.failures):
            self._count("failing otherwise")
            self._print_failure("Still failing, for another reason", after)
        old, new = _reply(before), _reply(after)
        if old != new and not before.invalid and not after.invalid:
            self._count("changed reply")
            self._replies.append(ReplyChange(after.name, old, new))

    def add_removed(self, results: Iterable[EvalResult]) -> None:
        """Scenarios whose files are gone."""
        for result in results:
            self._count("removed")
            self._named.setdefault("Removed", []).append(result)

    def print_rest(self) -> bool:
        """What was not printed yet; whether there was anything."""
        for title, results in self._named.items():
            paint = self._terminal.green if title.endswith("passing") else str
            self._terminal.line(paint(f"{title}: {len(results)}"))
            for result in results[:_MAX_NAMES]:
                description = " ".join(result.test_case.description.split())
                self._terminal.line(f"    {printable(result.name)}: {printable(description)}")
            if len(results) > _MAX_NAMES:
                self._terminal.line(f"    … and {len(results) - _MAX_NAMES} more")
        print_replies(Changes(tuple(self._replies)), self._terminal)
        if self._detailed > _MAX_DETAILS:
            self._terminal.line(f"… and {self._detailed - _MAX_DETAILS} more that fail")
        self._title = ""
        had_any = bool(self._named or self._replies or self._detailed > _MAX_DETAILS)
        self._named, self._replies, self._detailed = {}, [], min(self._detailed, _MAX_DETAILS)
        self._terminal.flush()
        return had_any

    def print_total(self, results: Sequence[EvalResult], threshold: Threshold, ran: int, duration_s: float) -> None:
        """One line: what is different, and how the whole suite stands. ran: of it, just now. threshold: percent."""
        for line in self._causes.lines():
            self._terminal.line(line)
        totals = Totals.of(result.outcome for result in results)
        enough = meets_threshold(totals.passed, totals.total, threshold)
        counts = (f"{count} {what if count == 1 else _PLURALS.get(what, what)}" for what, count in self._counts.items())
        changes = ", ".join(counts) or "No difference"
        rate = f"{totals.passed}/{totals.total} ({format_percentage(totals.passed, totals.total, threshold)})"
        gate = "" if enough else f", below the threshold of {threshold_text(threshold)}%"
        again = f"{pluralize(ran, 'scenario')} ran in {duration_s:.2f}s"
        self._terminal.outcome(
            f"{'✓' if enough and not self._failing else '✗'} {changes}. Pass rate: {rate}{gate}; {again}"
        )
        self._terminal.flush()

    def _count(self, what: str) -> None:
        self._counts[what] = self._counts.get(what, 0) + 1

    def _print_failure(self, title: str, result: EvalResult) -> None:
        self._failing += 1
        self._detailed += 1
        if self._detailed > _MAX_DETAILS:
            self._causes.add(as_case(result))
            return
        if title != self._title:
            self._terminal.line(self._terminal.red(f"{title}:"))
            self._title = title
        self._terminal.outcome(describe_failure(as_case(result), self._causes, self._terminal))
        self._terminal.flush()


def _reply(result: EvalResult) -> str | None:
    body = result.actual_output.get("response_body")
    return body if isinstance(body, str) else None
