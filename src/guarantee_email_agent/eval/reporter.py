"""The suite's outcome for people: a line a scenario, why each failure failed, the pass rate, and what it shows."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from guarantee_email_agent.eval.case_result import as_case
from guarantee_email_agent.eval.checks import find_phrase
from guarantee_email_agent.eval.execution import EvalOptions
from guarantee_email_agent.eval.models import EvalResult
from guarantee_email_agent.runlog.records import Case
from guarantee_email_agent.runlog.suite_statistics import (
    GateDecision,
    GateOutcome,
    SharedCauses,
    SuiteStatistics,
    Totals,
)
from guarantee_email_agent.runlog.views.run_report import RunReporter
from guarantee_email_agent.utils.terminal import Terminal, TextStream, format_outcome, pluralize
from guarantee_email_agent.utils.text import printable

if TYPE_CHECKING:
    from guarantee_email_agent.eval.baseline import Baseline

logger = logging.getLogger(__name__)

SLOW_SCENARIO_MS: Final = 60_000
SLOW_SUITE_S: Final = 300
SMALL_SUITE: Final = 50
_MAX_REPLY_CHARS: Final = 4_000


class EvalReporter(RunReporter):
    """Prints results all at once (`print_scenario_results`, `print_summary`), or as they come (`add`, `finish`)."""

    INTERRUPTED = "scenarios ran, the gate is not decided"

    def __init__(
        self,
        stream: TextStream | None = None,
        *,
        color: bool | None = None,
        ascii_only: bool | None = None,
        options: EvalOptions | None = None,
        statistics: SuiteStatistics | None = None,
        lists_passed: bool = True,
        cost: Callable[[], str] | None = None,
        baseline: Baseline | None = None,
        lists_failed: bool = True,
    ) -> None:
        """stream: stdout if None. color, ascii_only: found out from the stream if None.

        options: of the run, which say what the gate asks for, and how much of what passed is told. statistics: in which
        the results are counted; new ones of a suite that proves nothing, if None. lists_passed, lists_failed: lines for
        each that did. cost: what the run took of the API, as the last line says it. baseline: what results are held
        against.
        """
        self._options = EvalOptions(directory=Path(), threshold=99.0) if options is None else options
        terminal = Terminal(sys.stdout if stream is None else stream, color=color, ascii_only=ascii_only)
        super().__init__(terminal, self._options.threshold, quiet=self._options.quiet)
        self._lists_passed, self._lists_failed = lists_passed and not self._quiet, lists_failed
        self._cost, self._baseline = cost, baseline
        self._count_in(SuiteStatistics(deterministic=False) if statistics is None else statistics)

    def _count_in(self, statistics: SuiteStatistics) -> None:
        self._statistics, self.totals = statistics, statistics.totals
        self._causes = SharedCauses(summary=True)

    def calculate_pass_rate(self, results: Iterable[EvalResult]) -> float:
        """Percent of results that passed; 0.0 for none."""
        totals = Totals.of(result.outcome for result in results)
        return 100 * totals.passed / totals.total if totals.total else 0.0

    def print_scenario_results(self, results: Iterable[EvalResult]) -> None:
        """A line for each result: passed ones first, then failed ones with their failures."""
        results = list(results)
        for result in results:
            if result.passed:
                self._terminal.outcome(result.format_for_display())
        self.print_failure_details(results)

    def print_failure_details(self, results: EvalResult | Iterable[EvalResult]) -> None:
        """The failed results alone, or the one, each with every miss: what was expected and what came."""
        causes = SharedCauses()
        for result in (results,) if isinstance(results, EvalResult) else results:
            if not result.passed:
                self._terminal.outcome(describe_failure(as_case(result), causes, self._terminal))

    def print_summary(self, results: Iterable[EvalResult], duration_s: float | None = None) -> None:
        """Pass rate, counts, duration, the gate, and what the suite shows.

        duration_s: wall time in seconds; what the scenarios took one after the other, if None.
        """
        cases = [as_case(result) for result in results]
        if duration_s is None:
            duration_s = sum(case.shown.duration_ms for case in cases) / 1000
        self._count_in(self._statistics.emptied())
        for case in cases:
            self._count(case)
            if not case.passed:
                self._causes.add(case)
        self._print_totals(duration_s)

    def add(self, case: Case) -> None:
        self._count(case)
        if self._baseline is not None:
            self._baseline.add(case)
        if not case.passed and self._lists_failed:
            self._list(case.verdict, describe_failure(case, self._causes, self._terminal))
        elif case.passed and self._lists_passed:
            self._terminal.outcome(_describe(case))

    def _count(self, case: Case) -> None:
        self._statistics.add(case)
        if (slow_ms := case.shown.duration_ms) > SLOW_SCENARIO_MS:
            logger.warning("Scenario %s took %.1fs, over %ds", case.name, slow_ms / 1000, SLOW_SCENARIO_MS // 1000)

    def finish(self, duration_s: float, planned: int | None = None) -> None:
        super().finish(duration_s, planned)
        if self._cost is not None:
            self._terminal.line(self._cost())
            self._terminal.flush()
        logger.info("Eval suite completed in %.1fs", duration_s)

    def _print_totals(self, duration_s: float, planned: int | None = None) -> None:
        total = self.totals.total
        if total <= SMALL_SUITE and duration_s > SLOW_SUITE_S:
            logger.warning("The suite of %d scenarios took %.1fs, over %ds", total, duration_s, SLOW_SUITE_S)
        if total > SMALL_SUITE and not self._quiet:
            for line in self._statistics.group_lines(self.threshold):
                self._terminal.line(line)
        statistics = self._statistics
        facts = (*statistics.must_facts(), *statistics.taken_over_facts(), *statistics.rubric.facts())
        told = (f"{name}: {value}" for name, value in facts)
        for line in (*self._causes.lines(), *self._statistics.selectivity.lines(), *told):
            self._terminal.line(line)
        super()._print_totals(duration_s, planned)
        if count := self._statistics.needing_review:
            verb = "needs" if count == 1 else "need"
            self._terminal.line(
                f"{pluralize(count, 'scenario')} {verb} review: look at what is expected, then remove 'review: true'."
            )

    def caution_curve(self) -> Iterator[str]:
        """As `Selectivity.curve_lines` has it."""
        return self._statistics.selectivity.curve_lines()

    def gate(self) -> GateOutcome:
        return self._decide().gate

    def _decide(self, planned: int | None = None) -> GateDecision:
        options, baseline = self._options, self._baseline
        return self._statistics.decide_gate(
            self.threshold,
            require_proof=options.require_proof,
            fail_fast=options.fail_fast,
            planned=planned,
            regressions=baseline.regressions() if baseline is not None and options.no_regressions else (),
        )

    def _print_incomplete(self, planned: int) -> None:
        if self._options.fail_fast and self.totals.passed < self.totals.total:
            self._print_gate(self._decide(planned))
        else:
            super()._print_incomplete(planned)

    def _print_conclusion(self) -> None:
        self._print_gate(self._decide())
        for line in self._statistics.repetition_lines(self.threshold):
            self._terminal.line(line)
        mails = self._statistics.mails.count()
        if mails.total != self.totals.total:
            self._terminal.line(f"Distinct mails: {mails.passed}/{mails.total} (a copy shows nothing new).")
        self._terminal.line(self._statistics.conclusion())

    def _print_gate(self, decision: GateDecision) -> None:
        if decision.passes:
            self._terminal.outcome(f"🎉 Eval passed! ({decision.why})")
        else:
            sign = "[FAIL]" if self._terminal.ascii else "⚠️ "
            self._terminal.line(self._terminal.red(f"{sign} Eval {decision.gate} ({decision.why})"))


def describe_failure(case: Case, causes: SharedCauses, terminal: Terminal) -> str:
    """A failed case with its reply; where two others failed for the same causes, only what failed."""
    if causes.add(case):
        return _describe(case, in_short=True)
    from guarantee_email_agent.runlog.views.word_diff import paint_changes  # start-up: only for a failure

    details: list[str] = []
    with suppress(Exception):  # what a check crashed on cannot be explained
        details += [f"    {paint_changes(printable(line), terminal)}" for line in explain(case)]
    return "\n".join([_describe(case), *details])


def _describe(case: Case, *, in_short: bool = False) -> str:
    failures = [check.summary.partition("\n")[0] if in_short else str(check) for check in case.failed_checks]
    return format_outcome(case.name, case.shown.description, failures, case.harm, case.passed)


def explain(case: Case) -> Iterator[str]:
    """Lines below a failed scenario's misses; none where its reply is not what failed."""
    shown = case.shown
    reply = (shown.response or {}).get("response_body")
    if not isinstance(reply, str) or not any(each.name.startswith("response_body_") for each in shown.failed_checks):
        return
    yield from map(str, shown.nearest)
    yield "reply:"
    forbidden = [
        each.phrase for each in shown.failed_checks if each.phrase and each.name.endswith("response_body_excludes")
    ]
    marked = _mark(reply[:_MAX_REPLY_CHARS].strip(), forbidden)
    yield from (f"  {line.rstrip()}" for line in marked.split("\n") if line.strip())
    if len(reply) > _MAX_REPLY_CHARS:
        yield f"  … and {len(reply) - _MAX_REPLY_CHARS} more characters"


def _mark(reply: str, phrases: Sequence[str]) -> str:
    """The reply with every phrase that must not be there between `>>` and `<<`."""
    spans = sorted(span for phrase in phrases if (span := find_phrase(phrase, reply)) is not None)
    marked, end = "", 0
    for first, last in spans:
        if first >= end:
            marked += f"{reply[end:first]}>>{reply[first:last]}<<"
            end = last
    return marked + reply[end:]
