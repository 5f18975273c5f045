"""What is said of results that are not as they were."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace

import pytest

from guarantee_email_agent.eval.models import EvalResult
from guarantee_email_agent.eval.watch.difference import Difference
from guarantee_email_agent.utils.terminal import Terminal

Outcome = Callable[..., EvalResult]


@pytest.fixture
def stream() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def difference(stream: io.StringIO) -> Difference:
    return Difference(Terminal(stream, color=False, ascii_only=False))


def test_of_many_failures_the_first_are_explained_and_all_are_counted(
    difference: Difference, stream: io.StringIO, outcome: Outcome
) -> None:
    results = [outcome("email_sent: no mail was sent", scenario_id=f"a_{number}") for number in range(30)]
    for result in results:
        difference.add(outcome(), result)
    assert difference.print_rest()
    assert not difference.print_rest()
    difference.print_total(results, 99.0, 30, 0.5)
    text = stream.getvalue()
    assert text.count("Newly failing:") == 1
    assert text.count(" - FAILED") == 20
    assert "… and 10 more that fail\n" in text
    assert "Same cause in 30 scenarios: email_sent: no mail was sent\n" in text
    assert "✗ 30 newly failing. Pass rate: 0/30 (0.0%), below the threshold of 99%; 30 scenarios ran in 0.50s\n" in text


def test_a_failure_makes_the_line_bad_even_above_the_threshold(
    difference: Difference, stream: io.StringIO, outcome: Outcome
) -> None:
    difference.add(outcome(), outcome("email_sent: no mail was sent"))
    difference.print_total([outcome("email_sent: no mail was sent"), outcome()], 50.0, 1, 0.01)
    assert stream.getvalue().endswith("✗ 1 newly failing. Pass rate: 1/2 (50.0%); 1 scenario ran in 0.01s\n")


def test_control_characters_of_a_reply_are_written_out(
    difference: Difference, stream: io.StringIO, outcome: Outcome
) -> None:
    before, after = (replace(outcome(), actual_output={"response_body": text}) for text in ("Hello", "\x1b[2J Hello"))
    difference.add(before, after)
    difference.print_rest()
    assert "\x1b" not in stream.getvalue()
    assert "Changed replies: 1" in stream.getvalue()


def test_a_reply_of_an_invalid_file_did_not_change(
    difference: Difference, stream: io.StringIO, outcome: Outcome, invalid: EvalResult
) -> None:
    difference.add(invalid, replace(outcome(), actual_output={"response_body": "Hello"}))
    difference.print_rest()
    assert "Changed replies" not in stream.getvalue()
    assert "Newly passing: 1" in stream.getvalue()
