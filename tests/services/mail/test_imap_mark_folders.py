"""Marks as folders, on a Dovecot that behaves as Exchange: system flags alone, and keywords refused."""

import dataclasses
import email
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from exchange_imap import AS_EXCHANGE, refuse_keywords
from mail_servers import MailServers
from mail_stores import REPLY, Opener, Proxied, counts, ids, refused

from guarantee_email_agent.services.mail.imap import ImapMailbox
from guarantee_email_agent.services.mail.mail_store import KEYWORDS
from guarantee_email_agent.services.ports import MarkedMail

PARENT = "guarantee-email-agent"
NO_MOVE = {**AS_EXCHANGE, b" MOVE": b""}


def mail(number: int = 1, message_id: bytes = b"") -> bytes:
    headers = b"From: customer@example.org\r\nTo: support@example.com\r\nSubject: warranty\r\nMessage-ID: "
    return headers + (message_id or b"<mail-%d@example.org>" % number) + b"\r\n\r\nSN%d\r\n" % number


def numbers(raws: list[bytes]) -> list[int]:
    return [int(str(email.message_from_bytes(raw)["Message-ID"]).partition("@")[0][6:]) for raw in raws]


@pytest.fixture
def mailbox(proxied: Proxied) -> Iterator[ImapMailbox]:
    with proxied(rewrite=AS_EXCHANGE, answer=refuse_keywords) as (mailbox, _):
        yield mailbox


@pytest.mark.parametrize("outcome", KEYWORDS)
def test_a_marked_mail_is_in_the_folder_of_its_outcome(
    proxied: Proxied, mail_servers: MailServers, outcome: Any
) -> None:
    mail_servers.deliver(mail())
    with proxied(rewrite=AS_EXCHANGE, answer=refuse_keywords) as (mailbox, _):
        mailbox.mark(ids(mailbox)[0], outcome)
        assert (ids(mailbox), mailbox.count_by_outcome()) == ([], counts(**{outcome: 1}))
    assert mail_servers.folder() == []
    name = f"{PARENT}.{outcome.replace('_', ' ').capitalize()}"
    assert numbers(mail_servers.folder(name)) == [1]
    assert mail_servers.keywords(name)[0] <= {"\\Recent"}


def test_a_mail_that_a_person_puts_back_is_listed_under_its_old_id(
    mailbox: ImapMailbox, mail_servers: MailServers
) -> None:
    mail_servers.deliver(mail(1), mail(2))
    first, second = ids(mailbox)
    mailbox.mark(first, "handed_over")
    assert (ids(mailbox), mailbox.is_waiting(first)) == ([second], False)
    mail_servers.move(f"{PARENT}.Handed over", "INBOX")
    assert (sorted(ids(mailbox)), mailbox.is_waiting(first)) == (sorted([first, second]), True)
    assert numbers([mailbox.read_raw(first, 10_000)]) == [1]
    mailbox.mark(first, "answered")
    assert mailbox.count_by_outcome() == counts(answered=1, unprocessed=1)
    assert numbers(mail_servers.folder(f"{PARENT}.Answered")) == [1]


def test_another_process_knows_a_moved_mail_by_the_same_id(
    mailbox: ImapMailbox, open_mailbox: Opener, mail_servers: MailServers
) -> None:
    mail_servers.deliver(mail(1), mail(2))
    first, second = ids(mailbox)
    mailbox.mark(first, "quarantined")
    other = open_mailbox(server=mailbox._settings.server)
    assert set(other.list_mails()) == {MarkedMail(first, "quarantined"), MarkedMail(second, None)}
    assert numbers([other.read_raw(first, 10_000)]) == [1]
    with refused("mail_too_large"):
        other.read_raw(first, 10)
    assert other.find_mail("<mail-1@example.org>") == first
    other.mark(first, "handed_over")
    assert other.count_by_outcome() == counts(handed_over=1, unprocessed=1)
    other.unmark(first)
    assert sorted(ids(mailbox)) == sorted([first, second])
    assert mailbox.count_by_outcome() == counts(unprocessed=2)


def test_a_mark_that_is_set_again_moves_nothing(
    mailbox: ImapMailbox, open_mailbox: Opener, mail_servers: MailServers
) -> None:
    """As after a lost answer, and by another agent."""
    mail_servers.deliver(mail())
    (mail_id,) = ids(mailbox)
    for store in (mailbox, mailbox, open_mailbox(server=mailbox._settings.server)):
        store.mark(mail_id, "answered")
        assert mailbox.count_by_outcome() == counts(answered=1)


def test_two_agents_mark_the_same_mails_at_once(
    mailbox: ImapMailbox, open_mailbox: Opener, mail_servers: MailServers
) -> None:
    """Where both move one at the same moment, Dovecot may make two copies of it."""
    mail_servers.deliver(*map(mail, range(20)))
    other = open_mailbox(server=mailbox._settings.server)
    listed = ids(mailbox)
    assert ids(other) == listed

    def mark(store: ImapMailbox) -> None:
        for mail_id in listed:
            store.mark(mail_id, "answered")

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(mark, [mailbox, other]))
    assert ids(mailbox) == []
    assert set(numbers(mail_servers.folder(f"{PARENT}.Answered"))) == set(range(20))


