"""Text as it is compared and read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guarantee_email_agent.utils.text import normalize_line, normalize_text


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
