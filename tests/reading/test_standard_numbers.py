from __future__ import annotations

import pytest

from guarantee_email_agent.reading.standard_numbers import find_standard


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("07700 900461", "a phone number"),
        ("+48 600 123 456", "a phone number"),
        ("(030) 901820", "a phone number"),
        ("DE89 3704 0044 0532 0130 00", "a bank account (IBAN)"),
        ("GB82WEST12345698765432", "a bank account (IBAN)"),
        ("4111 1111 1111 1111", "a card"),
        ("490154203237518", "a card"),  # an IMEI has a card's check digit, too
        ("4006381333931", "an article (EAN, ISBN)"),
        ("978-3-16-148410-0", "an article (EAN, ISBN)"),
        ("DE136695976", "a VAT number"),
        ("44051401359", "a personal number"),
        ("12345678Z", "an identity card"),
    ],
)
def test_a_number_with_its_check_digit_is_known(written: str, name: str) -> None:
    assert find_standard(written) == name


@pytest.mark.parametrize(
    "written", ["", "KT-77120-9", "DE89 3704 0044 0532 0130 01", "4111 1111 1111 1112", "4006381333934", "12345678A"]
)
def test_a_number_of_nobody_or_with_another_check_digit_is_not(written: str) -> None:
    assert find_standard(written) is None