def test_a_mail_that_people_took_elsewhere_waits_again_once_it_is_back(
    mailbox: ImapMailbox, mail_servers: MailServers
) -> None:
    mail_servers.deliver(mail())
    (mail_id,) = ids(mailbox)
    with mail_servers.folder_of_its_own("Archive"):
        mail_servers.move("INBOX", "Archive")
        assert not mailbox.is_waiting(mail_id)
        mail_servers.move("Archive", "INBOX")
        assert ids(mailbox) == [mail_id]


def test_a_folder_that_people_removed_is_made_anew(mailbox: ImapMailbox, mail_servers: MailServers) -> None:
    mail_servers.deliver(mail(1), mail(2))
    first, second = ids(mailbox)
    mailbox.mark(first, "answered")
    mail_servers.remove_folder(f"{PARENT}.Answered")
    assert mailbox.count_by_outcome() == counts(unprocessed=1)
    mailbox.mark(second, "answered")
    assert numbers(mail_servers.folder(f"{PARENT}.Answered")) == [2]


def test_a_server_that_cannot_move_mails_is_refused(proxied: Proxied) -> None:
    with proxied(rewrite=NO_MOVE, answer=refuse_keywords) as (mailbox, _), refused("mail_unsupported") as caught:
        mailbox.test_connection()
    assert "cannot move mails" in caught.value.message


@pytest.mark.parametrize(
    ("response", "code"),
    [
        (b"NO [OVERQUOTA] Quota exceeded\r\n", "mail_disk_full"),
        (b"NO [NOPERM] Permission denied\r\n", "mail_unavailable"),
    ],
)
def test_a_mail_that_cannot_be_moved_stays_in_the_inbox(
    proxied: Proxied, mail_servers: MailServers, response: bytes, code: str
) -> None:
    def answer(data: bytes) -> bytes | None:
        return data.split()[0] + b" " + response if b"UID MOVE" in data else None

    mail_servers.deliver(mail())
    with proxied(rewrite=AS_EXCHANGE, answer=answer) as (mailbox, _):
        (mail_id,) = ids(mailbox)
        with refused(code) as caught:
            mailbox.mark(mail_id, "answered")
        assert caught.value.retryable
        assert ids(mailbox) == [mail_id]


def test_the_connection_test_makes_the_folders_and_names_them(proxied: Proxied, mail_servers: MailServers) -> None:
    with proxied(rewrite=AS_EXCHANGE, answer=refuse_keywords) as (mailbox, _):
        assert mailbox.test_connection().endswith(f", marks in folders below {PARENT}")
    assert sum(name.startswith(f"{PARENT}.") for name in mail_servers.folders()) == len(KEYWORDS)


@pytest.mark.parametrize(
    ("namespace", "prefix"),
    [(None, ""), (b'* NAMESPACE (("INBOX." ".")) NIL NIL\r\n', "INBOX.")],
    ids=["above", "below"],
)
def test_folders_that_cannot_be_made_are_told_by_their_place(
    proxied: Proxied, namespace: bytes | None, prefix: str
) -> None:
    """Some servers, as Cyrus and Courier, keep folders below the inbox (RFC 2342)."""

    def answer(data: bytes) -> bytes | None:
        if namespace and b"NAMESPACE" in data:
            return namespace + data.split()[0] + b" OK done\r\n"
        return data.split()[0] + b" NO [NOPERM] Permission denied\r\n" if b"CREATE" in data else None

    with proxied(rewrite=AS_EXCHANGE, answer=answer) as (mailbox, _), refused("mail_folder_missing") as caught:
        mailbox.test_connection()
    assert f"there is no folder {prefix}{PARENT}.Answered to put mails into" in caught.value.message
    assert caught.value.message.endswith("or name another parent with mailbox.imap.mark_folder")


def test_a_folder_that_is_but_the_name_above_another_is_made_anew(proxied: Proxied, mail_servers: MailServers) -> None:
    mail_servers.deliver(mail(1), mail(2))
    with proxied(rewrite=AS_EXCHANGE, answer=refuse_keywords) as (mailbox, _):
        first, second = ids(mailbox)
        mailbox.mark(first, "answered")
        with mail_servers.folder_of_its_own(f"{PARENT}.Answered.2025"):
            mail_servers.remove_folder(f"{PARENT}.Answered")
            mailbox.mark(second, "answered")
            assert numbers(mail_servers.folder(f"{PARENT}.Answered")) == [2]


def test_the_inbox_is_no_folder_for_marks(open_mailbox: Opener) -> None:
    open_mailbox(marks="folders").test_connection()
    mailbox = open_mailbox(marks="folders", folder=f"{PARENT}.Handed over")
    with refused("mail_folder_missing") as caught:
        mailbox.test_connection()
    assert "which is the inbox itself. Name another parent" in caught.value.message


