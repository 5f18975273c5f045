import dataclasses
import email
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest
from mail_servers import MailServers
from mail_stores import REPLY, Opener, Proxied, counts, ids, message_ids, refused
from tcp_proxy import TcpProxy
from waiting import wait_until
from withheld_mail import WithheldMail

from guarantee_email_agent.services.call_errors import ToolError
from guarantee_email_agent.services.mail import imap_replies
from guarantee_email_agent.services.mail.compose import compose
from guarantee_email_agent.services.mail.imap import ImapMailbox
from guarantee_email_agent.services.mail.mail_server import MailServer
from guarantee_email_agent.services.mail.mail_store import KEYWORDS


def mail(number: int = 1, sender: str = "customer@example.org", text: str = "SN12345") -> bytes:
    return (
        f"From: {sender}\r\nTo: support@example.com\r\nSubject: warranty\r\n"
        f"Message-ID: <mail-{number}@example.org>\r\n\r\n{text}\r\n"
    ).encode()


@pytest.mark.slow
@pytest.mark.parametrize("marks", ["keywords", "folders"])
@pytest.mark.parametrize(
    ("item", "how"),
    [
        *((b"RFC822.SIZE", how) for how in ("NO", "break")),
        *((b"BODY.PEEK[HEADER", how) for how in ("NO", "break")),
        *((b"[]", how) for how in ("NO", "NIL", "nothing", "break")),
    ],
)
def test_a_mail_that_the_server_withholds_is_the_only_one_that_cannot_be_read(
    proxied: Proxied, mailbox: ImapMailbox, mail_servers: MailServers, marks: str, item: bytes, how: Any
) -> None:
    mail_servers.deliver(*(mail(number) for number in range(4)))
    bad = WithheldMail(item, how)
    bad.uids = {int(ids(mailbox)[1].split("-")[1])}
    breaks = {"on_request": lambda request: bad(request) is None}
    with proxied(**(breaks if how == "break" else {"answer": bad}), settings={"marks": marks}) as (behind, _):
        listed = ids(behind)
        assert (len(listed), ids(behind)) == (4, listed)
        for mail_id in listed[:1] + listed[2:]:
            behind.read_raw(mail_id, 10_000)
        if item != b"BODY.PEEK[HEADER":
            with refused("mail_unreadable") as caught:
                behind.read_raw(listed[1], 10_000)
            assert not caught.value.outage
        behind.mark(listed[1], "quarantined")
        if marks == "folders" and item != b"BODY.PEEK[HEADER" and how != "break":
            bad.uids = set(mail_servers.uids("guarantee-email-agent.Quarantined"))
            with refused("mail_unreadable"):
                behind.read_raw(listed[1], 10_000)
        assert ids(behind) == listed[:1] + listed[2:]
        mail_servers.empty()
        with refused("mail_not_found"):
            behind.read_raw(listed[2], 10_000)


@pytest.mark.parametrize("breaks", [False, True])
def test_a_server_that_withholds_every_mail_is_down(
    proxied: Proxied, mailbox: ImapMailbox, mail_servers: MailServers, breaks: bool
) -> None:
    mail_servers.deliver(mail(1), mail(2))
    bad = WithheldMail(b"RFC822.SIZE", "NO")
    bad.uids = {int(mail_id.split("-")[1]) for mail_id in ids(mailbox)}
    how: Any = {"on_request": lambda request: bad(request) is None} if breaks else {"answer": bad}
    with proxied(**how) as (behind, _), refused("mail_unavailable"):
        ids(behind)


@pytest.mark.parametrize("outcome", KEYWORDS)
def test_a_mail_that_is_read_and_marked_is_not_listed_and_not_seen(
    mailbox: ImapMailbox, mail_servers: MailServers, outcome: str
) -> None:
    mail_servers.deliver(mail())
    mailbox.read_raw(ids(mailbox)[0], 10_000)
    mailbox.count_by_outcome()
    mailbox.mark(ids(mailbox)[0], outcome)
    assert ids(mailbox) == []
    assert mail_servers.keywords()[0] - {"\\Recent"} == {KEYWORDS[outcome]}


