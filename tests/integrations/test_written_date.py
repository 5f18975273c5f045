from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guarantee_email_agent.integrations.written_date import is_date

DATES = [
    *("2027-03-31", "2027/03/31", "2027.3.31", "9999-12-31", "2028-02-29"),
    *("2027-03-31T23:59:59Z", "2027-03-31 00:00", "2027-03-31T00:00:00.000+01:00"),
    *("31.03.2027", "31/03/2027", "03/31/2027", "31-3-2027"),
    *("31 March 2027", "31st March, 2027", "1 Sept. 2027", "31. Dec. 2031", "March 31, 2027", "Mar 31st 2027"),
    *("31. März 2027", "31. Maerz 2027", "31 marca 2027", "1er août 2027", "31 de marzo de 2027", "30 WRZEŚNIA 2027"),
]
NO_DATES = [
    *("", "2027", "03/2027", "March 2027", "31.03.27", "soon", "31 Foo 2027", "31 March", "2027-03"),
    *("2027-13-01", "2027-00-10", "2027-02-30", "31/31/2027", "32.03.2027", "31 April 2027", "April 31, 2027"),
    *("2027-03.31", "0027-03-31", "2027-03-31T25:00", "2027-03-31 or later", "valid 2027-03-31", " 2027-03-31"),
    *("2027-03-31\n", "2027-03-31\nBcc: c@example.com", "<b>2027-03-31</b>", "2027\u200b-03-31"),
    # Digits and letters of other scripts: full-width, Arabic, Cyrillic "е", the long "s", the Kelvin sign.
    *("２０２７-03-31", "٢٠٢٧-03-31", "31 Dеcember 2027", "31 ſeptember 2027", "31 o\u212atober 2027"),
]


@pytest.mark.parametrize("text", DATES)
def test_a_date_in_a_usual_form_is_one(text: str) -> None:
    assert is_date(text)


@pytest.mark.parametrize("text", NO_DATES)
def test_anything_else_is_none(text: str) -> None:
    assert not is_date(text)


@given(st.dates(date(1900, 1, 1), date(2999, 12, 31)))
def test_every_day_is_a_date_as_the_standard_writes_it(day: date) -> None:
    assert is_date(str(day))
