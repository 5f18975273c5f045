from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guarantee_email_agent.email.parsing.email import Email, Span
from guarantee_email_agent.email.verification import verify_serial_numbers


def mail(new: str = "", *, subject: str = "", quoted: str = "", signature: str = "") -> Email:
    spans = (Span("new", new), Span("quoted", quoted), Span("signature", signature))
    return Email("m1", "c@example.com", (), subject, "", spans, ())


@pytest.mark.parametrize("candidate", ["SN12345", "sn12345", " SN12345 ", "SN-12345", "12345"])
def test_keeps_what_stands_in_the_mail_in_upper_case(candidate: str) -> None:
    assert verify_serial_numbers([candidate], mail("My sn12345 broke.")) == (candidate.strip().upper(),)


@pytest.mark.parametrize(
    ("candidates", "email", "kept"),
    [
        pytest.param(["SN99999", "SN12345"], mail("My SN12345 broke."), ("SN12345",), id="an invention is dropped"),
        *(
            pytest.param(["SN12345"], mail(written), ("SN12345",), id=repr(written))
            for written in ("SN 123 45", "SN-12345", "S N:12345", "SN\n12345")
        ),
        pytest.param(["SN12345"], mail("It broke.", subject="SN12345"), ("SN12345",), id="in the subject"),
        pytest.param(
            ["SN222", "SN111", "SN333"],
            mail("It is SN111.", quoted="> e.g. SN222", signature="SN333"),
            ("SN111",),
            id="newly written before quoted text and signature",
        ),
        pytest.param(["SN222"], mail("Any news?", quoted="> SN222"), ("SN222",), id="quoted where nothing is new"),
        pytest.param(
            ["SN-12345", "SN12345", "12345"], mail("SN-12345 or SN12345"), ("SN-12345",), id="spellings of one number"
        ),
        pytest.param(["SN111", "SN222"], mail("SN111 and SN222"), ("SN111", "SN222"), id="several devices"),
    ],
)
def test_which_candidates_count(candidates: list[str], email: Email, kept: tuple[str, ...]) -> None:
    assert verify_serial_numbers(candidates, email) == kept


@pytest.mark.parametrize(
    "candidate",
    [
        "",
        " ",
        "abc",
        "-12345",
        "12345-",
        "1",
        "SN12345\nBcc: x",
        "SN<12345>",
        "SN--12345",
        "1" * 60,
        "ＳＮ12345",
        "{12}",
    ],
)
def test_what_cannot_be_a_serial_number_is_dropped(candidate: str) -> None:
    assert verify_serial_numbers([candidate], mail(f"It is {candidate}, yes.")) == ()


@given(st.lists(st.text(max_size=70), max_size=5), st.text(max_size=100))
def test_whatever_is_kept_is_short_plain_and_stands_in_the_mail(candidates: list[str], text: str) -> None:
    squashed = "".join(sign for sign in text.upper() if sign.isalnum())
    for number in verify_serial_numbers(candidates, mail(text)):
        assert number.isascii()
        assert number.isprintable()
        assert len(number) <= 60
        assert "".join(sign for sign in number if sign.isalnum()) in squashed