def test_a_mail_with_two_marks_is_counted_once(mailbox: ImapMailbox, mail_servers: MailServers) -> None:
    mail_servers.deliver(mail())
    mail_servers.add_flags(KEYWORDS["unknown"], KEYWORDS["answered"])
    assert mailbox.count_by_outcome() == counts(answered=1)


@pytest.mark.parametrize("sender", ["customer@example.org", "support@example.com"])
def test_a_mail_that_comes_while_they_are_counted_is_no_old_one(
    proxied: Proxied, mail_servers: MailServers, sender: str
) -> None:
    def deliver_late(request: bytes) -> bool:
        if b"UNFLAGGED" in request:
            mail_servers.deliver(mail(2, sender=sender))
        return True

    mail_servers.deliver(mail())
    with proxied(on_request=deliver_late) as (mailbox, _):
        assert mailbox.count_by_outcome() == counts(unprocessed=1)


@pytest.mark.parametrize("mail_id", ["1-1", "0-0", "rubbish", "", "1:*", "٣-١"])
def test_an_id_of_another_mailbox_is_not_found(mailbox: ImapMailbox, mail_servers: MailServers, mail_id: str) -> None:
    mail_servers.deliver(mail())
    ids(mailbox)
    with refused("mail_not_found"):
        mailbox.read_raw(mail_id, 10_000)


def test_an_id_does_not_outlive_the_folder_it_was_for(open_mailbox: Opener, mail_servers: MailServers) -> None:
    other = open_mailbox(folder="Other")
    with mail_servers.folder_of_its_own("Other"):
        mail_servers.put("Other", mail())
        (before,) = ids(other)
    other.close()
    time.sleep(1.1)  # Dovecot takes the UIDVALIDITY from the clock's seconds
    with mail_servers.folder_of_its_own("Other"):
        mail_servers.put("Other", mail())
        (after,) = ids(other)
        assert after != before
        with refused("mail_not_found"):
            other.read_raw(before, 10_000)
        other.close()


@pytest.mark.parametrize(
    ("rewrite", "code", "told"),
    [
        ({rb" \*)": b")", b"$Agent": b"$Other"}, "mail_unsupported", "keeps no keywords in folder INBOX"),
        ({b"[READ-WRITE]": b"[READ-ONLY]"}, "mail_unsupported", "may only be read"),
        ({b"OK [READ-WRITE] ": b"NO "}, "mail_folder_missing", "Check mailbox.imap.folder"),
        ({b"* SEARCH ": b"* SEARCH x "}, "mail_unavailable", "answers in a way that cannot be read"),
        ({b'INTERNALDATE "': b'INTERNALDATE 7 X "'}, "mail_unavailable", "answers in a way that cannot be read"),
    ],
)
def test_a_folder_that_cannot_be_used_is_told(
    proxied: Proxied, mail_servers: MailServers, rewrite: dict[bytes, bytes], code: str, told: str
) -> None:
    mail_servers.deliver(mail())
    with proxied(rewrite=rewrite, settings={"marks": "keywords"}) as (mailbox, _), refused(code) as caught:
        ids(mailbox)
    assert told in caught.value.message


@pytest.mark.parametrize("rewrite", [{b" MOVE": b""}, {b" MOVE": b"", b" UIDPLUS": b""}])
def test_copies_are_filed_without_the_move_extension(
    proxied: Proxied, mail_servers: MailServers, rewrite: dict[bytes, bytes]
) -> None:
    with proxied(rewrite=rewrite) as (mailbox, _):
        mailbox.send(REPLY)
        mail_servers.wait_until_sent()
        assert ids(mailbox) == []
        assert mailbox.count_by_outcome()["unprocessed"] == 0
        assert message_ids(mail_servers.folder("Sent")) == [REPLY.message_id]


def test_a_lost_connection_is_made_anew(proxied: Proxied, mail_servers: MailServers) -> None:
    mail_servers.deliver(mail())
    with proxied() as (mailbox, proxy):
        (mail_id,) = ids(mailbox)
        proxy.cut()
        assert mailbox.read_raw(mail_id, 10_000)
        proxy.cut()
        mailbox.mark(mail_id, "answered")
        proxy.cut()
        assert mailbox.count_by_outcome()["answered"] == 1


