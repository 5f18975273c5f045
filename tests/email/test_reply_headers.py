from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guarantee_email_agent.email.message import Email
from guarantee_email_agent.email.reply_headers import (
    MAX_REFERENCES,
    MAX_SUBJECT,
    reply_message_id,
    reply_references,
    reply_subject,
    ticket_key,
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
        ("Fwd: My dryer", "Re: Fwd: My dryer"),
        ("Regarding my dryer", "Re: Regarding my dryer"),
        ("", "Re: your message"),
        ("   ", "Re: your message"),
    ],
)
def test_the_subject_is_the_customers_own_with_one_prefix(subject: str, reply: str) -> None:
    assert reply_subject(subject) == reply


@given(st.text())
def test_a_subject_is_never_longer_than_told(subject: str) -> None:
    assert len(reply_subject(subject)) <= MAX_SUBJECT + len("Re: ")


def test_the_message_id_follows_from_the_mail_answered() -> None:
    assert reply_message_id("<a@example.com>") == reply_message_id("<a@example.com>")
    assert reply_message_id("<a@example.com>") != reply_message_id("<b@example.com>")


@given(st.text())
def test_a_message_id_is_well_formed_whatever_was_answered(message_id: str) -> None:
    made = reply_message_id(message_id)

    assert made.isascii()
    assert made.startswith("<")
    assert made.endswith(">")
    assert made.count("@") == 1
    assert " " not in made


def test_the_ticket_key_follows_from_the_mail() -> None:
    assert ticket_key("<a@example.com>") == ticket_key("<a@example.com>")
    assert ticket_key("<a@example.com>") != ticket_key("<b@example.com>")


def test_the_ticket_key_does_not_show_the_message_id() -> None:
    assert "example" not in ticket_key("<a@example.com>")


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
