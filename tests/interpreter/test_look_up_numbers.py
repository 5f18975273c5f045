"""Which numbers of a text belong to a look-up, by its labels and its pattern."""

from __future__ import annotations

import pytest

from guarantee_email_agent.instructions.lexicon import Lexicon
from guarantee_email_agent.instructions.look_up import NumberFormat
from guarantee_email_agent.instructions.phrases import tokenize
from guarantee_email_agent.interpreter.look_up_numbers import find_given_numbers

LABELS = ("order", "order number", "order no", "bestellnummer", "booking ref")
MIXED = NumberFormat("order_number", "", "[A-Z]{2}-?[0-9]{5}", LABELS)
DIGITS = NumberFormat("order_number", "", "[0-9]{6}", LABELS)


def given(text: str, number_format: NumberFormat, lexicon: Lexicon, *, asked: bool = False) -> list[str]:
    return list(find_given_numbers(tokenize(text), number_format, lexicon).all(asked=asked).values())


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("Where is my order AB-10001?", ["AB-10001"]),
        ("Order number: ab10001", ["AB10001"]),
        ("My order no. is AB-10001, thanks.", ["AB-10001"]),
        ("Bestellnummer\nAB-10001", ["AB-10001"]),
        ("AB-10001 has not come yet", ["AB-10001"]),
        ("AB-10001 and AB-10002 have not come", ["AB-10001", "AB-10002"]),
        ("order AB-10001. Again: ab 10001, AB10001!", ["AB-10001"]),
        ("my invoice AB-10001 is wrong", []),
        ("serial number AB-10001", []),
        ("tracking number AB-10001, order AB-10002", ["AB-10002"]),
        ("order AB-100012", []),
        ("order XAB-10001", []),
        ("order AB-10001-7", []),
        ("see https://shop.example.com/AB-10001", []),
        ("+AB-10001", []),
        ("order AB-1000", []),
    ],
)
def test_a_number_with_a_letter_tells_by_its_shape(text: str, numbers: list[str], lexicon: Lexicon) -> None:
    assert given(text, MIXED, lexicon) == numbers


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("order 123456", ["123456"]),
        ("orders? order 123456 and 123457", ["123456", "123457"]),
        ("order numbers 123456, 123457", ["123456", "123457"]),
        ("123456 is my order number", ["123456"]),
        ("123456 is my order number: 654321", ["654321"]),
        ("call 123456", []),
        ("123456", []),
        ("I have an order. My postcode is 123456", []),
        ("order of 12,345,678 pieces", []),
        ("order 12.03.2024", []),
        ("booking ref 123456", ["123456"]),
        ("I have no order number, only 123456", []),
    ],
)
def test_a_bare_row_of_digits_needs_a_label(text: str, numbers: list[str], lexicon: Lexicon) -> None:
    assert given(text, DIGITS, lexicon) == numbers


def test_a_lone_number_answers_the_question_for_one(lexicon: Lexicon) -> None:
    assert given("It is 123456.", DIGITS, lexicon, asked=True) == ["123456"]
    assert given("123456 or 654321", DIGITS, lexicon, asked=True) == []
    assert given("invoice 123456", DIGITS, lexicon, asked=True) == []


def test_what_could_be_a_link_is_no_number(lexicon: Lexicon) -> None:
    loose = NumberFormat("order_number", "", "[A-Z0-9.]{5,30}", LABELS)
    assert given("order evil1.co", loose, lexicon) == []


def test_time_is_linear(lexicon: Lexicon) -> None:
    text = "order 123456 " * 20_000
    assert given(text, DIGITS, lexicon) == ["123456"]