def test_several_threads_share_a_mailbox(mailbox: ImapMailbox, mail_servers: MailServers) -> None:
    mail_servers.deliver(*map(mail, range(20)))
    with ThreadPoolExecutor(8) as threads:
        raws = list(threads.map(lambda mail_id: mailbox.read_raw(mail_id, 10_000), ids(mailbox)))
    assert message_ids(raws) == [f"<mail-{number}@example.org>" for number in range(20)]


def test_a_reply_reaches_the_customer_and_is_filed(mailbox: ImapMailbox, mail_servers: MailServers) -> None:
    assert mailbox.send(REPLY) == "sent"
    wait_until(lambda: len(mail_servers.folder()) == 1, problem=mail_servers.log)
    assert ids(mailbox) == []
    assert message_ids(mail_servers.folder("Sent")) == [REPLY.message_id]
    assert "\\Seen" in mail_servers.keywords("Sent")[0]
    assert mail_servers.folder() == []
    wait_until(lambda: len(mail_servers.sent_to_customers()) == 1, problem=mail_servers.log)
    (received,) = map(email.message_from_bytes, mail_servers.sent_to_customers())
    assert (received["From"], received["To"], received["Auto-Submitted"]) == (
        "support@example.com",
        "customer@example.org",
        "auto-replied",
    )
    assert received.get_payload(decode=True) == b"It is valid.\n"


def test_replies_with_one_id_at_once_are_sent_once(mailbox: ImapMailbox, mail_servers: MailServers) -> None:
    with ThreadPoolExecutor(4) as threads:
        outcomes = sorted(threads.map(lambda _: mailbox.send(REPLY), range(4)))
    assert outcomes == ["already_sent"] * 3 + ["sent"]
    mail_servers.wait_until_sent()
    assert len(mail_servers.sent_to_customers()) == 1


def test_mails_looked_at_for_copies_are_not_looked_at_again_after_a_break(
    proxied: Proxied, mail_servers: MailServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imap_replies, "_PAGE", 2)
    mail_servers.deliver(*[mail(number, mail_servers.address) for number in range(6)])
    looks: list[int] = []

    def look(data: bytes) -> bool:
        if b"SEARCH" in data and b"FROM" in data:
            looks.append(len(looks))
            return len(looks) != 2
        return True

    with proxied(look) as (mailbox, _):
        assert len(ids(mailbox)) == 6
        assert len(looks) == 4  # three pages, the second of them twice


def test_part_of_a_message_id_is_no_proof(open_mailbox: Opener, mail_servers: MailServers) -> None:
    open_mailbox().send(dataclasses.replace(REPLY, message_id="<reply-12@example.com>"))
    mail_servers.wait_until_sent()
    ids(open_mailbox())
    assert open_mailbox().find_sent("<reply-1@example.com>") == "not_sent"
    assert open_mailbox().find_sent("<REPLY-12@example.com>") == "not_sent"


def test_a_copy_under_another_key_is_listed_and_still_a_proof(open_mailbox: Opener, mail_servers: MailServers) -> None:
    open_mailbox(key=b"another").send(REPLY)
    mail_servers.wait_until_sent()
    later = open_mailbox()
    assert len(ids(later)) == 1
    assert later.find_sent(REPLY.message_id) == "sent"


@pytest.mark.parametrize("how", ["NO", "NIL", "nothing", None])
def test_a_copy_taken_for_junk_is_a_proof_even_where_it_is_withheld(
    proxied: Proxied, mail_servers: MailServers, how: Any
) -> None:
    mail_servers.put("Junk", compose(REPLY, mail_servers.address, datetime.now(UTC), None))
    withheld = WithheldMail(b"HEADER", how)
    withheld.uids = set(mail_servers.uids("Junk") if how else ())
    with proxied(answer=withheld) as (mailbox, _):
        assert mailbox.find_sent(REPLY.message_id, everywhere=True) == "sent"


@pytest.mark.parametrize("sender", ["customer@example.org", "support@example.com"])
def test_a_stranger_cannot_hide_a_mail_as_a_copy(mailbox: ImapMailbox, mail_servers: MailServers, sender: str) -> None:
    forged = compose(dataclasses.replace(REPLY, body="You get a new one."), sender, datetime.now(UTC), b"not the key")
    mail_servers.deliver(forged)
    assert len(ids(mailbox)) == 1
    assert mail_servers.folder("Sent") == []


