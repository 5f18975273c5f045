"""The suite's outcome for people: a line a scenario, why each failure failed, the pass rate, and what it proves."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Sequence
from typing import Final

from guarantee_email_agent.eval.models import EvalResult
from guarantee_email_agent.eval.totals import Totals
from guarantee_email_agent.reporting.statistics import (
    Threshold,
    clean_runs_needed,
    format_percentage,
    lower_bound_95,
    meets_threshold,
    rounded_bound,
    threshold_text,
)
from guarantee_email_agent.reporting.terminal import Terminal, TextStream

logger = logging.getLogger(__name__)

SLOW_SCENARIO_MS: Final = 60_000
SLOW_SUITE_S: Final = 300
_SMALL_SUITE: Final = 50


class EvalReporter:
    """Prints results, either all at once (`print_scenario_results`, `print_summary`) or as they come.

    As they come: `print_header`, then `print_result` for each, then `finish`. Passed scenarios are printed at once,
    and of failed ones only the text is kept, so that memory does not grow with the suite.
    """

    def __init__(
        self,
        stream: TextStream | None = None,
        *,
        color: bool | None = None,
        ascii_only: bool | None = None,
        threshold: Threshold = 99.0,
    ) -> None:
        """stream: stdout if None. color, ascii_only: found out from the stream if None. threshold: percent."""
        self._terminal = Terminal(sys.stdout if stream is None else stream, color=color, ascii_only=ascii_only)
        self._threshold = threshold
        self._totals = Totals()
        self._kept_failures: list[str] = []

    def calculate_pass_rate(self, results: Iterable[EvalResult]) -> float:
        """Percent of results that passed; 0.0 for none."""
        totals = Totals.of(results)
        return 100 * totals.passed / totals.total if totals.total else 0.0

    def print_header(self, total: int) -> None:
        self._terminal.line(f"Running evaluation suite... ({total} scenario{'' if total == 1 else 's'})")

    def print_scenario_results(self, results: Sequence[EvalResult]) -> None:
        """A line for each result: passed ones first, then failed ones with their failures."""
        for result in results:
            if result.passed:
                self._terminal.outcome(result.format_for_display())
        self.print_failure_details(results)

    def print_failure_details(self, results: Iterable[EvalResult]) -> None:
        """The failed results alone, each with every miss: what was expected and what came."""
        for result in results:
            if not result.passed:
                self._terminal.outcome(result.format_for_display())

    def print_summary(self, results: Sequence[EvalResult], duration_s: float) -> None:
        """Pass rate, counts, duration, the gate, and what the suite proves. duration_s: wall time in seconds."""
        for result in results:
            _warn_if_slow(result)
        self._print_totals(Totals.of(results), duration_s)

    def print_result(self, result: EvalResult) -> None:
        """One result as it comes; a failed one is printed by `finish`."""
        self._totals.add(result)
        _warn_if_slow(result)
        if result.passed:
            self._terminal.outcome(result.format_for_display())
        else:
            self._kept_failures.append(result.format_for_display())

    def finish(self, duration_s: float, planned: int | None = None) -> None:
        """The failures and the summary of all that `print_result` was given.

        planned: how many scenarios there are; where fewer came, the run was interrupted and nothing is gated.
        """
        for text in self._kept_failures:
            self._terminal.outcome(text)
        self._kept_failures.clear()
        self._print_totals(self._totals, duration_s, planned)

    def _print_totals(self, totals: Totals, duration_s: float, planned: int | None = None) -> None:
        rate = format_percentage(totals.passed, totals.total, self._threshold)
        self._terminal.line(f"Pass rate: {totals.passed}/{totals.total} ({rate})")
        self._terminal.outcome(f"✓ Passed: {totals.passed}")
        self._terminal.outcome(f"✗ Failed: {totals.failed}", paint=totals.failed > 0)
        if totals.invalid:
            self._terminal.line(f"  of which invalid files: {totals.invalid}")
        self._terminal.line(f"Duration: {duration_s:.1f}s")
        if totals.total <= _SMALL_SUITE and duration_s > SLOW_SUITE_S:
            logger.warning("The suite of %d scenarios took %.1fs, over %ds", totals.total, duration_s, SLOW_SUITE_S)
        if planned is not None and totals.total < planned:
            self._terminal.line(f"Interrupted: {totals.total} of {planned} scenarios ran, the gate is not decided")
            return
        wanted = threshold_text(self._threshold)
        if meets_threshold(totals.passed, totals.total, self._threshold):
            self._terminal.outcome(f"🎉 Eval passed! (≥{wanted}% threshold)")
        else:
            sign = "[FAIL]" if self._terminal.ascii else "⚠️ "
            self._terminal.line(self._terminal.red(f"{sign} Eval failed (<{wanted}% threshold)"))
        for sentence in what_it_proves(totals.passed, totals.total, self._threshold):
            self._terminal.line(sentence)


def what_it_proves(passed: int, total: int, threshold: Threshold) -> list[str]:
    """One or two sentences: the lower bound of the pass rate, and what a proof of the threshold still takes."""
    wanted, failed = f"{threshold_text(threshold)}%", total - passed
    needed = clean_runs_needed(failed, threshold)
    if total:
        bound = rounded_bound(lower_bound_95(passed, total), threshold)
        sentences = [f"Proven with 95% confidence: on mail like this suite's, the agent passes at least {bound}%."]
    else:
        sentences = ["No scenario ran, so nothing is proven."]
    if needed is None:
        sentences.append(f"No number of scenarios can prove {wanted}.")
    elif needed > total:
        more = needed - total
        condition = f"without a {'new ' if failed else ''}failure"
        whole = f" ({needed} with {failed} failure{'' if failed == 1 else 's'})" if failed else f" ({needed} in all)"
        sentences.append(
            f"A proof of {wanted} takes {more} more scenario{'' if more == 1 else 's'} {condition}{whole}."
        )
    return sentences


def _warn_if_slow(result: EvalResult) -> None:
    if result.processing_time_ms > SLOW_SCENARIO_MS:
        seconds = result.processing_time_ms / 1000
        logger.warning(
            "Scenario %s took %.1fs, over %ds", result.test_case.scenario_id, seconds, SLOW_SCENARIO_MS // 1000
        )
