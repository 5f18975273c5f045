from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guarantee_email_agent.email.identity import copy_key, mail_identity, reply_message_id, ticket_key
from guarantee_email_agent.email.parsing.email import Email, Span
from guarantee_email_agent.email.parsing.parse import parse_email

MAIL = Email(
    "<a@example.com>", "c@example.com", (), "My dryer", "2026-01-18T10:00:00Z", (Span("new", "Broken."),), (), {}
)


WITH_ID = "Message-ID: <a@example.com>\r\n"


def raw(*, received: str = "", message_id: str = WITH_ID, second: int = 0, body: str = "Broken.") -> bytes:
    return (
        f"{received}From: c@example.com\r\nTo: support@example.com\r\nSubject: My dryer\r\n"
        f"Date: Sun, 18 Jan 2026 10:00:{second:02} +0000\r\n{message_id}\r\n{body}\r\n"
    ).encode()


@pytest.mark.parametrize("message_id", [WITH_ID, "", "Message-ID:\r\n"])
def test_every_copy_of_a_mail_is_that_mail_whichever_way_it_came(message_id: str) -> None:
    way = "Received: from a.example.com by b.example.com; Sun, 18 Jan 2026 10:00:01 +0000\r\n"
    one = raw(received=way, message_id=message_id)
    other = raw(received="Delivered-To: info@example.com\r\n", message_id=message_id)
    assert mail_identity(parse_email(one)) == mail_identity(parse_email(other))


@pytest.mark.parametrize(
    "other",
    [
        replace(MAIL, message_id="<b@example.com>"),
        replace(MAIL, sender="d@example.com"),
        replace(MAIL, subject="My washer"),
        replace(MAIL, received="2026-01-19T10:00:00Z"),
        replace(MAIL, spans=(Span("new", "Still broken."),)),
    ],
)
def test_a_mail_that_differs_is_another_one_even_under_the_same_message_id(other: Email) -> None:
    assert mail_identity(other) != mail_identity(MAIL)


COPY = b"X-Note: 1\r\n" + raw()
PARENT = b"X-MS-Exchange-Parent-Message-Id: <a@example.com>\r\n"


@pytest.mark.parametrize(
    ("copy", "is_one"),
    [
        (COPY.replace(b"My dryer", b"[EXTERNAL] My dryer").replace(b"Broken", b"Broken. A footer"), True),
        (COPY.replace(b"c@example.com", b"'C via list' <list@example.net>"), True),
        (COPY.replace(b"10:00:00 +0000", b"11:00:00 +0100 (CET)"), True),
        (PARENT + COPY.replace(b"<a@example.com>", b"<b@example.net>"), True),
        (COPY.replace(b"<a@example.com>", b"<b@example.net>"), False),
        (raw(second=1), False),
        (COPY.replace(b"Sun, 18 Jan 2026 10:00:00 +0000", b"today"), False),
    ],
)
def test_altered_copies_have_their_message_id_and_moment_in_common(copy: bytes, is_one: bool) -> None:
    keys = [copy_key(parse_email(each), b"key") for each in (raw(), copy)]
    assert (keys[0] == keys[1]) is is_one
    assert copy_key(parse_email(raw(message_id="")), b"key") is None
    assert copy_key(parse_email(raw()), b"other key") != keys[0]


def test_without_the_key_nobody_can_tell_what_a_mail_is_called() -> None:
    assert len({mail_identity(MAIL), mail_identity(MAIL, b"one"), mail_identity(MAIL, b"two")}) == 3


@given(st.text())
def test_any_mail_has_an_identity_that_shows_nothing_of_it(text: str) -> None:
    identity = mail_identity(replace(MAIL, message_id=text, spans=(Span("new", text),)))
    assert len(identity) == 32
    assert set(identity) <= set("0123456789abcdef")


def test_the_replys_message_id_and_the_tickets_key_follow_from_the_identity() -> None:
    identity = mail_identity(MAIL)
    assert reply_message_id(identity, "example.com") == f"<reply-{identity}@example.com>"
    assert ticket_key(identity) == f"mail-{identity}"
