import pytest
from hypothesis import given
from hypothesis import strategies as st

from guarantee_email_agent.utils.text import (
    amount,
    duration,
    head_and_tail,
    normalize_line,
    normalize_text,
    printable,
    time_taken,
    truncate,
)


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


@pytest.mark.parametrize(
    ("usd", "text"),
    [(0.0, "0.0000"), (2.5e-7, "0.00000025"), (0.00005, "0.000050"), (0.0001, "0.0001"), (12.34567, "12.3457")],
)
def test_a_cost_is_never_shown_as_nothing(usd: float, text: str) -> None:
    assert amount(usd) == text


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


@pytest.mark.parametrize(
    "typed",
    [
        "SN-12 345",
        "SN\u201112\u00a0345",
        "SN\u2013" + "12\u202f345",
        "SN\u221212\u2009345",
        "S\u200bN-1\u00ad2 3\u206045",
        "\ufeffSN-12 345",
        "\u202aSN-12 345\u202c",
        "ＳＮ－１２　３４５",
        "\U0001d412\U0001d40d-\U0001d7cf\U0001d7d0 345",
        "SN-12\U000e0041 345",
        "S\ufe0fN-12 345",
    ],
)
def test_a_serial_number_reads_the_same_however_it_was_typed(typed: str) -> None:
    assert normalize_text(typed) == "SN-12 345"


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("a\r\nb\rc\x0bd\x0ce\u2028f\x85g", "a\nb\nc\nd\ne\nf\ng"),
        ("tab\tstays", "tab\tstays"),
        ("nul\x00bell\x07", "nul bell "),
        ("it\u2019s \u201cso\u201d \u00abici\u00bb \u201eda\u201c", 'it\'s "so" "ici" "da"'),
        ("Gera\u0308t", "Gerät"),
        ("Vie\u0323\u0302t", "Việt"),
        ("Zaz\u0307o\u0301łc\u0301", "Zażółć"),
        ("lone \ud800 half", "lone \ufffd half"),
        ("SN123² ½ … — ™", "SN123² ½ … — ™"),
        ("oﬃce", "office"),
        ("Grüße, łódź, 日本語, 😀", "Grüße, łódź, 日本語, 😀"),
    ],
)
def test_the_rule(text: str, clean: str) -> None:
    assert normalize_text(text) == clean


def test_a_long_run_of_combining_marks_is_read_to_its_end() -> None:
    # NFC of Python needs minutes for this.
    assert len(normalize_text("a" + "\u0301\u0323" * 150_000)) > 200_000


@given(st.text())
def test_clean_text_is_clean_and_encodable(text: str) -> None:
    clean = normalize_text(text)
    assert normalize_text(clean) == clean
    clean.encode("utf-8")
    assert not any(sign < " " and sign not in "\t\n" for sign in clean)


def test_what_stands_beyond_twice_the_limit_is_not_read() -> None:
    assert normalize_line(f"a{' ' * 18}b", limit=10) == "a b"
    assert normalize_line(f"a{' ' * 19}b", limit=10) == "a"
