"""Why a number of a mail does not count, as people are told."""

from __future__ import annotations

import pytest

from guarantee_email_agent.email.parsing.email import Email, Span
from guarantee_email_agent.email.verification import explain_dropped, verify_numbers
from guarantee_email_agent.instructions.lexicon import Lexicon
from guarantee_email_agent.instructions.look_up import NumberFormat

ORDERS = NumberFormat("order_number", "", "[A-Z]{2}-?[0-9]{5}|[0-9]{6}", ("order", "order number"))


def dropped(
    lexicon: Lexicon,
    new: str,
    *candidates: str,
    quoted: str = "",
    number_format: NumberFormat | None = None,
) -> dict[str, str]:
    spans = (Span("new", new), Span("quoted", quoted))
    email = Email("m1", "c@example.com", (), "", "", spans, ())
    numbers = verify_numbers(candidates, email, lexicon, number_format)
    return explain_dropped(numbers, email, lexicon, number_format)


@pytest.mark.parametrize(
    ("text", "number", "reason"),
    [
        ("Invoice number 991823.", "991823", "belongs to 'Invoice number'"),
        ("It is 4.500 EUR since 12:30", "12", "is no plain number, but part of a sum, a time or the like"),
        ("I bought it on 2024-05-06.", "2024-05-06", "has the form of a date, an amount, a parcel, a post code or the"),
        ("My KX20 broke.", "KX20", "has no label, and not the form of a serial number"),
        ("Serial number: 47-VALID11", "47-VALID11", "reads like a status or a link, which no reply may repeat"),
        ("My serial number is 4711-A12.", "4711-A12", "is none that the model named"),
    ],
)
def test_a_number_that_is_no_serial_number(text: str, number: str, reason: str, lexicon: Lexicon) -> None:
    assert dropped(lexicon, text, "47-VALID11")[number].startswith(reason)


def test_a_number_that_counts_is_not_dropped_however_it_is_spelled(lexicon: Lexicon) -> None:
    assert dropped(lexicon, "SN12345, that is SN-12345 or serial number 12345", "SN12345") == {}


def test_a_number_beside_labelled_ones(lexicon: Lexicon) -> None:
    found = dropped(lexicon, "Serial number: 4711-A12. It is an AB1234567.", "AB1234567")
    assert found == {
        "4711-A12": "is none that the model named",
        "AB1234567": "has no label, and another number has one",
    }


def test_a_quoted_number_behind_a_new_one(lexicon: Lexicon) -> None:
    found = dropped(lexicon, "It is SN12345.", "SN12345", "SN54321", quoted="> SN54321")
    assert found == {"SN54321": "stands behind the new text, which gives a number already"}


@pytest.mark.parametrize(
    ("text", "number", "reason"),
    [
        ("Order number 4711", "4711", "does not fit the pattern of order_number"),
        ("Where is 123456?", "123456", "has no label, and no letter that tells what it is"),
        ("Invoice number AB-10001", "AB-10001", "belongs to 'Invoice number'"),
        ("Order AB-10002", "AB-10002", "is none that the model named"),
    ],
)
def test_a_number_that_is_none_of_a_look_ups(text: str, number: str, reason: str, lexicon: Lexicon) -> None:
    assert dropped(lexicon, text, number_format=ORDERS) == {number: reason}
