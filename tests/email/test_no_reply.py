"""Mails that a program must not answer, and those that only look like them."""

from __future__ import annotations

import pytest

from guarantee_email_agent.email.no_reply import no_reply_reason
from guarantee_email_agent.email.parsing.parse import parse_email

OWN = frozenset({"Support@Example.com", "warranty+box@example.com"})


def reason(sender: str = "jane@example.com", subject: str = "My drill", **headers: str) -> str | None:
    raw = {"from": sender, "subject": subject, "body": "x", "received": "", "message_id": "1"}
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return no_reply_reason(parse_email(raw | {"headers": names}), OWN)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"Auto_Submitted": "auto-replied"}, "Auto-Submitted is not 'no'"),
        ({"Auto_Submitted": "auto-generated; owner-email=x@example.com"}, "Auto-Submitted is not 'no'"),
        ({"AUTO_SUBMITTED": "(comment (nested)) AUTO-REPLIED (vacation)"}, "Auto-Submitted is not 'no'"),
        ({"Auto_Submitted": "not-at-all"}, "Auto-Submitted is not 'no'"),
        ({"Auto_Submitted": ""}, "Auto-Submitted is not 'no'"),
        ({"Return_Path": "<>"}, "null return path"),
        ({"Return_Path": " < > (bounce)"}, "null return path"),
        ({"List_Id": "<list.example.com>"}, "mailing list (List-Id)"),
        ({"List_Unsubscribe": "<mailto:x@example.com>"}, "mailing list (List-Unsubscribe)"),
        ({"list_post": ""}, "mailing list (List-Post)"),
        ({"list_of_my_own_words": ""}, "mailing list (List-*)"),
        ({"Precedence": "bulk"}, "Precedence is bulk"),
        ({"Precedence": " LIST "}, "Precedence is list"),
        ({"Precedence": "junk (really)"}, "Precedence is junk"),
        ({"Precedence": "auto_reply"}, "Precedence is auto_reply"),
        (
            {"Content_Type": "Multipart/Report; report-type=delivery-status; boundary=x"},
            "mail system report (multipart/report)",
        ),
        ({"Content_Type": "message/disposition-notification"}, "mail system report (message/disposition-notification)"),
        ({"X_Auto_Response_Suppress": "All"}, "X-Auto-Response-Suppress asks for no automatic reply"),
        ({"X_Auto_Response_Suppress": "DR, OOF, AutoReply"}, "X-Auto-Response-Suppress asks for no automatic reply"),
        ({"X_Autoreply": "yes"}, "written by an autoresponder (X-Autoreply)"),
        ({"X_Autorespond": ""}, "written by an autoresponder (X-Autorespond)"),
    ],
)
def test_headers_that_forbid_an_answer(headers: dict[str, str], expected: str) -> None:
    assert reason(**headers) == expected


@pytest.mark.parametrize(
    "headers",
    [
        {"Auto_Submitted": "no"},
        {"Auto_Submitted": " No (a person); x=y"},
        {"Auto_Submitted": "(a person) no"},
        {"Return_Path": "<bounces+jane=example.com@mailer.example.org>"},
        {"Precedence": "first-class"},
        {"Precedence": "special-delivery"},
        {"Content_Type": "multipart/mixed; boundary=report"},
        {"X_Auto_Response_Suppress": "DR, RN, NRN"},
        {"X_Auto_Response_Suppress": "None"},
        {"X_Autoreply": "no"},
        {"X_List_Id": "x", "Listing": "y"},
        {"Feedback_ID": "1:2:3:provider"},
    ],
)
def test_headers_that_allow_an_answer(headers: dict[str, str]) -> None:
    assert reason(**headers) is None


TAKES_NO_REPLIES = """
    no-reply noreply no_reply No.Reply noreply-123 no-reply+abc donotreply do-not-reply DO_NOT_REPLY
    notifications-noreply dont-reply noreply2 nepasrepondre ne-pas-repondre noresponder nicht-antworten nie-odpowiadaj
    shop.noreply not-reply noreplies
"""
MAIL_SYSTEMS = """
    mailer-daemon MAILER-DAEMON mailerdaemon postmaster bounce bounces bounces+jane=example.com bounce-1 listserv
    majordomo mail-delivery
"""
PEOPLE = """
    norbert.replyson@example.org noreplyson@example.org casino.reply@example.org reply@example.org replyno@example.org
    jane@noreply.example.org daemon.jones@example.org bouncer@example.org postmasters@example.org noah@example.org
    repl@example.org info@example.org arno-replyson@example.org delivery@example.org service-request@example.org
    support@example.org xsupport@example.com support.team@example.com
"""


@pytest.mark.parametrize("local", TAKES_NO_REPLIES.split())
def test_senders_that_read_no_mail(local: str) -> None:
    assert reason(f"{local}@example.org") == "sender takes no replies"


@pytest.mark.parametrize("local", MAIL_SYSTEMS.split())
def test_mail_systems(local: str) -> None:
    assert reason(f"{local}@example.org") == "sender is a mail system"


@pytest.mark.parametrize("sender", PEOPLE.split())
def test_senders_that_only_look_like_it_or_like_ours(sender: str) -> None:
    assert reason(sender) is None


@pytest.mark.parametrize(
    "sender",
    [
        "support@example.com",
        "SUPPORT@EXAMPLE.COM",
        "Support Team <support+ticket-5@example.com>",
        "warranty@example.com",
    ],
)
def test_our_own_addresses(sender: str) -> None:
    assert reason(sender) == "sent by ourselves"


def test_the_null_sender() -> None:
    assert reason("<>") == "null return path"


@pytest.mark.parametrize(
    "subject",
    [
        "Automatic reply: My drill",
        "Automatische Antwort: Bohrer",
        "Odpowiedź automatyczna: Wiertarka",
        "Réponse automatique : Perceuse",
        "Undelivered Mail Returned to Sender",
        "Delivery Status Notification (Failure)",
        "Undeliverable: Hello",
        "AUTOREPLY: x",
        "Out of Office: back on Monday",
        "Abwesenheitsnotiz",
    ],
)
def test_subjects_of_programs(subject: str) -> None:
    assert reason(subject=subject) == "subject of an automatic reply or a bounce"


@pytest.mark.parametrize(
    "subject",
    [
        "Re: Automatic reply: My drill",
        "Out of office chair warranty",
        "Automatic reply button broken",
        "Undeliverable parcel SN12345",
        "out of office",
        "",
        "My drill: failure notice",
    ],
)
def test_subjects_of_people(subject: str) -> None:
    assert reason(subject=subject) is None


def test_a_report_in_bytes() -> None:
    raw = b"From: x@example.org\nContent-Type: multipart/report; boundary=b\n\n--b\n\nfailed\n--b--\n"
    assert no_reply_reason(parse_email(raw), OWN) == "mail system report (multipart/report)"


def test_without_own_addresses() -> None:
    assert no_reply_reason(parse_email(b"From: support@example.com\n\nx"), frozenset()) is None
