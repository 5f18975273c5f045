from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guarantee_email_agent.email.parsing.email import Email
from guarantee_email_agent.email.reply import (
    MAX_REFERENCES,
    MAX_SUBJECT,
    reply_references,
    reply_subject,
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


@given(st.text())
def test_a_subject_is_never_longer_than_allowed(subject: str) -> None:
    assert len(reply_subject(subject)) <= MAX_SUBJECT + len("Re: ")


def test_references_of_a_first_mail_are_the_mail_itself() -> None:
    assert reply_references(mail()) == "<now@example.com>"


def test_references_carry_the_thread_on() -> None:
    assert (
        reply_references(mail("<1@example.com> <2@example.com>")) == "<1@example.com> <2@example.com> <now@example.com>"
    )


def test_a_long_thread_keeps_its_first_and_its_latest_mails() -> None:
    thread = [f"<{number}@example.com>" for number in range(500)]
    references = reply_references(mail(" ".join(thread))).split()
    assert references == [thread[0], *thread[1 - MAX_REFERENCES :], "<now@example.com>"]
