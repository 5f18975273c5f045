"""Mails that a program must not answer, and those that only look like them."""

from __future__ import annotations

import pytest

from guarantee_email_agent.email.no_reply import no_reply_reason
from guarantee_email_agent.email.parsing.parse import parse_email

OWN = frozenset({"Support@Example.com", "warranty+box@example.com"})


FORMS = frozenset({"noreply@shop.example"})


def reason(
    sender: str = "jane@example.com",
    subject: str = "My drill",
    body: str = "x",
    forms: frozenset[str] = frozenset(),
    **headers: str,
) -> str | None:
    raw = {"from": sender, "subject": subject, "body": body, "received": "", "message_id": "1"}
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return no_reply_reason(parse_email(raw | {"headers": names}), OWN, forms)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"Auto_Submitted": "auto-replied"}, "Auto-Submitted is not 'no'"),
        ({"Auto_Submitted": "auto-generated; owner-email=x@example.com"}, "Auto-Submitted is not 'no'"),
        ({"AUTO_SUBMITTED": "(comment (nested)) AUTO-REPLIED (vacation)"}, "Auto-Submitted is not 'no'"),
        ({"Auto_Submitted": ""}, "Auto-Submitted is not 'no'"),
        ({"Return_Path": "<>"}, "null return path"),
        ({"List_Id": "<list.example.com>"}, "mailing list (List-Id)"),
        ({"List_Unsubscribe": "<mailto:x@example.com>"}, "mailing list (List-Unsubscribe)"),
        ({"list_of_my_own_words": ""}, "mailing list (List-*)"),
        ({"Precedence": "bulk"}, "Precedence is bulk"),
        ({"Precedence": " LIST "}, "Precedence is list"),
        ({"Precedence": "auto_reply"}, "Precedence is auto_reply"),
        (
            {"Content_Type": "Multipart/Report; report-type=delivery-status; boundary=x"},
            "mail system report (multipart/report)",
        ),
        ({"Content_Type": "message/disposition-notification"}, "mail system report (message/disposition-notification)"),
        ({"X_Auto_Response_Suppress": "All"}, "X-Auto-Response-Suppress asks for no automatic reply"),
        ({"X_Autoreply": "yes"}, "written by an autoresponder (X-Autoreply)"),
        ({"X_FC_MachineGenerated": "true"}, "written by an autoresponder (X-Fc-Machinegenerated)"),
        ({"Delivered_To": "Autoresponder"}, "written by an autoresponder (Delivered-To)"),
        ({"X_Failed_Recipients": "x@example.org"}, "written by an autoresponder (X-Failed-Recipients)"),
        ({"X_OTRS_Loop": "yes"}, "written by a ticket system (X-Otrs-Loop)"),
        ({"X_JIRA_FingerPrint": "0a1b"}, "written by a ticket system (X-Jira-Fingerprint)"),
        ({"X_Loop": "SUPPORT@example.com"}, "our own mail came back (X-Loop)"),
    ],
)
def test_headers_that_forbid_an_answer(headers: dict[str, str], expected: str) -> None:
    assert reason(**headers) == expected


@pytest.mark.parametrize(
    "headers",
    [
        {"Auto_Submitted": "no"},
        {"Auto_Submitted": " No (a person); x=y"},
        {"Return_Path": "<bounces+jane=example.com@mailer.example.org>"},
        {"Precedence": "first-class"},
        {"Content_Type": "multipart/mixed; boundary=report"},
        {"X_Auto_Response_Suppress": "DR, RN, NRN"},
        {"X_Autoreply": "no"},
        {"X_List_Id": "x", "Listing": "y"},
        {"X_FC_MachineGenerated": "false"},
        {"Delivered_To": "support@example.com"},
        {"X_OTRS_Loop": "no"},
        {"X_Loop": "jane@example.net"},
        {"X_Zendesk_From_Account_Id": "1"},
    ],
)
def test_headers_that_allow_an_answer(headers: dict[str, str]) -> None:
    assert reason(**headers) is None


TAKES_NO_REPLIES = """
    no-reply noreply no_reply No.Reply noreply-123 no-reply+abc donotreply do-not-reply DO_NOT_REPLY
    notifications-noreply dont-reply noreply2 nepasrepondre ne-pas-repondre noresponder nicht-antworten nie-odpowiadaj
    shop.noreply not-reply noreplies helpdesk-noreply noresponse no-answer donotrespond unattended ikke-svar
    nao-responda neodpovidat notification notifications notify jira-notifications shop.notifications notifications+abc
    notifications2 notification-service notificaciones benachrichtigung powiadomienia alert alerts newsletter automailer
    auto-mailer autoreply auto-responder autoconfirm auto-notify autosender mailbot mail-robot desk.autoreply
"""
MAIL_SYSTEMS = """
    mailer-daemon MAILER-DAEMON mailerdaemon postmaster bounce bounces bounces+jane=example.com bounce-1 listserv
    majordomo mail-delivery
"""
PEOPLE = """
    norbert.replyson@example.org noreplyson@example.org casino.reply@example.org reply@example.org replyno@example.org
    jane@noreply.example.org daemon.jones@example.org bouncer@example.org postmasters@example.org noah@example.org
    notification.smith@example.org alertsmith@example.org auto@example.org automobile@example.org otto.auto@example.org
    robot@example.org support@example.org helpdesk@example.org service@example.org ticket@example.org answer@example.org
    newsletterfan@example.org jane@notifications.example.org alerto@example.org antonia.svarova@example.org
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


def test_a_quoted_text_of_a_ticket_system_says_nothing() -> None:
    text = "It still leaks.\n\nOn 3 May 2026, Desk wrote:\n> This is an automated message.\n> Please do not reply."
    assert reason(body=text, subject="Re: Your request has been received") is None


FORM_HEADERS = {
    "Reply_To": "Jane <jane@example.org>",
    "Auto_Submitted": "auto-generated",
    "Precedence": "bulk",
    "X_Auto_Response_Suppress": "All",
}
FORM_TEXT = "This message was generated automatically.\n\nMy drill is broken."


def test_a_trusted_form_speaks_for_who_filled_it_in() -> None:
    assert reason("noreply@shop.example", "Message received", FORM_TEXT, FORMS, **FORM_HEADERS) is None


@pytest.mark.parametrize("sender", ["noreply@other.example", "support@example.com"])
@pytest.mark.parametrize("reply_to", ["warranty@example.com", "no-reply@other.example, support@example.com"])
def test_a_form_that_names_machines_and_us_alone_is_a_machine(sender: str, reply_to: str) -> None:
    assert reason(sender, Reply_To=reply_to) == reason(sender) is not None


@pytest.mark.parametrize(
    "headers",
    [
        {"Return_Path": "<>"},
        {"Auto_Submitted": "auto-replied"},
        {"List_Id": "<list.example.com>"},
        {"Precedence": "list"},
        {"Content_Type": "multipart/report; boundary=x"},
        {"X_Autoreply": "yes"},
        {"X_Loop": "support@example.com"},
    ],
)
def test_a_trusted_form_sends_no_bounces_lists_or_automatic_replies(headers: dict[str, str]) -> None:
    assert reason("noreply@shop.example", forms=FORMS, **(FORM_HEADERS | headers)) is not None