def test_a_customer_cannot_file_other_words_under_the_proof_of_a_reply(
    mailbox: ImapMailbox, mail_servers: MailServers
) -> None:
    mailbox.send(REPLY)
    mail_servers.wait_until_sent()
    ids(mailbox)
    (received,) = mail_servers.sent_to_customers()
    mail_servers.deliver(received.replace(b"It is valid.", b"You get a new one."))
    assert len(ids(mailbox)) == 1
    assert len(mail_servers.folder("Sent")) == 1


def test_a_mail_from_a_stranger_is_no_proof(mailbox: ImapMailbox, mail_servers: MailServers) -> None:
    mail_servers.deliver(mail().replace(b"<mail-1@example.org>", REPLY.message_id.encode()))
    assert mailbox.find_sent(REPLY.message_id) == "not_sent"


def test_copies_that_do_not_come_are_missed_once_and_what_the_server_took_is_known(
    open_mailbox: Opener, mail_servers: MailServers, caplog: pytest.LogCaptureFixture
) -> None:
    mailbox = open_mailbox(copy_wait_s=0.0)
    mailbox.send(REPLY)
    mail_servers.wait_until_sent()
    mail_servers.empty()  # as if mail to our own address went elsewhere
    for _ in range(3):
        ids(mailbox)
    assert mailbox.find_sent(REPLY.message_id) == "sent"
    (told,) = caplog.messages
    assert "no copy of a reply came to INBOX within 0 s" in told


def test_copies_that_another_process_filed_are_not_missed(
    open_mailbox: Opener, mail_servers: MailServers, caplog: pytest.LogCaptureFixture
) -> None:
    mailbox = open_mailbox(copy_wait_s=0.0)
    mailbox.send(REPLY)
    mail_servers.wait_until_sent()
    ids(open_mailbox())
    ids(mailbox)
    assert not caplog.messages


class TestAppend:
    """Our own copy goes into Sent after the server took the reply."""

    def test_the_copy_is_filed_and_found(self, open_mailbox: Opener, mail_servers: MailServers) -> None:
        assert open_mailbox(sent_copy="append").find_sent(REPLY.message_id) == "unknown"
        open_mailbox(sent_copy="append").send(REPLY)
        assert message_ids(mail_servers.folder("Sent")) == [REPLY.message_id]
        assert open_mailbox(sent_copy="append").find_sent(REPLY.message_id) == "sent"
        mail_servers.wait_until_sent()
        assert mail_servers.folder() == []

    def test_what_was_refused_is_known_not_to_be_sent(self, open_mailbox: Opener) -> None:
        mailbox = open_mailbox(sent_copy="append")
        with refused("mail_rejected"):
            mailbox.send(dataclasses.replace(REPLY, to="nobody@example.net"))
        assert mailbox.find_sent(REPLY.message_id) == "not_sent"


class TestServer:
    """The server files what it sends; here, the test does it in its place."""

    def test_a_copy_in_sent_is_the_proof(self, open_mailbox: Opener, mail_servers: MailServers) -> None:
        mailbox = open_mailbox(sent_copy="server")
        assert mailbox.find_sent(REPLY.message_id) == "not_sent"
        mail_servers.put("Sent", compose(REPLY, mail_servers.address, datetime.now(UTC)))
        assert mailbox.find_sent(REPLY.message_id) == "sent"

    def test_no_copy_is_sent_to_ourselves(self, open_mailbox: Opener, mail_servers: MailServers) -> None:
        open_mailbox(sent_copy="server").send(REPLY)
        mail_servers.wait_until_sent()
        assert mail_servers.folder() == []


