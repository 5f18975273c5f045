from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guarantee_email_agent.email.parsing.email import Email
from guarantee_email_agent.email.reply import (
    MAX_REFERENCES,
    MAX_UNPROVED_SUBJECT,
    reply_references,
    reply_subject,
    unproved_subject,
)


def mail(*references: str) -> Email:
    return Email(
        "<now@example.com>", "c@example.com", (), "", "", (), (), {"references": references} if references else {}
    )


@pytest.mark.parametrize(
    ("subject", "reply"),
    [
        ("My dryer", "Re: My dryer"),
        ("Re: My dryer", "Re: My dryer"),
        ("RE: My dryer", "RE: My dryer"),
        ("AW: Mein Trockner", "AW: Mein Trockner"),
        ("Odp: Pralka", "Odp: Pralka"),
        ("RE : Mon lave-linge", "RE : Mon lave-linge"),
        ("R: Asciugatrice", "R: Asciugatrice"),
        ("Re[2]: My dryer", "Re[2]: My dryer"),
        ("Fwd: My dryer", "Re: Fwd: My dryer"),
        ("Regarding my dryer", "Re: Regarding my dryer"),
        ("", "Re: your message"),
        ("   ", "Re: your message"),
    ],
)
def test_the_subject_is_the_customers_own_with_one_prefix(subject: str, reply: str) -> None:
    assert reply_subject(subject) == reply


@pytest.mark.parametrize(
    ("subject", "repeated"),
    [
        ("Is my dryer still covered?", "Is my dryer still covered?"),
        ("Refund approved: visit http://evil.example/now today", "Refund approved: visit today"),
        ("Refund approved: evil.example/pay", "Refund approved:"),
        ("Call WWW.evil.example. Or write to me@evil.example!", "Call Or write to"),
        ("Dryer KT-77120-9, Nr. 4711, 2.5 kW", "Dryer KT-77120-9, Nr. 4711, 2.5 kW"),
    ],
)
def test_no_link_of_an_unproved_sender_is_repeated(subject: str, repeated: str) -> None:
    assert unproved_subject(subject) == repeated


@given(st.text())
def test_little_of_an_unproved_subject_is_repeated(subject: str) -> None:
    assert len(unproved_subject(subject)) <= MAX_UNPROVED_SUBJECT


def test_a_long_thread_keeps_its_first_and_its_latest_mails() -> None:
    thread = [f"<{number}@example.com>" for number in range(500)]
    references = reply_references(mail(" ".join(thread))).split()
    assert references == [thread[0], *thread[1 - MAX_REFERENCES :], "<now@example.com>"]
