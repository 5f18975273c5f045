"""How a mail is known that is moved to the folder of its mark: by its headers, whatever a sender puts into them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from exchange_imap import AS_EXCHANGE, refuse_keywords
from mail_stores import Opener, Proxied, counts, ids, refused

from guarantee_email_agent.services.mail.imap import ImapMailbox

if TYPE_CHECKING:
    from mail_servers import MailServers

PARENT = "guarantee-email-agent"


def mail(number: int = 1, message_id: bytes = b"<mail-1@example.org>") -> bytes:
    headers = b"From: customer@example.org\r\nTo: support@example.com\r\nSubject: warranty\r\nMessage-ID: "
    return headers + message_id + b"\r\n\r\nSN%d\r\n" % number


@pytest.fixture
def mailbox(proxied: Proxied) -> Iterator[ImapMailbox]:
    with proxied(rewrite=AS_EXCHANGE, answer=refuse_keywords) as (mailbox, _):
        yield mailbox


@pytest.mark.parametrize(
    "message_id",
    [
        "<ä@example.org>".encode(),
        b"<" + 70_000 * b"x" + b"@example.org>",
        b"<a(b@example.org>",
        b'<a"b\\c%*@example.org>',
        b"<a  b@example.org>",
        b"<a@example.org{10}>",
        b"{5+}",
        b"{",
        b"=?utf-8?q?=3Cabc=40example=2Eorg=3E?=",
    ],
    ids=["8 bit", "long", "bracket", "quotes", "blanks", "brace", "literal", "one brace", "encoded word"],
)
def test_any_message_id(mailbox: ImapMailbox, mail_servers: MailServers, message_id: bytes) -> None:
    mail_servers.put("INBOX", mail(message_id=message_id))
    (mail_id,) = ids(mailbox)
    mailbox.mark(mail_id, "quarantined")
    mailbox.mark(mail_id, "handed_over")
    assert mailbox.count_by_outcome() == counts(handed_over=1)
    mail_servers.move(f"{PARENT}.Handed over", "INBOX")
    assert mailbox.is_waiting(mail_id)
    mail_servers.empty()
    assert not mailbox.is_waiting(mail_id)
    with refused("mail_not_found"):
        mailbox.mark(mail_id, "answered")


@pytest.mark.parametrize("message_id", ["<a(b@example.org>", "<{5+}@example.org>", "{5+}", "<a b@example.org>"])
def test_a_mail_is_found_by_any_message_id(open_mailbox: Opener, mail_servers: MailServers, message_id: str) -> None:
    mail_servers.put("INBOX", mail(message_id=message_id.encode()))
    mailbox = open_mailbox()
    assert mailbox.find_mail(message_id) == ids(mailbox)[0]


def test_copies_of_one_mail_are_one_and_move_together(mailbox: ImapMailbox, mail_servers: MailServers) -> None:
    for _ in range(2):
        mail_servers.put("INBOX", mail())
    (mail_id,) = ids(mailbox)
    mailbox.mark(mail_id, "answered")
    assert ids(mailbox) == []
    assert mailbox.count_by_outcome() == counts(answered=2)


def test_copies_take_no_room_in_a_list(open_mailbox: Opener, mail_servers: MailServers) -> None:
    """Nor does one that is cut at a limit leave out what came before its end."""
    mail_servers.deliver_many([raw for number in range(40) for raw in [mail(number, b"<%d@x>" % number)] * 3])
    mailbox = open_mailbox(marks="folders")
    all_mails = [entry.id for entry in mailbox.list_unprocessed(1000).entries]
    assert len(all_mails) == 40
    assert [entry.id for entry in mailbox.list_unprocessed(15).entries] == all_mails[:15]


def test_mails_that_a_sender_made_alike_are_two(mailbox: ImapMailbox, mail_servers: MailServers) -> None:
    """Some form mailers use one Message-ID and one date for every mail."""
    mail_servers.deliver(mail(1), mail(2))
    first, second = ids(mailbox)
    mailbox.mark(first, "answered")
    assert ids(mailbox) == [second]
    mail_servers.put("INBOX", mail(3))
    mail_servers.put("INBOX", mail(4))
    assert len(ids(mailbox)) == 3
