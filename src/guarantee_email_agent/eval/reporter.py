"""The suite's outcome for people: a line a scenario, why each failure failed, the pass rate, and what it shows."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from guarantee_email_agent.eval.case_result import as_case
from guarantee_email_agent.eval.failure_details import explain
from guarantee_email_agent.eval.models import EvalResult
from guarantee_email_agent.runlog.distinct_mails import MailCounter
from guarantee_email_agent.runlog.gate import GateDecision, GateOutcome, Totals, decide_gate
from guarantee_email_agent.runlog.records import Case
from guarantee_email_agent.runlog.shared_causes import SharedCauses
from guarantee_email_agent.runlog.statistics import Threshold
from guarantee_email_agent.runlog.suite_manifest import DEVELOPMENT, SuiteManifest
from guarantee_email_agent.runlog.suite_statistics import SuiteStatistics
from guarantee_email_agent.runlog.views.run_report import RunReporter
from guarantee_email_agent.runlog.views.word_diff import paint_changes
from guarantee_email_agent.utils.terminal import Terminal, TextStream, format_outcome, pluralize
from guarantee_email_agent.utils.text import printable

if TYPE_CHECKING:
    from guarantee_email_agent.eval.baseline import Baseline

logger = logging.getLogger(__name__)

SLOW_SCENARIO_MS: Final = 60_000
SLOW_SUITE_S: Final = 300
SMALL_SUITE: Final = 50


class EvalReporter(RunReporter):
    """Prints results all at once (`print_scenario_results`, `print_summary`), or as they come (`add`, `finish`)."""

    INTERRUPTED = "scenarios ran, the gate is not decided"

    def __init__(
        self,
        stream: TextStream | None = None,
        *,
        color: bool | None = None,
        ascii_only: bool | None = None,
        threshold: Threshold = 99.0,
        cost: Callable[[], str] | None = None,
        require_proof: bool = False,
        quiet: bool = False,
        lists_passed: bool = True,
        fail_fast: bool = False,
        deterministic: bool = False,
        baseline: Baseline | None = None,
        no_regressions: bool = False,
        mails: MailCounter | None = None,
        manifest: SuiteManifest = DEVELOPMENT,
        is_whole: bool = True,
    ) -> None:
        """stream: stdout if None. color, ascii_only: found out from the stream if None. threshold: percent.

        cost: what the run took of the API, as the last line says it. require_proof: as `decide_gate` has it.
        quiet: as `RunReporter` has it. lists_passed: a line for each that passed. fail_fast:
        whether the run ends at the first failure. deterministic: whether the same mail gets the same answer each time.
        baseline: what results are held against; no_regressions: whether the gate is passed only where none is worse.
        mails: counts those of the results; one of its own if None. manifest: of the suite; is_whole: whether all of it
        was asked for, without which nothing is proven.
        """
        terminal = Terminal(sys.stdout if stream is None else stream, color=color, ascii_only=ascii_only)
        super().__init__(terminal, threshold, quiet=quiet)
        self._lists_passed = lists_passed and not quiet
        self._fail_fast = fail_fast
        self._baseline = baseline
        self._no_regressions = no_regressions
        self._deterministic = deterministic
        self._statistics = SuiteStatistics(deterministic=deterministic)
        self._cost = cost
        self._needing_review = 0
        self._require_proof = require_proof
        self._mails = MailCounter() if mails is None else mails
        self._manifest, self._is_whole = manifest, is_whole
        self._causes = SharedCauses(summary=True)

    def calculate_pass_rate(self, results: Iterable[EvalResult]) -> float:
        """Percent of results that passed; 0.0 for none."""
        totals = _totals(results)
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
        self.totals, self._mails, self._causes = Totals(), MailCounter(), SharedCauses(summary=True)
        self._statistics, self._needing_review = SuiteStatistics(deterministic=self._deterministic), 0
        for case in cases:
            self._count(case)
            if not case.passed:
                self._causes.add(case)
        self._print_totals(duration_s)

    def add(self, case: Case) -> None:
        self._count(case)
        if self._baseline is not None:
            self._baseline.add(case)
        if not case.passed:
            self._list(case.verdict, describe_failure(case, self._causes, self._terminal))
        elif self._lists_passed:
            self._terminal.outcome(_describe(case))

    def _count(self, case: Case) -> None:
        self.totals.add(case.verdict)
        _warn_if_slow(case)
        self._needing_review += case.shown.needs_review
        self._mails.add(case)
        self._statistics.add(case)

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
        facts = (*self._statistics.must_facts(), *self._statistics.taken_over_facts())
        told = (f"{name}: {value}" for name, value in facts)
        for line in (*self._causes.lines(), *self._statistics.selectivity.lines(), *told):
            self._terminal.line(line)
        super()._print_totals(duration_s, planned)
        if count := self._needing_review:
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
        baseline = self._baseline if self._no_regressions else None
        mails = self._mails.count()
        return decide_gate(
            self.totals,
            self.threshold,
            require_proof=self._require_proof,
            fail_fast=self._fail_fast,
            planned=planned,
            must_failed=self._statistics.must_failed,
            regressions=() if baseline is None else baseline.regressions(),
            manifest=self._manifest,
            proven=self._manifest.lower_bound(mails.passed, mails.total) if self._is_whole else None,
        )

    def _print_incomplete(self, planned: int) -> None:
        if self._fail_fast and self.totals.passed < self.totals.total:
            self._print_gate(self._decide(planned))
        else:
            super()._print_incomplete(planned)

    def _print_conclusion(self) -> None:
        self._print_gate(self._decide())
        for line in self._statistics.repetition_lines(self.threshold):
            self._terminal.line(line)
        mails = self._mails.count()
        if mails.total != self.totals.total:
            self._terminal.line(f"Distinct mails: {mails.passed}/{mails.total} (a copy shows nothing new).")
        self._terminal.line(self._statistics.conclusion(self._manifest, mails if self._is_whole else None))

    def _print_gate(self, decision: GateDecision) -> None:
        if decision.passes:
            self._terminal.outcome(f"🎉 Eval passed! ({decision.why})")
        else:
            sign = "[FAIL]" if self._terminal.ascii else "⚠️ "
            self._terminal.line(self._terminal.red(f"{sign} Eval {decision.gate} ({decision.why})"))


def _totals(results: Iterable[EvalResult]) -> Totals:
    return Totals.of(result.outcome for result in results)


def describe_failure(case: Case, causes: SharedCauses, terminal: Terminal) -> str:
    """A failed case with its reply; where two others failed for the same causes, only what failed."""
    if causes.add(case):
        return _describe(case, in_short=True)
    details: list[str] = []
    with suppress(Exception):  # what a check crashed on cannot be explained
        details += [f"    {paint_changes(printable(line), terminal)}" for line in explain(case)]
    return "\n".join([_describe(case), *details])


def _describe(case: Case, *, in_short: bool = False) -> str:
    failures = [check.summary.partition("\n")[0] if in_short else str(check) for check in case.failed_checks]
    return format_outcome(case.name, case.shown.description, failures, case.harm, case.passed)


def _warn_if_slow(case: Case) -> None:
    slow_ms = case.shown.duration_ms
    if slow_ms > SLOW_SCENARIO_MS:
        logger.warning("Scenario %s took %.1fs, over %ds", case.name, slow_ms / 1000, SLOW_SCENARIO_MS // 1000)