class TestUncertain:
    """The connection to the SMTP server is lost between the final dot and the answer."""

    @pytest.fixture
    def tried(self, open_mailbox: Opener, smtp_server: MailServer) -> Iterator[Opener]:
        """Makes mailboxes that tried to send."""
        with TcpProxy(smtp_server.port, lambda data: not data.endswith(b"\r\n.\r\n") and data != b".\r\n") as proxy:

            def send(**settings: Any) -> ImapMailbox:
                mailbox = open_mailbox(smtp=dataclasses.replace(smtp_server, port=proxy.port), **settings)
                with refused("mail_unavailable") as caught:
                    mailbox.send(REPLY)
                assert caught.value.uncertain
                assert "whether it was taken is not known" in caught.value.message
                return mailbox

            yield send

    def test_the_copy_then_tells(self, tried: Opener, mail_servers: MailServers) -> None:
        mailbox = tried()
        wait_until(lambda: mailbox.find_sent(REPLY.message_id) == "sent", problem=mail_servers.log)
        assert mailbox.send(REPLY) == "already_sent"
        assert len(mail_servers.sent_to_customers()) == 1

    @pytest.mark.parametrize("sent_copy", ["self", "server", "append"])
    def test_nothing_is_sent_again_while_the_copy_may_come(
        self, tried: Opener, mail_servers: MailServers, sent_copy: str
    ) -> None:
        mailbox = tried(sent_copy=sent_copy)
        mail_servers.wait_until_sent()
        mail_servers.empty()  # as if it were still on its way
        assert mailbox.find_sent(REPLY.message_id) == "unknown"
        with refused("mail_uncertain") as caught:
            mailbox.send(REPLY)
        assert caught.value.uncertain

    def test_a_copy_that_did_not_come_in_time_will_not(self, tried: Opener, mail_servers: MailServers) -> None:
        mailbox = tried(copy_wait_s=0.0)
        mail_servers.wait_until_sent()
        mail_servers.empty()
        assert mailbox.find_sent(REPLY.message_id) == "not_sent"

    def test_without_a_copy_it_stays_unknown_until_a_person_has_it_sent_again(
        self, tried: Opener, mail_servers: MailServers
    ) -> None:
        mailbox = tried(sent_copy="append", copy_wait_s=0.0)
        assert [mailbox.find_sent(REPLY.message_id, everywhere) for everywhere in (False, True)] == ["unknown"] * 2
        with refused("mail_unavailable"):  # it was tried, as the first time
            mailbox.send(REPLY)
        assert mailbox.find_sent(REPLY.message_id, everywhere=True) == "unknown"
        mail_servers.wait_until_sent()
        assert len(mail_servers.sent_to_customers()) == 2


def test_the_connection_test_sends_nothing(mailbox: ImapMailbox, mail_servers: MailServers) -> None:
    assert mailbox.test_connection() == f"folder INBOX on the IMAP server localhost:{mail_servers.imap_port}"
    mail_servers.wait_until_sent()
    assert (mail_servers.sent_to_customers(), mail_servers.folder()) == ([], [])


class TestReadOnly:
    def test_a_copy_of_a_reply_stays_where_it_is(self, open_mailbox: Opener, mail_servers: MailServers) -> None:
        open_mailbox(copy_wait_s=60.0).send(REPLY)
        mail_servers.wait_until_sent()
        reader = open_mailbox(read_only=True)
        assert reader.test_connection()
        wait_until(lambda: len(ids(reader)) == 1, problem=mail_servers.log)
        assert reader.count_by_outcome() == counts(unprocessed=1)
        assert len(mail_servers.folder("INBOX")) == 1
        assert mail_servers.folder("Sent") == []

    def test_a_mark_is_refused_by_the_server_itself(self, open_mailbox: Opener, mail_servers: MailServers) -> None:
        mail_servers.deliver(mail())
        reader = open_mailbox(read_only=True)
        (listed,) = ids(reader)
        with pytest.raises(ToolError):
            reader.mark(listed, "answered")
        assert mail_servers.keywords()[0] <= {"\\Recent"}


def test_a_copy_that_comes_while_mails_are_listed_is_none_of_them(proxied: Proxied, mail_servers: MailServers) -> None:
    copy = compose(REPLY, mail_servers.address, datetime(2026, 1, 18, tzinfo=UTC), b"a key")
    searches: list[bytes] = []

    def put_before_the_first(data: bytes) -> bool:
        if b"UID SEARCH" in data:
            searches.append(data)
            if len(searches) == 1:  # which looks for copies, and tells of a new mail only as it ends
                mail_servers.put("INBOX", copy)
        return True

    with proxied(put_before_the_first, settings={"key": b"a key"}) as (mailbox, _):
        assert ids(mailbox) == []
        assert len(mail_servers.folder()) == 1
        assert ids(mailbox) == []
        assert (mail_servers.folder(), len(mail_servers.folder("Sent"))) == ([], 1)
