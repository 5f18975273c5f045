import dataclasses
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from imapclient import IMAPClient
from imapclient.exceptions import IMAPClientError
from mail_servers import MailServers
from mail_stores import REPLY, Opener, Proxied, ids, message_ids, refused
from waiting import wait_until

from guarantee_email_agent.services.mail.imap import ImapMailbox
from guarantee_email_agent.services.mail.special_folder import SentFolder, find_copies, find_own_copies

SECOND = dataclasses.replace(REPLY, message_id="<reply-2@example.com>")
RAW = b"From: customer@example.org\r\nSubject: warranty\r\n\r\nSN12345\r\n"


def test_a_draft_that_a_person_sent_is_found_and_not_stored_again(
    mailbox: ImapMailbox, mail_servers: MailServers
) -> None:
    mailbox.save_draft(REPLY)
    (draft,) = mail_servers.folder("Drafts")
    mail_servers.empty()
    mail_servers.put("Sent", draft)
    assert mailbox.find_draft(REPLY.message_id) == "saved"
    assert mailbox.save_draft(REPLY) == "already_saved"
    assert mail_servers.folder("Drafts") == []


def test_a_folder_that_is_named_is_made(open_mailbox: Opener, mail_servers: MailServers) -> None:
    open_mailbox(drafts_folder="Entw&APw-rfe der Technik").save_draft(REPLY)
    open_mailbox(drafts_folder="Replies to send").save_draft(REPLY)
    try:
        assert message_ids(mail_servers.folder("Replies to send")) == [REPLY.message_id]
        assert mail_servers.folder("Drafts") == []
    finally:
        mail_servers.remove_folder("Replies to send")
        mail_servers.remove_folder("Entw&-APw-rfe der Technik")


@pytest.mark.parametrize(
    ("rewrite", "folder"),
    [
        ({rb"\Junk": rb"\Drafts"}, "Junk"),
        ({b'NAMESPACE (("" "."))': b"NAMESPACE NIL"}, "Drafts"),
        ({b'NAMESPACE (("" ".")': b'NAMESPACE (("" "." "X-PARAM" ("FLAG1" "FLAG2"))'}, "Drafts"),
        ({b"* SEARCH ": b"* SEARCH 77\r\n* SEARCH "}, "Drafts"),
    ],
)
def test_the_folder_that_the_server_names_is_used_whatever_it_is_called(
    proxied: Proxied, mail_servers: MailServers, rewrite: dict[bytes, bytes], folder: str
) -> None:
    with proxied(rewrite={rb"\Drafts": rb"\Former"} | rewrite) as (mailbox, _):
        mailbox.save_draft(REPLY)
        assert mailbox.find_draft(REPLY.message_id) == "saved"
    assert message_ids(mail_servers.folder(folder)) == [REPLY.message_id]


@pytest.fixture
def take_away(mail_servers: MailServers, request: pytest.FixtureRequest) -> Iterator[Callable[[], None]]:
    """Removes the folder Replies, or renames it, as a person does."""

    def work() -> None:
        if request.param == "removed":
            mail_servers.remove_folder("Replies")
        else:
            mail_servers.rename_folder("Replies", "Old replies")

    yield work
    for name in ("Replies", "Old replies"):
        mail_servers.remove_folder(name)


@pytest.mark.parametrize("take_away", ["removed", "renamed"], indirect=True)
def test_copies_are_filed_though_their_folder_was_taken_away(
    open_mailbox: Opener, mail_servers: MailServers, take_away: Callable[[], None]
) -> None:
    mailbox = open_mailbox(sent_folder="Replies")
    mailbox.send(REPLY)
    mail_servers.wait_until_sent()
    assert ids(mailbox) == []
    mailbox.send(SECOND)
    mail_servers.wait_until_sent()
    take_away()
    mail_servers.deliver(RAW)
    assert len(ids(mailbox)) == 1
    assert message_ids(mail_servers.folder("Replies")) == [SECOND.message_id]
    assert [mailbox.find_sent("<another@example.com>") for _ in range(2)] == ["not_sent"] * 2
    assert len(mail_servers.sent_to_customers()) == 2


