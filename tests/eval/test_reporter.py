import io
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TextIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scenario_folder import TEMPLATES

from guarantee_email_agent.eval.case_result import judged_case
from guarantee_email_agent.eval.loader import EvalLoader
from guarantee_email_agent.eval.models import EvalExpectedOutput, EvalResult
from guarantee_email_agent.eval.reporter import EvalReporter, explain
from guarantee_email_agent.runlog.records import Case
from guarantee_email_agent.runlog.suite_statistics import SharedCauses

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


SCENARIO = EvalLoader().load_eval_test_case(TEMPLATES / "valid_warranty_001.yaml")
REPLY = """\
Hello,

Thank you for your message. Your warranty is really
valid until 2027-06-30. Its number is HX-1.
- on the label of the box
"""


def failed(reply: str | None = REPLY, **expected: Any) -> Case:
    always = {"email_sent": True, "ticket_created": True, "scenario_instruction_used": "valid-warranty"}
    scenario = replace(SCENARIO, expected_output=EvalExpectedOutput(**(always | expected)))
    actual = {"email_sent": True, "response_body": reply, "ticket_created": True, "ticket_fields": {}}
    checks = scenario.expected_output.checks({**actual, "scenario_used": "valid-warranty"})
    return Case((judged_case(scenario, checks, actual),))


def named(case: Case, number: int) -> Case:
    return Case((case.shown._replace(name=f"s_{number}"),))


@pytest.mark.parametrize(
    ("phrase", "diff"),
    [
        ("warranty is valid until", "Your warranty is {+really+} valid until 2027-06-30."),
        ("your WARRANTY was valid", "Your warranty [-was-] {+is really+} valid until 2027-06-30."),
        ("on the label of its box", "- on the label of [-its-] {+the+} box"),
    ],
)
def test_the_nearest_sentence_is_compared_word_by_word_in_its_own_letters(phrase: str, diff: str) -> None:
    (nearest,) = failed(response_body_contains=(phrase,)).shown.nearest
    assert (nearest.phrase, nearest.diff) == (phrase, diff)


@pytest.mark.parametrize("phrase", ["nothing of the kind", "type label", "refund"])
def test_a_phrase_that_nothing_is_near_to_has_no_sentence(phrase: str) -> None:
    assert failed(response_body_contains=(phrase,)).shown.nearest == ()


def test_the_reply_stands_once_below_all_misses() -> None:
    lines = list(explain(failed(response_body_contains=("refund", "repair", "warranty was valid"))))
    assert lines[0].startswith("nearest to 'warranty was valid': ")
    assert lines[1:4] == ["reply:", "  Hello,", "  Thank you for your message. Your warranty is really"]
    assert lines.count("reply:") == 1


def test_a_phrase_that_must_not_be_there_is_marked_in_the_replys_own_letters() -> None:
    lines = list(explain(failed("Größe: STRASSE, Straße\nEXPIRED", response_body_excludes=("strasse,", "expired"))))
    assert lines == ["reply:", "  Größe: >>STRASSE,<< Straße", "  >>EXPIRED<<"]


def test_without_a_reply_or_a_phrase_that_failed_there_is_nothing_to_explain() -> None:
    assert list(explain(failed(None, response_body_contains=("refund",)))) == []
    assert list(explain(failed(email_sent=False))) == []


def test_a_long_reply_is_cut() -> None:
    lines = list(explain(failed("x" * 5_000, response_body_contains=("refund",))))
    assert lines[-1] == "  … and 1000 more characters"


def test_a_cause_that_two_others_had_needs_no_details() -> None:
    causes = SharedCauses()
    results = [failed(response_body_contains=("refund",)) for _ in range(3)]
    assert [causes.add(result) for result in results] == [False, False, True]
    assert causes.add(failed(response_body_contains=("refund", "repair"))) is False


def test_many_scenarios_with_one_cause_are_told_with_a_count() -> None:
    causes = SharedCauses()
    for number in range(12):
        causes.add(named(failed(response_body_contains=("refund",)), number))
    assert list(causes.lines()) == [
        "Same cause in 12 scenarios: response_body_contains: missing phrase 'refund'",
        "    s_0, s_1, s_2, s_3, s_4, s_5, s_6, s_7 and 4 more",
    ]


def test_a_summary_keeps_no_more_than_it_shows() -> None:
    whole, summary = SharedCauses(), SharedCauses(summary=True)
    for number in range(1_100):
        case = named(failed(response_body_contains=("refund", f"phrase {number}")), number)
        assert whole.add(case) == summary.add(case)
    assert list(summary.lines()) == list(whole.lines())
    assert len(whole.counts()) == 1_101
    assert len(summary.counts()) == 1_000
    assert max(len(ids) for _, ids in summary.counts()) == 8


@given(st.text(max_size=60), st.lists(st.text(min_size=1, max_size=12).filter(str.strip), min_size=1, max_size=3))
def test_any_reply_and_phrases_can_be_explained(reply: str, phrases: list[str]) -> None:
    assert all(isinstance(line, str) for line in explain(failed(reply, response_body_contains=tuple(phrases))))
    marked = "\n".join(explain(failed(reply, response_body_excludes=tuple(phrases))))
    assert marked.replace(">>", "").replace("<<", "").count("reply:") <= 1 + reply.count("reply:")