def test_a_mark_that_came_off_although_the_answer_was_lost_is_off(proxied: Proxied, mail_servers: MailServers) -> None:
    mail_servers.deliver(mail())
    with proxied(rewrite=AS_EXCHANGE) as (mailbox, _):
        (mail_id,) = ids(mailbox)
        mailbox.mark(mail_id, "quarantined")
    lost: list[bytes] = []

    def pass_once(data: bytes) -> bool:
        is_lost = b"UID MOVE" in data and not lost
        lost.extend([data] if is_lost else [])
        return not is_lost

    with proxied(pass_once, rewrite=AS_EXCHANGE) as (mailbox, _):
        mailbox.unmark(mail_id)
        assert ids(mailbox) == [mail_id]


def test_a_mail_that_a_person_copied_to_two_folders_has_the_last_mark(
    open_mailbox: Opener, mail_servers: MailServers
) -> None:
    mailbox = open_mailbox(marks="folders")
    mailbox.test_connection()
    for folder in ("Quarantined", "Answered"):
        mail_servers.put(f"{PARENT}.{folder}", mail())
    mail_id = mailbox.find_mail("<mail-1@example.org>")
    assert mail_id is not None
    mailbox.mark(mail_id, "handed_over")
    assert mailbox.list_mails() == [MarkedMail(mail_id, "handed_over")]
    mailbox.unmark(mail_id)
    assert (mailbox.list_mails(), ids(mailbox)) == ([MarkedMail(mail_id, None)], [mail_id])


def test_what_people_mark_as_deleted_in_a_folder_is_not_counted(
    open_mailbox: Opener, mail_servers: MailServers
) -> None:
    mailbox = open_mailbox(marks="folders")
    mailbox.test_connection()
    mail_servers.put(f"{PARENT}.Quarantined", mail())
    assert mailbox.count_by_outcome() == counts(quarantined=1)
    mail_servers.add_flags("\\Deleted", folder=f"{PARENT}.Quarantined")
    assert (mailbox.count_by_outcome(), mailbox.list_mails()) == (counts(), [])


def test_who_only_looks_sees_marks_of_either_kind(
    proxied: Proxied, open_mailbox: Opener, mail_servers: MailServers
) -> None:
    mail_servers.deliver(mail())
    with proxied(rewrite=AS_EXCHANGE, answer=refuse_keywords) as (mailbox, _):
        (mail_id,) = ids(mailbox)
        mailbox.mark(mail_id, "answered")
    with proxied(rewrite=AS_EXCHANGE, answer=refuse_keywords, settings={"read_only": True}) as (reader, _):
        assert reader.list_mails() == [MarkedMail(mail_id, "answered")]
        assert numbers([reader.read_raw(mail_id, 10_000)]) == [1]
        assert reader.count_by_outcome() == counts(answered=1)


@pytest.mark.parametrize("command", [b"SELECT", b"NAMESPACE", b"LIST"])
def test_what_exchange_refuses_for_now_is_no_fault_of_the_configuration(proxied: Proxied, command: bytes) -> None:
    def answer(data: bytes) -> bytes | None:
        return data.split()[0] + b" BAD User is authenticated but not connected.\r\n" if command in data else None

    with proxied(rewrite=AS_EXCHANGE, answer=answer) as (mailbox, _), refused("mail_unavailable") as caught:
        mailbox.test_connection()
        mailbox.count_by_outcome()
    assert caught.value.retryable


def test_a_reply_that_the_server_gave_another_id_is_known_by_what_it_refers_to_and_never_called_unsent(
    open_mailbox: Opener, mail_servers: MailServers
) -> None:
    sender = open_mailbox(sent_copy="server", replaces_ids=True)
    sender.send(dataclasses.replace(REPLY, references="<question@example.org>"))
    mail_servers.wait_until_sent()
    (received,) = mail_servers.sent_to_customers()
    references = str(email.message_from_bytes(received)["References"]).split()
    assert references == ["<question@example.org>", REPLY.message_id]
    mail_servers.put("Sent", received.replace(f"Message-ID: {REPLY.message_id}".encode(), b"Message-ID: <x@y>"))
    for everywhere in (False, True):
        later = open_mailbox(sent_copy="server", replaces_ids=True)
        assert later.find_sent(REPLY.message_id, everywhere=everywhere) == "unknown"


@pytest.mark.slow
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
    mail_servers.deliver(mail(1, b"<x@y>"), mail(2, b"<x@y>"))
    first, second = ids(mailbox)
    mailbox.mark(first, "answered")
    assert ids(mailbox) == [second]
    mail_servers.put("INBOX", mail(3, b"<x@y>"))
    mail_servers.put("INBOX", mail(4, b"<x@y>"))
    assert len(ids(mailbox)) == 3