@pytest.mark.parametrize(
    ("rewrite", "code", "told"),
    [
        ({b"[READ-WRITE]": b"[READ-ONLY]"}, "mail_unsupported", "may only be read"),
        ({b"OK [APPENDUID": b"NO [NOPERM] Permission denied [APPENDUID"}, "mail_unsupported", "took no draft: "),
        ({b"OK [APPENDUID": b"NO [LIMIT] Slower [APPENDUID"}, "mail_unavailable", "[LIMIT] Slower"),
    ],
)
def test_a_folder_that_takes_no_drafts_is_told_and_the_mail_waits(
    proxied: Proxied, mail_servers: MailServers, rewrite: dict[bytes, bytes], code: str, told: str
) -> None:
    with proxied(rewrite=rewrite) as (mailbox, _), refused(code) as caught:
        mailbox._drafts.test()  # the inbox is not to be read-only, too
        mailbox.save_draft(REPLY)
    assert told in caught.value.message
    is_lasting = caught.value.message.endswith("Allow its user to, or name another with mailbox.imap.drafts_folder")
    assert (is_lasting, caught.value.retryable, caught.value.uncertain) == (told[0] != "[", not is_lasting, False)
    mail_servers.wait_until_sent()
    assert mail_servers.sent_to_customers() == []


def test_a_folder_that_cannot_be_made_is_told(open_mailbox: Opener, mail_servers: MailServers) -> None:
    mail_servers.deliver(RAW)
    mailbox = open_mailbox(drafts_folder="no//such//name")
    for work in (lambda: mailbox.save_draft(REPLY), lambda: mailbox.test_connection(drafts=True)):
        with refused("mail_folder_missing") as caught:
            work()
        assert "no//such//name" in caught.value.message
        assert caught.value.message.endswith("Make it, or name another with mailbox.imap.drafts_folder")
    assert len(ids(mailbox)) == 1
    assert mailbox.test_connection()


def test_a_draft_whose_confirmation_is_lost_is_uncertain_and_found_later(
    proxied: Proxied, mail_servers: MailServers
) -> None:
    told: list[bytes] = []

    def cut_after_the_draft(data: bytes) -> bool:
        told.append(data)
        return not b"".join(told).endswith(b"It is valid.\r\n\r\n")

    with proxied(cut_after_the_draft) as (mailbox, _):
        with refused("mail_unavailable") as caught:
            mailbox.save_draft(REPLY)
        assert caught.value.uncertain
        wait_until(lambda: mailbox.find_draft(REPLY.message_id) == "saved", 30, mail_servers.log)
        assert mailbox.save_draft(REPLY) == "already_saved"
    assert len(mail_servers.folder("Drafts")) == 1


def test_a_server_that_is_away_makes_nothing_uncertain(proxied: Proxied) -> None:
    with proxied() as (mailbox, _):
        pass
    with refused("mail_unavailable") as caught:
        mailbox.save_draft(REPLY)
    assert (caught.value.retryable, caught.value.uncertain) == (True, False)


HEADER = b"BODY[HEADER.FIELDS (FROM TO MESSAGE-ID X-SENT-PROOF)]"


class MovedMeanwhile:
    """A server's answers about a mail that another session moved after it was found: RFC 3501 has NIL for such a part.

    A stand-in, since no server can be made to answer so at a chosen moment.
    """

    def __init__(self, parts: dict[bytes, Any]) -> None:
        self._parts = parts

    def search(self, criteria: Sequence[object]) -> list[int]:
        return [7] if b"HEADER" in criteria or b"FROM" in criteria else []

    def noop(self) -> None:
        """From now on, searches no longer find it."""

    def fetch(self, uids: Sequence[int], data: Sequence[bytes]) -> dict[int, dict[bytes, Any]]:
        return dict.fromkeys(uids, self._parts)


@pytest.mark.parametrize("parts", [{HEADER: None, b"BODY[TEXT]<0>": None}, {b"FLAGS": ()}, {}])
def test_a_mail_that_another_session_moved_is_no_copy(parts: dict[bytes, Any]) -> None:
    client = cast("IMAPClient", MovedMeanwhile(parts))
    assert find_copies(client, "<reply-1@example.com>") == []
    assert find_own_copies(client, [7], "support@example.com", b"key") == {}


def test_a_folder_that_no_client_can_name_may_hold_the_copy(proxied: Proxied, mail_servers: MailServers) -> None:
    with mail_servers.folder_of_its_own("Odd"), proxied(rewrite={b'"." Odd': b'"." R&D'}) as (mailbox, _):
        assert mailbox.test_connection()
        assert mailbox.find_sent(REPLY.message_id, everywhere=True) == "unknown"


def test_a_folder_that_opens_later_may_hold_the_copy() -> None:
    def select_folder(name: str, *, readonly: bool) -> None:
        raise IMAPClientError(name)

    client = cast("IMAPClient", SimpleNamespace(select_folder=select_folder))
    assert SentFolder._can_select(client, "No such folder, or not yours") is False
    assert SentFolder._can_select(client, "[CORRUPTION] its index") is None
    with pytest.raises(IMAPClientError):
        SentFolder._can_select(client, "[UNAVAILABLE] try later")
