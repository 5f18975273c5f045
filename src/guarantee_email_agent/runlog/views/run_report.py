"""The loop of `eval`, `grade` and `solve`: print each result as it comes, sum up, write the report files, gate."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Generator
from contextlib import closing
from typing import TYPE_CHECKING, ClassVar, Final

from guarantee_email_agent.runlog.records import Case, Outcome, Verdict
from guarantee_email_agent.runlog.statistics import format_percentage, meets_threshold
from guarantee_email_agent.runlog.suite_statistics import GateOutcome, Totals
from guarantee_email_agent.runlog.views.report import RunOptions
from guarantee_email_agent.utils.errors import (
    EXIT_EVALUATION,
    EXIT_FAILURE,
    EXIT_INTERRUPTED,
    EXIT_SUCCESS,
    AgentError,
    WorkersLostError,
)
from guarantee_email_agent.utils.process import signals_as_ctrl_c
from guarantee_email_agent.utils.terminal import Progress, Terminal

if TYPE_CHECKING:
    from guarantee_email_agent.runlog.views.run_recorder import RunRecorder

MAX_SHOWN: Final = 1_000
"""Results that did not pass and are printed; nobody reads further ones in a terminal."""


class RunStoppedError(Exception):
    """Raised by results that end before all of them are there, but for no fault: `str` says why, for people."""


class RunReporter(ABC):
    """Prints cases for people: passed ones as they come, then failed ones, errors, and the summary.

    Of what did not pass only the text is kept, and of many only the first, so that memory does not grow with the run.
    """

    INTERRUPTED: ClassVar[str]
    """What the summary says after `Interrupted: 3 of 5`."""
    COUNTS_ERRORS: ClassVar[bool] = False

    def __init__(
        self, terminal: Terminal, threshold: float, *, measures_agent: bool = True, quiet: bool = False
    ) -> None:
        """threshold: percent. measures_agent: whether the results say how good an agent is, so that a rate is due.

        quiet: say nothing of what passed but its count.
        """
        self.threshold = threshold
        self.totals = Totals()
        self.stop_reason: str | None = None
        """Why the run was ended before all results were there, where it was not interrupted."""
        self._terminal = terminal
        self._measures_agent = measures_agent
        self._quiet = quiet
        self._failed: list[str] = []
        self._errors: list[str] = []
        self._not_shown = 0

    @abstractmethod
    def add(self, case: Case) -> None:
        """Counts one case, and prints it if it passed."""

    def _list(self, verdict: Verdict, text: str) -> None:
        """What did not pass, to be printed at the end."""
        if len(self._failed) + len(self._errors) < MAX_SHOWN:
            (self._errors if verdict == "error" else self._failed).append(text)
        else:
            self._not_shown += 1

    def gate(self) -> GateOutcome:
        """What the run comes to by what came until now; only `passed` is exit code 0."""
        return "passed" if meets_threshold(self.totals.passed, self.totals.total, self.threshold) else "failed"

    def print_title(self, text: str) -> None:
        if not self._quiet:
            self._terminal.line(text)

    def finish(self, duration_s: float, planned: int | None = None) -> None:
        """Prints all that did not pass, and the summary. planned: how many results a whole run has."""
        for text in (*self._failed, *self._errors):
            self._terminal.outcome(text)
        if self._not_shown:
            self._terminal.line(f"… and {self._not_shown} more that did not pass: a report has them all (--jsonl FILE)")
        self._print_totals(duration_s, planned)
        self._terminal.flush()

    def _print_totals(self, duration_s: float, planned: int | None = None) -> None:
        terminal, totals = self._terminal, self.totals
        if self._measures_agent:
            rate = format_percentage(totals.passed, totals.total, self.threshold)
            terminal.line(f"Pass rate: {totals.passed}/{totals.total} ({rate})")
        terminal.outcome(f"✓ Passed: {totals.passed}")
        terminal.outcome(f"✗ Failed: {totals.failed}", paint=totals.failed > 0)
        if totals.invalid:
            terminal.line(f"  of which invalid files: {totals.invalid}")
        if self.COUNTS_ERRORS:
            terminal.outcome(f"✗ Errors: {totals.error}", paint=totals.error > 0)
        terminal.line(f"Duration: {duration_s:.1f}s")
        if planned is not None and totals.total < planned:
            self._print_incomplete(planned)
        else:
            self._print_conclusion()

    def _print_incomplete(self, planned: int) -> None:
        """Says that results are missing. planned: how many a whole run has."""
        word, why = ("Interrupted", "") if self.stop_reason is None else ("Stopped", f": {self.stop_reason}")
        self._terminal.line(f"{word}: {self.totals.total} of {planned} {self.INTERRUPTED}{why}")

    @abstractmethod
    def _print_conclusion(self) -> None:
        """Prints what a run that was not interrupted proves."""


def run_and_report(
    title: str,
    cases: Generator[Case, None, None],
    planned: int,
    reporter: RunReporter,
    options: RunOptions,
    *,
    progress: Progress,
    recorder: RunRecorder | None,
    began: float | None = None,
) -> int:
    """Print, keep and count each case as it comes, then the summary and the reports; the exit code.

    0 if the reporter's gate is passed, else 4, also where the cases end in RunStoppedError or WorkersLostError; 130
    after Ctrl-C or SIGTERM. All end in a summary and reports of what came until then. planned: how many cases there
    will be. options: which reports of what the recorder has kept are wanted. recorder: None where nobody reads the run.
    began: `time.perf_counter()` at the start of the run; now if None. Raises what `RunRecorder.write_reports` raises.
    """
    began = time.perf_counter() if began is None else began
    interrupted = False
    try:
        reporter.print_title(title)
        with signals_as_ctrl_c(), closing(cases):
            for case in cases:
                if recorder is not None:
                    recorder.add(case)
                progress.clear()
                reporter.add(case)
                progress.show(reporter.totals.total, reporter.totals.total - reporter.totals.passed)
    except KeyboardInterrupt:
        interrupted = True
    except (RunStoppedError, WorkersLostError) as stop:
        interrupted, reporter.stop_reason = True, str(stop)
    except BaseException as error:
        if recorder is not None:
            code = error.exit_code if isinstance(error, AgentError) else EXIT_FAILURE
            recorder.finish("crashed", code, time.perf_counter() - began)
        raise
    duration_s = time.perf_counter() - began
    progress.clear()
    reporter.finish(duration_s, planned)
    outcome: Outcome = "interrupted" if interrupted else reporter.gate()
    code = {"interrupted": EXIT_INTERRUPTED, "passed": EXIT_SUCCESS}.get(outcome, EXIT_EVALUATION)
    if reporter.stop_reason is not None:
        code = EXIT_EVALUATION  # nobody interrupted it; but the gate is not decided
    if recorder is not None:
        recorder.finish(outcome, code, duration_s)
        if options.wants_reports:
            with signals_as_ctrl_c():  # so that no half of a report is left, which may take minutes to write
                recorder.write_reports(options, reporter.totals.total)
    return code
