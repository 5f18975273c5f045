from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, TextIO

import pytest

from guarantee_email_agent.eval.models import EvalResult
from guarantee_email_agent.eval.reporter import EvalReporter

MISS = (
    "response_body_contains: missing phrase 'serial number'\n"
    "  expected: 'serial number'\n"
    "  actual:   'Thank you for your message. …'"
)
Outcome = Callable[..., EvalResult]


def encoded(encoding: str) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="strict", newline="")


def written(stream: io.TextIOWrapper) -> str:
    stream.flush()
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode(stream.encoding)


@pytest.fixture
def suite(outcome: Outcome) -> list[EvalResult]:
    """35 scenarios; the second one fails."""
    failed = outcome(MISS, scenario_id="missing_info_003", description="Missing serial")
    passed = [outcome(scenario_id=f"valid_warranty_{number:03}", description="Works") for number in range(1, 35)]
    return [passed[0], failed, *passed[1:]]


def print_all(results: list[EvalResult], stream: TextIO, duration_s: float = 0) -> None:
    reporter = EvalReporter(stream)
    reporter.print_scenario_results(results)
    reporter.print_summary(results, duration_s)


def summary(results: list[EvalResult], duration_s: float = 0, **options: Any) -> str:
    stream = io.StringIO()
    EvalReporter(stream, **options).print_summary(results, duration_s)
    return stream.getvalue()


PASSED_LINES = "".join(f"✓ valid_warranty_{number:03}: Works\n" for number in range(1, 35))
FAILED_LINES = """\
✗ missing_info_003: Missing serial - FAILED
    response_body_contains: missing phrase 'serial number'
      expected: 'serial number'
      actual:   'Thank you for your message. …'
"""
SUMMARY = """\
Pass rate: 34/35 (97.1%)
✓ Passed: 34
✗ Failed: 1
Duration: 0.4s
⚠️  Eval failed (<99% threshold)
34 of 35 scenarios pass. If the agent was built on this suite, it says nothing of new cases.
"""
WHOLE = PASSED_LINES + FAILED_LINES + SUMMARY


class TestOutput:
    def test_all_at_once(self, suite: list[EvalResult]) -> None:
        stream = io.StringIO()
        print_all(suite, stream, 0.42)
        assert stream.getvalue() == WHOLE

    def test_failure_details_of_one_result(self, suite: list[EvalResult]) -> None:
        stream = io.StringIO()
        for result in suite[:2]:
            EvalReporter(stream).print_failure_details(result)
        assert stream.getvalue().startswith("✗ missing_info_003: Missing serial - FAILED\n    response_body_contains")

    def test_results_may_come_one_by_one_and_their_own_time_is_the_duration(self, suite: list[EvalResult]) -> None:
        stream = io.StringIO()
        reporter = EvalReporter(stream)
        reporter.print_scenario_results(iter(suite))
        reporter.print_summary(iter(suite))
        assert "✗ missing_info_003" in stream.getvalue()
        assert "Pass rate: 34/35 (97.1%)\n✓ Passed: 34\n✗ Failed: 1\nDuration: 0.1s\n" in stream.getvalue()

    def test_no_scenario_is_a_failed_gate(self) -> None:
        assert summary([]) == (
            "Pass rate: 0/0 (0.0%)\n"
            "✓ Passed: 0\n"
            "✗ Failed: 0\n"
            "Duration: 0.0s\n"
            "⚠️  Eval failed (<99% threshold)\n"
            "No scenario ran.\n"
        )

    def test_invalid_files_are_failures_and_counted_apart(self, outcome: Outcome, invalid: EvalResult) -> None:
        stream = io.StringIO()
        print_all([outcome(), invalid, outcome(MISS)], stream)
        text = stream.getvalue()
        assert (
            "✗ a_1: invalid scenario file - FAILED\n    Invalid eval file: a_1.yaml - Missing field: created\n"
        ) in text
        assert "✗ Failed: 2\n  of which invalid files: 1\nDuration" in text

    def test_without_a_stream_it_is_stdout(self, outcome: Outcome, capsys: pytest.CaptureFixture[str]) -> None:
        EvalReporter().print_scenario_results([outcome()])
        assert capsys.readouterr().out == "✓ valid_warranty_001: Customer asks\n"


class TestPassRate:
    @pytest.mark.parametrize(("passed", "failed", "rate"), [(34, 1, 97.142857), (0, 0, 0), (0, 3, 0), (3, 0, 100)])
    def test_is_in_percent(self, outcome: Outcome, passed: int, failed: int, rate: float) -> None:
        results = [outcome()] * passed + [outcome(MISS)] * failed
        assert EvalReporter(io.StringIO()).calculate_pass_rate(results) == pytest.approx(rate, abs=1e-6)


class TestEncoding:
    @pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "cp437", "utf-8", "utf-16"])
    def test_no_text_is_too_foreign_to_be_printed(self, outcome: Outcome, encoding: str) -> None:
        stream = encoded(encoding)
        results = [outcome(description="Zażółć 日本 🎉 \udcff ü"), outcome("crash: 日本 \ud800", description="ü")]
        EvalReporter(stream).print_scenario_results(results)
        assert len(written(stream).splitlines()) == 3


class TestWarnings:
    @pytest.mark.parametrize(
        ("count", "took_ms", "duration_s", "warnings"),
        [
            (50, 60_000, 300, []),
            (51, 60_000, 1_000, []),
            (50, 3, 300.1, ["The suite of 50 scenarios took 300.1s, over 300s"]),
            (1, 60_001, 61, ["Scenario valid_warranty_001 took 60.0s, over 60s"]),
        ],
    )
    def test_what_took_long(
        self,
        outcome: Outcome,
        caplog: pytest.LogCaptureFixture,
        count: int,
        took_ms: int,
        duration_s: float,
        warnings: list[str],
    ) -> None:
        summary([outcome(took_ms=took_ms)] * count, duration_s)
        assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
            ("WARNING", warning) for warning in warnings
        ]


def test_the_summary_counts_scenarios_that_nobody_has_looked_at(outcome: Outcome) -> None:
    for count, line in (1, "1 scenario needs review: look at what"), (2, "2 scenarios need review: look at what"):
        assert line in summary([outcome(review=number < count) for number in range(2)])
