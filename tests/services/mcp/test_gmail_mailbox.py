"""The mail client with a server of the Gmail kind: our calls fit its schema, and its prose is read right."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from mcp_sessions import Servers, failure

from guarantee_email_agent.email.parsing.parse import parse_email
from guarantee_email_agent.services.mail_client import MailClient
from guarantee_email_agent.services.mcp.gmail_mailbox import GMAIL_CALLS, LABELS, MAX_LISTED
from guarantee_email_agent.services.ports import InboxFilter, Reply
from guarantee_email_agent.utils.errors import MCPConnectionError

FACTS = json.loads(Path(__file__).with_name("gmail_facts.json").read_text())
pytestmark = pytest.mark.anyio


class Gmail:
    """A mailbox; `calls` are those that reached it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.receive()

    def receive(self, *bodies: str, **fields: object) -> None:
        """Mails with the ids aaa0, aaa1 …, of which the last is the newest and comes first."""
        mails = [
            {
                "id": f"aaa{number}",
                "thread": f"bbb{number}",
                "subject": "Warranty of SN-100",
                "from": "Customer <customer@example.com>",
                "date": "Wed, 31 Mar 2027 10:00:00 +0000",
                "body": body,
                "received": 1_800_000_000 + number,
                **fields,
            }
            for number, body in enumerate(bodies)
        ]
        (self.folder / "mails.json").write_text(json.dumps(mails[::-1]))

    def fail(self, answer: str) -> None:
        (self.folder / "failure").write_text(answer)

    @property
    def calls(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / "calls.jsonl").read_text().splitlines()]


@pytest.fixture
def gmail(tmp_path: Path) -> Gmail:
    return Gmail(tmp_path)


@pytest.fixture
async def mail(servers: Servers, gmail: Gmail) -> AsyncIterator[MailClient]:
    """A client of this mailbox; every call has to fit the package's schema."""
    yield servers.mail_client(servers.session(servers.launch(str(gmail.folder), script="gmail_server.py"), "mail"))
    assert [call for call in gmail.calls if call["wrong"]] == []


def test_what_we_call_is_what_the_package_publishes() -> None:
    for tool, arguments in GMAIL_CALLS.items():
        schema = FACTS["tools"][tool]
        assert arguments <= set(schema["properties"])
        assert set(schema["required"]) <= arguments


async def test_mails_without_a_label_of_ours_are_listed_oldest_first(gmail: Gmail, mail: MailClient) -> None:
    gmail.receive("first", "second", "third")
    assert [entry.id for entry in await mail.list_unprocessed()] == ["aaa0", "aaa1", "aaa2"]
    await mail.mark("aaa1", "answered")
    await mail.mark("aaa2", "not_answered")
    assert [entry.id for entry in await mail.list_unprocessed()] == ["aaa0"]
    counts = dict.fromkeys(("unprocessed", "left_alone", *LABELS), 0) | {
        "unprocessed": 1,
        "answered": 1,
        "not_answered": 1,
    }
    assert await mail.count_by_outcome() == counts
    await mail.list_unprocessed(1000)
    assert {call["given"]["maxResults"] for call in gmail.calls if call["tool"] == "search_emails"} == {MAX_LISTED}


async def test_mails_from_before_and_starred_ones_are_left_alone(gmail: Gmail, mail: MailClient) -> None:
    gmail.receive("first", "second", "third")
    since = InboxFilter(1_800_000_001.5)
    assert [entry.id for entry in await mail.list_unprocessed(100, since)] == ["aaa1", "aaa2"]
    counted = await mail.count_by_outcome(since)
    assert (counted["unprocessed"], counted["too_old"], counted["left_alone"]) == (2, 1, 0)
    gmail.receive("first", starred=True)
    assert await mail.list_unprocessed() == []
    assert (await mail.count_by_outcome(since))["left_alone"] == 1


async def test_read_mails_are_left_alone_by_choice(gmail: Gmail, mail: MailClient) -> None:
    gmail.receive("first", read=True)
    unread = InboxFilter(skip_seen=True)
    assert await mail.list_unprocessed(100, unread) == []
    assert (await mail.count_by_outcome(unread))["left_alone"] == 1
    assert [entry.id for entry in await mail.list_unprocessed()] == ["aaa0"]


async def test_drafts_are_refused(gmail: Gmail, mail: MailClient) -> None:
    with pytest.raises(MCPConnectionError, match="writes drafts without our headers"):
        await mail.test_connection(drafts=True)
    with pytest.raises(MCPConnectionError, match="writes drafts without our headers"):
        await mail.save_draft(Reply("a@example.com", "x", "text", "<r@example.com>"))
    assert await mail.test_connection()
    assert {call["tool"] for call in gmail.calls} == {"search_emails"}


async def test_nobody_can_tell_whether_a_mail_was_answered_meanwhile(gmail: Gmail, mail: MailClient) -> None:
    gmail.receive("first", starred=True)
    assert await mail.is_waiting("aaa0")
    assert await mail.find_draft("<r@example.com>") == "unknown"
    await mail.list_unprocessed()


def test_labels_have_names_that_gmails_search_finds() -> None:
    outcomes = ("answered", "drafted", "handed-over", "not-answered", "quarantined", "unknown")
    assert sorted(LABELS.values()) == [f"warranty-agent-{outcome}" for outcome in outcomes]


