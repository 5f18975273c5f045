from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, TextIO

import pytest
from screen import Screen

from guarantee_email_agent.eval.case_result import as_case
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


def print_all(results: list[EvalResult], stream: TextIO, duration_s: float = 0, color: bool | None = None) -> None:
    reporter = EvalReporter(stream, color=color)
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
34 of 35 scenarios pass. If the agent was built on this suite, it says nothing of how often new mail goes wrong.
"""
WHOLE = PASSED_LINES + FAILED_LINES + SUMMARY


class TestOutput:
    def test_all_at_once(self, suite: list[EvalResult]) -> None:
        stream = io.StringIO()
        print_all(suite, stream, 0.42)
        assert stream.getvalue() == WHOLE

    def test_as_they_come(self, suite: list[EvalResult]) -> None:
        stream = io.StringIO()
        reporter = EvalReporter(stream)
        for result in suite:
            reporter.add(as_case(result))
        reporter.finish(0.42, planned=35)
        assert stream.getvalue() == WHOLE

    def test_passed_scenarios_are_written_at_once(self, outcome: Outcome) -> None:
        stream = io.StringIO()
        EvalReporter(stream).add(as_case(outcome()))
        assert stream.getvalue() == "✓ valid_warranty_001: Customer asks\n"

    def test_failure_details_alone(self, suite: list[EvalResult]) -> None:
        stream = io.StringIO()
        EvalReporter(stream).print_failure_details(suite)
        assert stream.getvalue() == FAILED_LINES

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

    def test_a_passed_gate(self, outcome: Outcome) -> None:
        text = summary([outcome()] * 99 + [outcome(MISS)])
        assert "Pass rate: 99/100 (99.0%)\n" in text
        assert "🎉 Eval passed! (≥99% threshold)\n" in text

    def test_all_passed_is_100_without_decimals(self, outcome: Outcome) -> None:
        text = summary([outcome()])
        assert "Pass rate: 1/1 (100%)\n✓ Passed: 1\n✗ Failed: 0\nDuration: 0.0s\n🎉 Eval passed!" in text

    @pytest.mark.parametrize(("threshold", "written"), [(99.5, "99.5"), ("90.0", "90"), (100, "100"), (0, "0")])
    def test_the_threshold_has_no_needless_zeros(self, outcome: Outcome, threshold: float | str, written: str) -> None:
        assert f"(≥{written}% threshold)" in summary([outcome()], threshold=threshold)

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

    def test_an_interrupted_run_has_counts_and_no_verdict(self, outcome: Outcome) -> None:
        stream = io.StringIO()
        reporter = EvalReporter(stream)
        reporter.add(as_case(outcome(MISS)))
        reporter.add(as_case(outcome()))
        reporter.finish(0.1, planned=5)
        text = stream.getvalue()
        assert "- FAILED" in text
        assert text.endswith("Interrupted: 2 of 5 scenarios ran, the gate is not decided\n")
        assert "threshold" not in text

    def test_without_a_stream_it_is_stdout(self, outcome: Outcome, capsys: pytest.CaptureFixture[str]) -> None:
        EvalReporter().print_scenario_results([outcome()])
        assert capsys.readouterr().out == "✓ valid_warranty_001: Customer asks\n"


class TestPassRate:
    @pytest.mark.parametrize(("passed", "failed", "rate"), [(34, 1, 97.142857), (0, 0, 0), (0, 3, 0), (3, 0, 100)])
    def test_is_in_percent(self, outcome: Outcome, passed: int, failed: int, rate: float) -> None:
        results = [outcome()] * passed + [outcome(MISS)] * failed
        assert EvalReporter(io.StringIO()).calculate_pass_rate(results) == pytest.approx(rate, abs=1e-6)


class TestEncoding:
    def test_where_the_signs_are_lacking_ascii_stands_in(self, suite: list[EvalResult]) -> None:
        stream = encoded("ascii")
        print_all(suite, stream, 0.4)
        text = written(stream)
        assert text.startswith("[PASS] valid_warranty_001: Works\n")
        assert "[FAIL] missing_info_003: Missing serial - FAILED\n" in text
        assert "actual:   'Thank you for your message. ...'\n" in text
        assert "[PASS] Passed: 34\n[FAIL] Failed: 1\nDuration: 0.4s\n[FAIL] Eval failed (<99% threshold)\n" in text

    def test_the_passed_gate_in_ascii(self, outcome: Outcome) -> None:
        stream = encoded("ascii")
        EvalReporter(stream).print_summary([outcome()], 0)
        assert "[PASS] Eval passed! (>=99% threshold)\n" in written(stream)

    @pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "cp437", "utf-8", "utf-16"])
    def test_no_text_is_too_foreign_to_be_printed(self, outcome: Outcome, encoding: str) -> None:
        stream = encoded(encoding)
        results = [outcome(description="Zażółć 日本 🎉 \udcff ü"), outcome("crash: 日本 \ud800", description="ü")]
        EvalReporter(stream).print_scenario_results(results)
        assert len(written(stream).splitlines()) == 3

    def test_ascii_on_demand(self, outcome: Outcome) -> None:
        stream = io.StringIO()
        EvalReporter(stream, ascii_only=True).print_scenario_results([outcome(description="für")])
        assert stream.getvalue() == "[PASS] valid_warranty_001: f\\xfcr\n"


class TestColor:
    @pytest.fixture(autouse=True)
    def _no_settings(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("NO_COLOR", raising=False)
        monkeypatch.setenv("TERM", "xterm")

    def text(self, results: list[EvalResult], stream: io.StringIO, color: bool | None = None) -> str:
        print_all(results, stream, color=color)
        return stream.getvalue()

    def test_on_a_terminal(self, outcome: Outcome) -> None:
        text = self.text([outcome(), outcome(MISS)], Screen())
        assert "\x1b[32m✓ valid_warranty_001: Customer asks\x1b[0m\n" in text
        assert "\x1b[31m✗ valid_warranty_001: Customer asks - FAILED\x1b[0m\n    response" in text
        assert "\x1b[31m⚠️  Eval failed (<99% threshold)\x1b[0m\n" in text

    def test_a_failed_count_of_none_is_not_red(self, outcome: Outcome) -> None:
        assert "\n✗ Failed: 0\n" in self.text([outcome()], Screen())

    def test_not_elsewhere(self, suite: list[EvalResult]) -> None:
        assert "\x1b" not in self.text(suite, io.StringIO())

    @pytest.mark.parametrize(
        ("name", "value", "is_colored"),
        [("NO_COLOR", "1", False), ("NO_COLOR", "0", False), ("NO_COLOR", "", True), ("TERM", "dumb", False)],
    )
    def test_not_where_it_is_unwanted(
        self, suite: list[EvalResult], monkeypatch: pytest.MonkeyPatch, name: str, value: str, is_colored: bool
    ) -> None:
        monkeypatch.setenv(name, value)
        assert ("\x1b" in self.text(suite, Screen())) is is_colored

    def test_on_demand(self, suite: list[EvalResult]) -> None:
        assert "\x1b[32m" in self.text(suite, io.StringIO(), color=True)
        assert "\x1b" not in self.text(suite, Screen(), color=False)


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

    def test_a_slow_scenario_is_named_once_as_it_comes(
        self, outcome: Outcome, caplog: pytest.LogCaptureFixture
    ) -> None:
        reporter = EvalReporter(io.StringIO())
        reporter.add(as_case(outcome(took_ms=61_000)))
        reporter.finish(61)
        assert [record.levelname for record in caplog.records] == ["WARNING"]


@pytest.mark.parametrize(
    ("reviews", "line"),
    [
        ([True, False], "1 scenario needs review: look at what is expected, then remove 'review: true'.\n"),
        ([True, True], "2 scenarios need review: look at what is expected, then remove 'review: true'.\n"),
    ],
)
def test_the_summary_counts_scenarios_that_nobody_has_looked_at(
    reviews: list[bool], line: str, outcome: Outcome
) -> None:
    stream = io.StringIO()
    print_all([outcome(review=review) for review in reviews], stream)
    assert line in stream.getvalue()


def test_a_suite_that_was_looked_at_has_no_word_about_it(outcome: Outcome) -> None:
    stream = io.StringIO()
    print_all([outcome()], stream)
    assert "review" not in stream.getvalue()
