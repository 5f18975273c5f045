"""Whom a mail is taken to be from: a machine, which gets no answer, or a person, who always gets one."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guarantee_email_agent.email.no_reply import is_automatic_subject, is_automatic_text, no_reply_reason
from guarantee_email_agent.email.parsing.parse import parse_email
from guarantee_email_agent.files.yaml import load_documents

GROUPS: Any = load_documents(Path(__file__).with_name("automatic_mail_cases.yaml").read_text(encoding="utf-8"))[0]
GREETINGS = ("", "Hello,\n\n", "Sehr geehrte Damen und Herren,\n", "Thank you for your message.\n\n")


def cases(kind: str) -> list[tuple[object, str | None]]:
    return [(case, group["reason"]) for group in GROUPS for case in group.get(kind, ())]


def reason(subject: str, text: str) -> str | None:
    mail = {"from": "jane@example.com", "subject": subject, "body": text, "received": "", "message_id": "1"}
    return no_reply_reason(parse_email(mail), frozenset())


@pytest.mark.parametrize(("subject", "expected"), cases("subjects"))
def test_who_wrote_a_subject(subject: str, expected: str | None) -> None:
    assert reason(subject, "x") == expected
    assert reason(f"Re: {subject}", "x") is None  # a person's answer to it


@pytest.mark.parametrize(("text", "expected"), cases("texts"))
def test_who_wrote_a_text(text: str, expected: str | None) -> None:
    if expected is None:
        assert [reason("My drill", greeting + text) for greeting in GREETINGS] == [None] * len(GREETINGS)
    else:
        assert reason("Re: Warranty", text) == expected
        assert reason("Re: Warranty", f"My washer WX-1188-20 is still broken and I only got this:\n\n{text}") is None


@pytest.mark.parametrize(("mail", "expected"), cases("mails"))
def test_who_wrote_a_mail(mail: dict[str, str], expected: str | None) -> None:
    assert reason(mail["subject"], mail["text"]) == expected


HOSTILE = [
    *(
        "this is an automated ",
        "thank you for contacting ",
        "your request ",
        "hello ",
        "[",
        "(",
        "a ",
        "\n",
        "! ",
        "ticket #1 ",
    ),
    *(
        "we have received your request ",
        "our a b c ",
        "i am out of the office ",
        "within the next ",
        "dear dear ",
        "請",
        "自动",
    ),
    *("ihre anfrage wurde unter ", "questa è ", "x" * 50 + "\n", "please note: ", "diese nachricht wurde a a "),
]


@pytest.mark.parametrize("piece", HOSTILE)
def test_200_kb_of_anything_is_read_in_linear_time(piece: str) -> None:
    text = "automatic reply " + piece * (200_000 // len(piece))
    started = time.process_time()
    is_automatic_text(text)
    is_automatic_text(text.removeprefix("automatic reply "))
    is_automatic_subject(text[:1_000])
    assert time.process_time() - started < 5  # milliseconds, unless a pattern backtracks without bound


@given(st.text(max_size=200))
def test_whoever_says_i_first_is_a_person(text: str) -> None:
    assert not is_automatic_text(f"I have a question. {text}\nThis is an automated message.")
