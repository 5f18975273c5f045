"""Headers of a model API's answers, honest and odd ones."""

from __future__ import annotations

import pytest

from guarantee_email_agent.llm.rate_limit_headers import ReportedLimit, reported_limits, retry_after_s

NOW = 1_795_000_000.0  # Wed, 18 Nov 2026 11:06:40 GMT


def test_each_limit_comes_with_what_is_left_of_it() -> None:
    headers = {
        "anthropic-ratelimit-requests-limit": "50",
        "anthropic-ratelimit-requests-remaining": "49",
        "anthropic-ratelimit-requests-reset": "2026-11-18T11:07:00Z",
        "anthropic-ratelimit-input-tokens-limit": "30000",
        "anthropic-ratelimit-output-tokens-limit": "8000",
        "anthropic-ratelimit-output-tokens-remaining": "0",
    }
    assert list(reported_limits(headers)) == [
        ReportedLimit("requests", 50, 49),
        ReportedLimit("input-tokens", 30_000, None),
        ReportedLimit("output-tokens", 8_000, 0),
    ]


@pytest.mark.parametrize("text", ["", "0", "-3", "1e3", "nan", "lots", "9" * 40, "5.5", "٣"])
def test_what_is_no_count_is_no_limit(text: str) -> None:
    assert list(reported_limits({"anthropic-ratelimit-requests-limit": text})) == []


@pytest.mark.parametrize("text", ["", "-1", "many"])
def test_what_is_no_count_does_not_say_what_is_left(text: str) -> None:
    headers = {"anthropic-ratelimit-tokens-limit": "7", "anthropic-ratelimit-tokens-remaining": text}
    assert list(reported_limits(headers)) == [ReportedLimit("tokens", 7, None)]


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({"retry-after": "12"}, 12.0),
        ({"retry-after": " 0.5 "}, 0.5),
        ({"retry-after-ms": "1500", "retry-after": "2"}, 1.5),
        ({"retry-after-ms": "soon", "retry-after": "2"}, 2.0),
        ({"retry-after": "3600"}, 3600.0),
        ({"retry-after": "9" * 400}, 31_536_000.0),
        ({"retry-after": "Wed, 18 Nov 2026 11:06:45 GMT"}, 5.0),
        ({"retry-after": "Wed, 18 Nov 2026 11:06:45 -0000"}, 5.0),
        ({"retry-after": "Wed, 18 Nov 2026 13:06:45 +0200"}, 5.0),
        ({"retry-after": "Wed, 18 Nov 2026 09:00:07 GMT", "date": "Wed, 18 Nov 2026 09:00:00 GMT"}, 7.0),
        ({"retry-after": "Wed, 18 Nov 2026 11:06:45 GMT", "date": "yesterday"}, 5.0),
    ],
)
def test_seconds_and_dates_say_how_long_to_wait(headers: dict[str, str], wait_s: float) -> None:
    assert retry_after_s(headers, lambda: NOW) == wait_s


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0",
        "-5",
        "nan",
        "inf",
        "1e9",
        "1_0",
        "soon",
        "Fri, 99 Nov 2026 11:00:00 GMT",
        "Wed, 18 Nov 2026 11:06:39 GMT",
    ],
)
def test_garbage_and_what_is_over_say_nothing(text: str) -> None:
    assert retry_after_s({"retry-after": text}, lambda: NOW) is None
