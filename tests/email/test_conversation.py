"""Which of our replies a mail answers, whether a machine wrote it, and what its ticket says of it."""

import pytest

from guarantee_email_agent.email.conversation import (
    answered_message_ids,
    follow_up_note,
    machine_reply_reason,
    text_fingerprint,
)
from guarantee_email_agent.email.parsing.email import Email
from guarantee_email_agent.email.parsing.parse import parse_email
from guarantee_email_agent.services.ports import Thread

APPROVED = ["Hello,\n\nThank you for your message. We have checked your device, and\nthe news is good."]
THREAD = Thread("t", "valid-warranty", "T-1", "<reply-1@example.com>", 1000.0, 1, 0)


def email(body: str, attachments: list[str] | None = None, subject: str = "Re: x", **headers: str) -> Email:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return parse_email(
        {"subject": subject, "body": body, "from": "c@example.org", "received": "", "message_id": "<m@example.org>"}
        | {"headers": named, "attachments": attachments or []}
    )


def test_the_nearest_mail_comes_last() -> None:
    found = answered_message_ids(email("", References="<a@x.org> <b@x.org>", In_Reply_To="<a@x.org>"))
    assert found == ("<b@x.org>", "<a@x.org>")
    assert answered_message_ids(email("", In_Reply_To='your mail "a@x.org" (b@x.org)')) == ("<a@x.org>", "<b@x.org>")


@pytest.mark.parametrize("value", ["", "no id", "<>", "<a b@x.org>", "<" * 10_000, "<" + "a" * 5_000 + ">"])
def test_what_is_no_message_id_answers_nothing(value: str) -> None:
    assert answered_message_ids(email("", References=value)) == ()


@pytest.mark.parametrize(("after_s", "is_machine"), [(0, True), (19, True), (-3, True), (21, False), (-60, False)])
def test_nobody_has_read_a_reply_within_seconds(after_s: float, is_machine: bool) -> None:
    reason = machine_reply_reason(
        email("I have another question."), THREAD, THREAD.replied_at + after_s, APPROVED, asked=False
    )
    assert (reason is not None) == is_machine


def test_a_wish_for_a_person_is_read_however_fast_it_comes() -> None:
    crossed = (email("It burns, call me."), THREAD, THREAD.replied_at + 5, APPROVED)
    assert machine_reply_reason(*crossed, asked=False, wants_person=True) is None


@pytest.mark.parametrize(
    "body",
    [
        "",
        "  \n\n",
        "...",
        "Thank you for your message. We have checked your device, and",
        "> Hello,\n>\n> Thank you for your message. We have checked your device, and\n> the news is good.",
        "Hello,\nThank you for your message.   We have checked  your device, and\nTHE NEWS IS GOOD.",
    ],
)
def test_our_own_words_are_no_answer(body: str) -> None:
    assert machine_reply_reason(email(body), THREAD, None, APPROVED, asked=False)


@pytest.mark.parametrize(
    "body",
    ["When will you call?", "Thank you!", "Hello, thank you for your help", "Hello,\nthank you\nso much", "ok", "请问"],
)
def test_a_word_of_their_own_is_an_answer(body: str) -> None:
    assert machine_reply_reason(email(body), THREAD, None, APPROVED, asked=False) is None


def test_a_number_is_an_answer_where_we_asked_for_one() -> None:
    given = email("SN12345")
    assert machine_reply_reason(given, THREAD, None, APPROVED, asked=True) is None
    assert machine_reply_reason(given, THREAD, None, APPROVED, asked=False)


@pytest.mark.parametrize(("subject", "is_machine"), [("SN12345", False), ("Re: SN12345", True), ("", True)])
def test_a_mail_without_a_text_says_what_its_own_subject_says(subject: str, is_machine: bool) -> None:
    reason = machine_reply_reason(email("", subject=subject), THREAD, None, APPROVED, asked=True)
    assert (reason is not None) == is_machine


def test_the_same_words_have_one_fingerprint() -> None:
    text = "I am out of the office and will answer your mail next week."
    assert text_fingerprint(email(text)) == text_fingerprint(email(text.upper().replace(" ", "\n  ")))
    assert text_fingerprint(email(text)) != text_fingerprint(email(text + " SN1"))


def test_a_note_names_the_mail_and_why_a_person_has_to_read_it() -> None:
    note = follow_up_note(email("The drawer sticks, too."), ["injury", "follow-up"])
    assert note == "The customer wrote again (injury, follow-up): <m@example.org>"
