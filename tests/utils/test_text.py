from __future__ import annotations

import pytest

from guarantee_email_agent.utils.text import duration, head_and_tail, printable, time_taken, truncate


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text", "plain text"),
        ("Zażółć gęślą jaźń 日本 🎉 ⚠️", "Zażółć gęślą jaźń 日本 🎉 ⚠️"),
        ("10\u202f000\u00a0€, 👩\u200d🔧", "10\u202f000\u00a0€, 👩\u200d🔧"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("one\ntwo\r\tthree\x00", "one\\ntwo\\r\\tthree\\x00"),
        ("\x9b31m", "\\x9b31m"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("line\u2028break", "line\\u2028break"),
        ("\udcff", "\\udcff"),
    ],
)
def test_writes_out_what_a_terminal_would_obey(text: str, shown: str) -> None:
    assert printable(text) == shown


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-3, "0 s"), (99, "99 s"), (200, "3 min"), (5880, "98 min"), (7200, "2 h"), (3 * 86_400, "3 days")],
)
def test_a_duration_has_one_unit(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [(0.024, "0.02 ms"), (9.96, "10.0 ms"), (12, "12 ms"), (9_999, "10.0 s"), (7_200_000, "120 min")],
)
def test_a_time_that_something_took_is_as_exact_as_it_is_short(milliseconds: float, text: str) -> None:
    assert time_taken(milliseconds) == text


@pytest.mark.parametrize(("text", "short"), [("", ""), ("four", "four"), ("fives", "five…")])
def test_a_long_text_is_cut_and_shows_it(text: str, short: str) -> None:
    assert truncate(text, 4) == short


@pytest.mark.parametrize(
    ("text", "missing", "short"),
    [
        ("", 0, ""),
        ("four", 0, "four"),
        ("begin", 0, "be\n[… 1 characters left out …]\nin"),
        ("four", 9, "fo\n[… 9 characters left out …]\nur"),
    ],
)
def test_both_ends_of_a_long_text_stay(text: str, missing: int, short: str) -> None:
    assert head_and_tail(text, 4, missing) == short
