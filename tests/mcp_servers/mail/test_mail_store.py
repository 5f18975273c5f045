"""What holds for a mailbox of either kind."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path

import pytest
from mail_stores import REPLY, counts, ids, refused

from guarantee_email_agent.mcp_servers.mail.mail_store import KEYWORDS, MailStore
from guarantee_email_agent.mcp_servers.mail.maildir import Maildir

RAW = b"From: customer@example.org\r\nSubject: warranty\r\n\r\nSN12345\r\n"


@dataclass
class Inbox:
    """reopen: the same mailbox as another process has it. sent: what reached customers."""

    store: MailStore
    deliver: Callable[..., object]
    empty: Callable[[], object]
    reopen: Callable[[], MailStore]
    sent: Callable[[], list[bytes]]

    def wait(self, timeout_s: float) -> bool:
        return self.store.wait(timeout_s, threading.Event())


def maildir_inbox(directory: Path) -> Inbox:
    reopen = partial(Maildir, directory, "support@example.com", create=True)
    numbers = count(1_700_000_000)

    def deliver(*raws: bytes) -> None:
        for raw in raws:
            (directory / f"new/{next(numbers)}.M1P1.host").write_bytes(raw)

    def files(*folders: str) -> list[Path]:
        return [file for folder in folders for file in (directory / folder).iterdir()]

    def empty() -> None:
        for file in files("new", "cur"):
            file.unlink()

    return Inbox(reopen(), deliver, empty, reopen, lambda: [file.read_bytes() for file in files(".Sent/cur")])


@pytest.fixture(params=["Maildir", "IMAP"])
def inbox(request: pytest.FixtureRequest, tmp_path: Path) -> Inbox:
    if request.param == "Maildir":
        return maildir_inbox(tmp_path / "mailbox")
    reopen, servers = request.getfixturevalue("open_mailbox"), request.getfixturevalue("mail_servers")

    def deliver(*raws: bytes) -> None:
        if len(raws) > 10 or len(raws[0]) > 1_000_000:
            servers.deliver_many(raws)
        else:
            servers.deliver(*raws)

    def sent() -> list[bytes]:
        servers.wait_until_sent()
        return list(servers.sent_to_customers())

    return Inbox(reopen(), deliver, servers.empty, reopen, sent)


def test_an_empty_inbox_is_an_empty_list(inbox: Inbox) -> None:
    assert inbox.store.list_unprocessed(100).total == 0


def test_the_oldest_are_listed_where_there_are_more(inbox: Inbox) -> None:
    inbox.deliver(*(RAW + b"%d" % number for number in range(5)))
    listing = inbox.store.list_unprocessed(2)
    assert (len(listing.entries), listing.total) == (2, 5)
    for number, entry in enumerate(listing.entries):
        assert inbox.store.read_raw(entry.id, 10_000).rstrip().endswith(RAW + b"%d" % number)


def test_ten_thousand_mails_are_listed(inbox: Inbox) -> None:
    inbox.deliver(*[RAW] * 10_000)
    listing = inbox.store.list_unprocessed(10_000)
    assert len({entry.id for entry in listing.entries}) == listing.total == 10_000


def test_a_mail_of_50_megabytes_is_refused_unread(inbox: Inbox) -> None:
    inbox.deliver(RAW + b"x" * 50_000_000)
    (entry,) = inbox.store.list_unprocessed(1).entries
    assert entry.size >= 50_000_000
    with refused("mail_too_large") as caught:
        inbox.store.read_raw(entry.id, 25_000_000)
    assert caught.value.message == f"mail {entry.id} has {entry.size} bytes, over the limit of 25000000"


def test_a_mail_deleted_while_in_work_is_not_found(inbox: Inbox) -> None:
    inbox.deliver(RAW)
    (mail_id,) = ids(inbox.store)
    inbox.empty()
    with refused("mail_not_found"):
        inbox.store.read_raw(mail_id, 10_000)
    with refused("mail_not_found"):
        inbox.store.mark(mail_id, "answered")


@pytest.mark.parametrize("first", ["unknown", "answered"])
def test_a_second_mark_replaces_the_first(inbox: Inbox, first: str) -> None:
    inbox.deliver(RAW)
    (mail_id,) = ids(inbox.store)
    inbox.store.mark(mail_id, first)  # type: ignore[arg-type]
    inbox.store.mark(mail_id, "answered")
    assert inbox.store.count_by_outcome() == counts(answered=1)


def test_every_mail_is_counted_once(inbox: Inbox) -> None:
    inbox.deliver(*[RAW] * (len(KEYWORDS) + 2))
    for mail_id, outcome in zip(ids(inbox.store), [*KEYWORDS, "answered"], strict=False):
        inbox.store.mark(mail_id, outcome)  # type: ignore[arg-type]
    assert inbox.store.count_by_outcome() == counts(**dict.fromkeys(KEYWORDS, 1), unprocessed=1) | {"answered": 2}


def test_a_second_reply_with_the_same_id_is_not_sent(inbox: Inbox) -> None:
    assert inbox.store.find_sent(REPLY.message_id) == "not_sent"
    assert inbox.store.send(REPLY) == "sent"
    assert inbox.store.send(REPLY) == "already_sent"
    assert len(inbox.sent()) == 1
    assert inbox.reopen().send(REPLY) == "already_sent"
    assert len(inbox.sent()) == 1
    assert inbox.store.find_sent(REPLY.message_id) == "sent"
    assert inbox.store.find_sent("<reply-2@example.com>") == "not_sent"


class TestWait:
    @pytest.fixture(autouse=True)
    def _after_a_first_one(self, inbox: Inbox) -> None:
        """Which ends at once where nothing is known of the inbox yet."""
        inbox.deliver(RAW)
        inbox.store.list_unprocessed(1)
        inbox.wait(0)

    def test_ends_without_mail(self, inbox: Inbox) -> None:
        assert not inbox.wait(0.2)

    def test_ends_when_a_mail_arrives(self, inbox: Inbox) -> None:
        timer = threading.Timer(0.5, inbox.deliver, (RAW,))
        timer.start()
        assert inbox.wait(60)
        timer.join()

    def test_is_not_ended_by_a_mark(self, inbox: Inbox) -> None:
        inbox.store.mark(ids(inbox.store)[0], "answered")
        assert not inbox.wait(0.2)

    def test_can_be_given_up(self, inbox: Inbox) -> None:
        stop = threading.Event()
        threading.Timer(0.1, stop.set).start()
        assert not inbox.store.wait(3600, stop)
