import io
import signal
from collections.abc import Callable, Generator
from contextlib import suppress
from pathlib import Path

import pytest
import sample_reports
from screen import Screen

from guarantee_email_agent.runlog.records import Case, Outcome
from guarantee_email_agent.runlog.views.run_report import RunOptions, RunReporter, RunStoppedError, run_and_report
from guarantee_email_agent.utils.errors import ConfigurationError, WorkersLostError
from guarantee_email_agent.utils.terminal import Progress, Terminal


class Reporter(RunReporter):
    INTERRUPTED = "came"
    COUNTS_ERRORS = True

    def add(self, case: Case) -> None:
        self.totals.add(case.verdict)
        if case.passed:
            self._terminal.outcome("✓ passed")
        else:
            self._list(case.verdict, f"✗ {case.verdict}")

    def _print_conclusion(self) -> None:
        self._terminal.line(f"That makes {self.totals.total}")


class Recorder:
    """Notes what it gets."""

    def __init__(self) -> None:
        self.events: list[object] = []

    def add(self, case: Case) -> None:
        self.events.append(case.verdict)

    def finish(self, outcome: Outcome, exit_code: int, duration_s: float) -> None:
        assert duration_s >= 0
        self.events.append((outcome, exit_code))

    def write_reports(self, options: RunOptions, ran: int) -> None:
        assert options.wants_reports
        assert ran >= 0
        self.events.append("reports")


class Run:
    """Some outcomes through the loop, the last of which may be an exception."""

    def __init__(self) -> None:
        self.recorder = Recorder()
        self.closed = False
        self.out = io.StringIO()

    def cases(self, *outcomes: Outcome | BaseException) -> Generator[Case, None, None]:
        try:
            for outcome in outcomes:
                if isinstance(outcome, BaseException):
                    raise outcome
                yield sample_reports.case(verdict=outcome)
        finally:
            self.closed = True

    def __call__(
        self, *outcomes: Outcome | BaseException, threshold: float = 100, progress: Progress | None = None
    ) -> int:
        reporter = Reporter(Terminal(self.out), threshold)
        options = RunOptions(directory=Path(), csv_file=Path("r.csv"))
        cases, recorder = self.cases(*outcomes), self.recorder
        progress = progress or Progress(io.StringIO(), len(outcomes), "run")
        return run_and_report("Go", cases, len(outcomes), reporter, options, progress=progress, recorder=recorder)

    @property
    def lines(self) -> list[str]:
        return [line for line in self.out.getvalue().splitlines() if not line.startswith("Duration: ")]


@pytest.fixture
def run() -> Run:
    return Run()


def test_passed_first_then_failed_then_errors_then_the_summary(run: Run) -> None:
    assert run("error", "failed", "invalid", "passed") == 4
    assert run.lines == [
        "Go",
        "✓ passed",
        "✗ failed",
        "✗ invalid",
        "✗ error",
        "Pass rate: 1/4 (25.0%)",
        "✓ Passed: 1",
        "✗ Failed: 2",
        "  of which invalid files: 1",
        "✗ Errors: 1",
        "That makes 4",
    ]


def test_of_many_that_did_not_pass_the_first_are_shown_and_all_are_counted(run: Run) -> None:
    assert run(*["failed"] * 990, *["error"] * 20, "passed") == 4
    assert run.lines[-7:] == [
        "✗ error",
        "… and 10 more that did not pass: a report has them all (--jsonl FILE)",
        "Pass rate: 1/1011 (0.1%)",
        "✓ Passed: 1",
        "✗ Failed: 990",
        "✗ Errors: 20",
        "That makes 1011",
    ]
    assert sum(line.startswith("✗ ") for line in run.lines) == 1_002


def test_ctrl_c_ends_in_a_summary_and_a_report_of_what_came(run: Run) -> None:
    assert run("passed", "failed", KeyboardInterrupt()) == 130
    assert run.lines[-1] == "Interrupted: 2 of 3 came"
    assert "✗ failed" in run.lines
    assert run.closed


@pytest.mark.parametrize(
    ("outcomes", "ended"),
    [
        (["passed", "passed"], [("passed", 0), "reports"]),
        (["passed", "failed"], [("failed", 4), "reports"]),
        (["passed", KeyboardInterrupt()], [("interrupted", 130), "reports"]),
        (["passed", RunStoppedError("it would cost too much")], [("interrupted", 4), "reports"]),
        (["passed", ConfigurationError("no room", "x_y")], [("crashed", 2)]),
        (["passed", ZeroDivisionError()], [("crashed", 1)]),
    ],
)
def test_a_recorder_gets_each_case_as_it_comes_and_how_the_run_ended_before_reports_are_made_of_it(
    run: Run, outcomes: list[Outcome | BaseException], ended: list[object]
) -> None:
    with suppress(ConfigurationError, ZeroDivisionError):
        run(*outcomes)
    results = [outcome for outcome in outcomes if isinstance(outcome, str)]
    assert run.recorder.events == [*results, *ended]


def _raise_keyboard_interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _send_sigterm(*_: object) -> None:
    signal.raise_signal(signal.SIGTERM)


@pytest.mark.parametrize("interrupt", [_raise_keyboard_interrupt, _send_sigterm])
def test_an_end_between_two_results_closes_what_gives_them(
    run: Run, monkeypatch: pytest.MonkeyPatch, interrupt: Callable[..., None]
) -> None:
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(Reporter, "add", interrupt)
    assert run("passed", "failed") == 130
    assert run.closed
    assert signal.getsignal(signal.SIGTERM) == before


@pytest.mark.parametrize("stop", [RunStoppedError("it would cost too much"), WorkersLostError("it is gone", "x_y")])
def test_results_that_stop_for_a_reason_leave_the_gate_undecided(run: Run, stop: Exception) -> None:
    assert run("passed", stop, "passed") == 4
    assert run.lines[-1] == f"Stopped: 1 of 3 came: {stop}"


def test_progress_makes_room_for_every_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    run.out = screen = Screen()
    run("failed", "passed", progress=Progress(screen, 2, "judged"))
    assert screen.getvalue().startswith("Go\n\r\x1b[K1/2 judged, 1 failed\r\x1b[K✓ passed\n")
