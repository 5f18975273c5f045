from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guarantee_email_agent.instructions.lexicon import Lexicon
from guarantee_email_agent.instructions.phrases import tokenize
from guarantee_email_agent.interpreter.whole_numbers import find_whole_numbers


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("My SN12345 broke.", ["SN12345"]),
        ("ZX-9001-11 and 4711/A_2", ["ZX-9001-11", "4711/A_2"]),
        ("FD 9804 00231 hums", ["FD980400231"]),
        ("It is 4c1 7719 0033", ["4C177190033"]),
        ("1234 5678 9012", ["123456789012"]),
        ("AB12 CD34", ["AB12CD34"]),
        ("CX 5519 02A", ["CX551902A"]),
        ("TV 4K 60HZ", ["4K", "60HZ"]),
        ("A1 B2", ["A1", "B2"]),
        ("00471 KL", ["00471KL"]),
        ("AB 00471", ["AB00471"]),
        ("THE 00471 IS ON", ["00471"]),
        ("FAN 00471", ["FAN00471"]),
        ("KX200 4711", ["KX200", "4711"]),
        ("TS90 0101", ["TS900101"]),
        ("TS90 2024", ["TS90", "2024"]),
        ("TS9 010", ["TS9", "010"]),
        ("TS90 01234", ["TS90", "01234"]),
        ("S/N TS90 01234, TS90 01235", ["TS9001234", "TS9001235"]),
        ("The serial number is TS90 12345.", ["TS9012345"]),
        ("Serial number: TS90 12345 hours", ["TS90", "12345"]),
        ("Mod./Ser. no.: TS90 12345", ["TS90", "12345"]),
        ("4711 2026", ["4711", "2026"]),
        ("1234\n5678", ["1234", "5678"]),
        ("1234  5678", ["1234", "5678"]),
        ("SN12345.Thanks", ["SN12345"]),
        ("Thanks.SN12345", ["SN12345"]),
        ("SN111/SN222/KX3", ["SN111", "SN222/KX3"]),
        ("no digits", []),
    ],
)
def test_a_number_is_read_whole(text: str, numbers: list[str], lexicon: Lexicon) -> None:
    assert [number.text for number in find_whole_numbers(tokenize(text), lexicon)] == numbers


@pytest.mark.parametrize(
    "text",
    ["+48601", "€12345", "12345%", "1,234,567", "12:30:45", "12--34", "12345-\n678", "12345\u0336", "\u0410-12345"],
)
def test_what_only_looks_like_a_number_of_its_own_has_no_text(text: str, lexicon: Lexicon) -> None:
    first, *_ = find_whole_numbers(tokenize(text), lexicon)
    assert first.text == ""


def test_digits_beside_digits_are_known(lexicon: Lexicon) -> None:
    numbers = find_whole_numbers(tokenize("(030) 231 25014, 7719003"), lexicon)
    assert [number.is_beside_last for number in numbers] == [False, True, True, False]


@given(st.text(alphabet="AB12 -./,\nsnX", max_size=60))
def test_numbers_never_overlap_and_leave_no_digit_out(lexicon: Lexicon, text: str) -> None:
    words = tokenize(text)
    numbers = find_whole_numbers(words, lexicon)
    covered = [index for number in numbers for index in range(number.first, number.end)]
    assert covered == sorted(set(covered))
    assert {index for index, word in enumerate(words.folded) if not word.isalpha()} <= set(covered)


@pytest.mark.parametrize("part", ["1", "12 34 ", "4C 7719 0033 X ", "1-", "AB 12 ", "X ", "a.1", "1,234"])
def test_a_hostile_text_of_full_length_is_read(part: str, lexicon: Lexicon) -> None:
    text = (part * 200_000)[:200_000]
    assert isinstance(find_whole_numbers(tokenize(text), lexicon), list)