async def test_a_mail_is_made_whole_again_as_far_as_the_server_gives_it(gmail: Gmail, mail: MailClient) -> None:
    gmail.receive("Grüße,\nis SN-100 covered?\n", subject="Zażółć", **{"from": "Jörg <joerg@example.com>"})
    raw = await mail.read_raw("aaa0", 100_000)
    email = parse_email(raw)
    assert email.sender == "joerg@example.com"
    assert email.subject == "Zażółć"
    assert email.message_id == "<aaa0.bbb0@gmail-mcp-server.invalid>"
    assert "Grüße,\nis SN-100 covered?" in email.new_text
    assert raw == await mail.read_raw("aaa0", 100_000)


async def test_attachments_are_separated_from_the_text(gmail: Gmail, mail: MailClient) -> None:
    gmail.receive(
        "See the photo.\n\nAttachments (2):\n- label (1).jpg (image/jpeg, 120 KB, ID: ANGjdJ8wzQ1234567)\n"
        "- invoice.pdf (application/pdf, 3 KB, ID: SN98765)"
    )
    raw = await mail.read_raw("aaa0", 100_000)
    assert b"ANGjdJ8wzQ1234567" not in raw
    email = parse_email(raw)
    assert email.new_text == "See the photo."
    assert email.attachments == ("label (1).jpg", "invoice.pdf")


@pytest.mark.parametrize(
    "body",
    [
        "I quote:\n\nAttachments (2):\n- one only (image/png, 1 KB, ID: x)",
        "I quote:\n\nAttachments (1):\n- nothing like it",
        "Attachments (1):\n- a (image/png, 1 KB, ID: x)",
    ],
)
async def test_what_only_looks_like_attachments_is_text(body: str, gmail: Gmail, mail: MailClient) -> None:
    gmail.receive(body)
    email = parse_email(await mail.read_raw("aaa0", 100_000))
    assert "".join(span.text for span in email.spans).strip() == body
    assert email.attachments == ()


async def test_html_is_read_as_html(gmail: Gmail, mail: MailClient) -> None:
    note = "[Note: This email is HTML-formatted. Plain text version not available.]\n\n"
    gmail.receive(f"{note}<p>Is <b>SN-100</b> covered?</p>")
    assert parse_email(await mail.read_raw("aaa0", 100_000)).new_text == "Is SN-100 covered?"


async def test_a_reply_goes_into_its_thread_and_bears_no_made_up_id(gmail: Gmail, mail: MailClient) -> None:
    reply = Reply(
        "customer@example.com",
        "Re: Warranty",
        "It is covered.",
        "<reply-1@example.com>",
        in_reply_to="<aaa0.bbb0@gmail-mcp-server.invalid>",
        references="<aaa0.bbb0@gmail-mcp-server.invalid>",
        headers={"Auto-Submitted": "auto-replied"},
    )
    assert await mail.send(reply) == {"message_id": "18ffe00000000001", "status": "sent"}
    assert await mail.find_sent("<reply-1@example.com>", wait_s=60) == "unknown"
    assert [call["given"] for call in gmail.calls] == [
        {"to": ["customer@example.com"], "subject": "Re: Warranty", "body": "It is covered.", "threadId": "bbb0"}
    ]


@pytest.mark.parametrize(
    ("to", "subject"), [("a@example.com", "x\r\nBcc: b@example.com"), ("a@example.com\nb@example.com", "x")]
)
async def test_no_header_is_smuggled_in(to: str, subject: str, gmail: Gmail, mail: MailClient) -> None:
    error = await failure(mail.send(Reply(to, subject, "text", "<r@example.com>")))
    assert error.code == "mail_invalid_argument"
    await mail.list_unprocessed()
    assert {call["tool"] for call in gmail.calls} == {"search_emails"}


@pytest.mark.parametrize(
    ("answer", "code", "uncertain"),
    [
        ("Error: invalid_grant", "mail_auth", False),
        ("Error: Recipient email address is invalid: x", "mail_rejected", False),
        ("Error: Backend Error", "mail_failed", True),
    ],
)
async def test_an_answer_that_reports_an_error_is_an_error(
    answer: str, code: str, uncertain: bool, gmail: Gmail, mail: MailClient
) -> None:
    gmail.fail(answer)
    error = await failure(mail.send(Reply("a@example.com", "x", "text", "<r@example.com>")))
    assert (error.code, error.retryable) == (code, False)
    assert error.uncertain is uncertain
    assert answer.removeprefix("Error: ") not in error.message


@pytest.mark.parametrize(("mail_id", "code"), [("aaa7", "mail_not_found"), ("aaa0", "mail_too_large")])
async def test_a_mail_that_is_gone_or_too_large_is_an_error_of_that_mail(
    mail_id: str, code: str, gmail: Gmail, mail: MailClient
) -> None:
    gmail.receive("x" * 1000)
    assert (await failure(mail.read_raw(mail_id, 999))).code == code


@pytest.mark.parametrize("answer", ["Hello!", "ID: \nSubject: \nFrom: \nDate: \n"])
async def test_an_answer_of_another_form_is_malformed(answer: str, gmail: Gmail, mail: MailClient) -> None:
    gmail.fail(answer)
    for call in (mail.list_unprocessed(), mail.read_raw("aaa0", 100), mail.mark("aaa0", "answered")):
        assert (await failure(call)).code == "mail_malformed"


async def test_waiting_takes_its_time_and_reports_a_change(gmail: Gmail, mail: MailClient) -> None:
    await mail.list_unprocessed()
    assert await mail.wait_for_mail(3600) is True


async def test_a_server_of_neither_kind_is_refused(servers: Servers) -> None:
    mail = servers.mail_client(servers.session(name="mail"))
    with pytest.raises(MCPConnectionError) as caught:
        await mail.test_connection()
    assert caught.value.message.startswith(
        "mail: the server does not offer list_unprocessed, read_raw, tally, wait_for_mail, send_reply, find_sent, mark;"
    )
