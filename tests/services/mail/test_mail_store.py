"""What holds for a mailbox of either kind."""

import email
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from functools import partial
from itertools import count
from pathlib import Path

import pytest
from mail_stores import REPLY, counts, ids, refused

from guarantee_email_agent.services.mail.mail_store import KEYWORDS, MailStore
from guarantee_email_agent.services.mail.maildir import Maildir
from guarantee_email_agent.services.ports import InboxFilter

RAW = b"From: customer@example.org\r\nSubject: warranty\r\n\r\nSN12345\r\n"


@dataclass
class Inbox:
    """reopen: the same mailbox as another process has it. sent: what reached customers."""

    store: MailStore
    deliver: Callable[..., object]
    empty: Callable[[], object]
    reopen: Callable[[], MailStore]
    sent: Callable[[], list[bytes]]
    deliver_at: Callable[[bytes, float], object]
    add_flag: Callable[[str], object]
    """To every mail, as a mail program does."""
    drafts: Callable[[], list[tuple[bytes, set[str]]]]
    """What is in the folder for drafts, with the flags."""

    def wait(self, timeout_s: float) -> bool:
        return self.store.wait(timeout_s, threading.Event())


def maildir_inbox(directory: Path) -> Inbox:
    reopen = partial(Maildir, directory, "support@example.com", create=True)
    numbers = count(1_700_000_000)

    def deliver(*raws: bytes) -> None:
        for raw in raws:
            (directory / f"new/{next(numbers)}.M1P1.host").write_bytes(raw)

    def deliver_at(raw: bytes, moment: float) -> None:
        path = directory / f"new/{next(numbers)}.M1P1.host"
        path.write_bytes(raw)
        os.utime(path, (moment, moment))

    def add_flag(flag: str) -> None:
        for file in files("new", "cur"):
            base, _, flags = file.name.partition(":2,")
            letter = "R" if flag == "\\Answered" else "T" if flag == "\\Deleted" else flag[1]
            file.rename(directory / f"cur/{base}:2,{''.join(sorted({*flags, letter}))}")

    def drafts() -> list[tuple[bytes, set[str]]]:
        flags = {"D": "\\Draft", "S": "\\Seen"}
        return [
            (file.read_bytes(), {flags[letter] for letter in file.name.partition(":2,")[2]})
            for file in files(".Drafts/cur")
        ]

    def files(*folders: str) -> list[Path]:
        return [file for folder in folders for file in (directory / folder).iterdir()]

    def empty() -> None:
        for file in files("new", "cur"):
            file.unlink()

    def sent() -> list[bytes]:
        return [file.read_bytes() for file in files(".Sent/cur")] if (directory / ".Sent").exists() else []

    return Inbox(reopen(), deliver, empty, reopen, sent, deliver_at, add_flag, drafts)


@pytest.fixture(params=["Maildir", "IMAP", "IMAP with folders for marks"])
def inbox(request: pytest.FixtureRequest, tmp_path: Path) -> Inbox:
    if request.param == "Maildir":
        return maildir_inbox(tmp_path / "mailbox")
    servers = request.getfixturevalue("mail_servers")
    marks = "keywords" if request.param == "IMAP" else "folders"
    reopen = partial(request.getfixturevalue("open_mailbox"), marks=marks)

    def deliver(*raws: bytes) -> None:
        if len(raws) > 10 or len(raws[0]) > 1_000_000:
            servers.deliver_many(raws)
        else:
            servers.deliver(*raws)

    def sent() -> list[bytes]:
        servers.wait_until_sent()
        return list(servers.sent_to_customers())

    def deliver_at(raw: bytes, moment: float) -> None:
        servers.put("INBOX", raw, datetime.fromtimestamp(moment, timezone(timedelta(hours=14))))

    def drafts() -> list[tuple[bytes, set[str]]]:
        flags = [set(found) - {"\\Recent"} for found in servers.keywords("Drafts")]
        return list(zip(servers.folder("Drafts"), flags, strict=True))

    return Inbox(reopen(), deliver, servers.empty, reopen, sent, deliver_at, servers.add_flags, drafts)


def test_the_oldest_are_listed_where_there_are_more(inbox: Inbox) -> None:
    inbox.deliver(*(RAW + b"%d" % number for number in range(5)))
    listing = inbox.store.list_unprocessed(2)
    assert (len(listing.entries), listing.total) == (2, 5)
    for number, entry in enumerate(listing.entries):
        assert inbox.store.read_raw(entry.id, 10_000).rstrip().endswith(RAW + b"%d" % number)


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
    with refused("mail_not_found"):
        inbox.store.unmark(mail_id)
    assert not inbox.store.is_waiting(mail_id)
    assert not inbox.store.is_waiting("nothing")


def test_a_mail_is_found_by_its_message_id_whatever_became_of_it(inbox: Inbox) -> None:
    raw = RAW.replace(b"Subject", b"Message-ID: <one@example.org>\r\nSubject")
    inbox.deliver(raw)
    inbox.deliver(RAW.replace(b"Subject", b"Message-ID: <other@example.org>\r\nSubject"))
    found = inbox.store.find_mail("<one@example.org>")
    assert found is not None
    inbox.store.mark(found, "answered")
    assert inbox.store.find_mail("<one@example.org>") == found
    assert b"<one@example.org>" in inbox.store.read_raw(found, 10_000)
    for other in ("<nobody@example.org>", "<ne@example.org>", "<ONE@example.org>"):
        assert inbox.store.find_mail(other) is None


def test_every_mail_is_listed_with_its_mark(inbox: Inbox) -> None:
    inbox.deliver(RAW)
    inbox.deliver(RAW.replace(b"SN12345", b"SN54321"))
    first, second = ids(inbox.store)
    inbox.store.mark(first, "quarantined")
    assert {(mail.id, mail.mark) for mail in inbox.store.list_mails()} == {(first, "quarantined"), (second, None)}


@pytest.mark.parametrize(
    ("inbox", "known"), [("IMAP", True), ("IMAP with folders for marks", None)], indirect=["inbox"]
)
def test_what_a_person_tagged_as_wrong_is_known_where_keywords_are_kept(inbox: Inbox, known: bool | None) -> None:
    inbox.deliver(RAW)
    assert [mail.is_wrong for mail in inbox.store.list_mails()] == [known and False]
    inbox.add_flag("wrong")
    assert [mail.is_wrong for mail in inbox.store.list_mails()] == [known]


def test_a_mail_whose_mark_is_taken_off_is_listed_again(inbox: Inbox) -> None:
    inbox.deliver(RAW)
    inbox.add_flag("\\Seen")
    (mail_id,) = ids(inbox.store)
    inbox.store.mark(mail_id, "handed_over")
    for _ in range(2):
        inbox.store.unmark(mail_id)
        assert ids(inbox.reopen()) == [mail_id]
    assert inbox.store.count_by_outcome(InboxFilter(skip_seen=True))["left_alone"] == 1


@pytest.mark.parametrize("first", ["unknown", "answered"])
def test_a_second_mark_replaces_the_first(inbox: Inbox, first: str) -> None:
    inbox.deliver(RAW)
    (mail_id,) = ids(inbox.store)
    inbox.store.mark(mail_id, first)
    inbox.store.mark(mail_id, "answered")
    assert inbox.store.count_by_outcome() == counts(answered=1)


def test_every_mail_is_counted_once(inbox: Inbox) -> None:
    inbox.deliver(*[RAW] * (len(KEYWORDS) + 2))
    for mail_id, outcome in zip(ids(inbox.store), [*KEYWORDS, "answered"], strict=False):
        inbox.store.mark(mail_id, outcome)
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


def test_what_was_sent_is_listed_from_its_beginning(inbox: Inbox) -> None:
    assert inbox.store.list_sent(0.0, 10_000, bytes) == []
    inbox.store.send(REPLY)
    inbox.sent()
    assert inbox.store.find_sent(REPLY.message_id, True) == "sent"
    inbox.store.list_unprocessed(100)  # files the copy
    (raw,) = inbox.store.list_sent(time.time() - 60, 10_000, bytes)
    assert email.message_from_bytes(raw)["Message-ID"] == REPLY.message_id
    assert inbox.store.list_sent(0.0, 5, len) == [len(raw[:5])]
    assert inbox.store.list_sent(time.time() + 3 * 86_400, 10_000, bytes) == []


MIDNIGHT = 1_780_012_800.0  # 2026-05-29 00:00 UTC, when calendars around the world show two days


class TestFilter:
    @pytest.mark.parametrize("before", [0.0, 1.0, 3600 * 12, 3600 * 24 - 1], ids=lambda hours: f"{hours:.0f} s")
    def test_mails_delivered_before_a_moment_are_too_old(self, inbox: Inbox, before: float) -> None:
        moment = MIDNIGHT - before
        inbox.deliver_at(RAW + b"old", moment - 1)
        inbox.deliver_at(RAW + b"new", moment)
        inbox.deliver_at(RAW + b"years old", moment - 5 * 365 * 86_400)
        inbox.deliver_at(RAW + b"newer", moment + 10 * 86_400)
        only_recent = InboxFilter(moment)
        listing = inbox.store.list_unprocessed(100, only_recent)
        raws = [inbox.store.read_raw(entry.id, 10_000).rstrip() for entry in listing.entries]
        assert [raw.removeprefix(RAW) for raw in raws] == [b"new", b"newer"]
        assert [entry.received for entry in listing.entries] == [moment, moment + 10 * 86_400]
        assert listing.total == 2
        assert inbox.store.count_by_outcome(only_recent) == counts(unprocessed=2, too_old=2)
        assert inbox.store.list_unprocessed(100).total == 4

    def test_what_comes_after_a_look_is_told_by_its_own_time(self, inbox: Inbox) -> None:
        inbox.deliver_at(RAW, MIDNIGHT - 30 * 86_400)
        since = InboxFilter(MIDNIGHT)
        assert inbox.store.list_unprocessed(100, since).total == 0
        inbox.deliver_at(RAW, MIDNIGHT - 20 * 86_400)
        assert inbox.store.list_unprocessed(100, since).total == 0
        inbox.deliver_at(RAW, MIDNIGHT + 60)
        assert inbox.store.list_unprocessed(100, since).total == 1
        assert inbox.store.list_unprocessed(100, InboxFilter(MIDNIGHT + 3600)).total == 0
        assert inbox.store.list_unprocessed(100, InboxFilter(MIDNIGHT + 20 * 86_400)).total == 0
        assert inbox.store.list_unprocessed(100, InboxFilter(MIDNIGHT - 25 * 86_400)).total == 2

    @pytest.mark.parametrize("inbox", ["Maildir", "IMAP"], indirect=True)
    def test_more_mails_of_one_day_than_a_command_names_are_told_apart(self, inbox: Inbox) -> None:
        inbox.deliver(*[RAW] * 1_200)
        assert inbox.store.list_unprocessed(2_000, InboxFilter(time.time() - 3600)).total == 1_200
        later = InboxFilter(time.time() + 3600)
        assert inbox.store.list_unprocessed(2_000, later).total == 0
        assert inbox.store.count_by_outcome(later) == counts(too_old=1_200)

    @pytest.mark.parametrize("flag", ["\\Answered", "\\Draft", "\\Deleted", "\\Flagged"])
    def test_what_people_took_care_of_is_left_alone(self, inbox: Inbox, flag: str) -> None:
        inbox.deliver(RAW)
        (mail_id,) = ids(inbox.store)
        assert inbox.store.is_waiting(mail_id)
        inbox.add_flag(flag)
        assert not inbox.store.is_waiting(mail_id)
        assert ids(inbox.store) == []
        assert inbox.store.count_by_outcome() == counts(left_alone=1)

    def test_read_mails_are_left_alone_by_choice(self, inbox: Inbox) -> None:
        inbox.deliver(RAW)
        (mail_id,) = ids(inbox.store)
        inbox.add_flag("\\Seen")
        unread = InboxFilter(skip_seen=True)
        assert inbox.store.list_unprocessed(100, unread).total == 0
        assert inbox.store.count_by_outcome(unread) == counts(left_alone=1)
        assert not inbox.store.is_waiting(mail_id, skip_seen=True)
        assert ids(inbox.store) == [mail_id]
        assert inbox.store.is_waiting(mail_id)

    def test_a_marked_mail_counts_by_its_mark_alone(self, inbox: Inbox) -> None:
        inbox.deliver_at(RAW, MIDNIGHT)
        (mail_id,) = ids(inbox.store)
        inbox.store.mark(mail_id, "handed_over")
        inbox.add_flag("\\Flagged")
        assert inbox.store.count_by_outcome(InboxFilter(MIDNIGHT + 1, skip_seen=True)) == counts(handed_over=1)
        assert not inbox.store.is_waiting(mail_id)


DRAFT = replace(
    REPLY,
    in_reply_to="<question@example.org>",
    references="<first@example.org> <question@example.org>",
    headers={"X-Agent-Ticket": '{"category": "warranty_claim"}', "Auto-Submitted": "auto-replied"},
)


class TestDrafts:
    def test_a_draft_has_all_headers_and_is_nothing_automatic(self, inbox: Inbox) -> None:
        assert inbox.store.find_draft(DRAFT.message_id) == "not_saved"
        assert inbox.store.save_draft(DRAFT) == "saved"
        ((raw, flags),) = inbox.drafts()
        draft = email.message_from_bytes(raw)
        names = ("From", "To", "Subject", "Message-ID", "In-Reply-To", "X-Agent-Ticket", "Auto-Submitted")
        assert [draft[name] for name in names] == [
            "support@example.com",
            DRAFT.to,
            DRAFT.subject,
            DRAFT.message_id,
            DRAFT.in_reply_to,
            '{"category": "warranty_claim"}',
            None,
        ]
        assert draft["References"].split() == DRAFT.references.split()
        assert flags == {"\\Draft", "\\Seen"}
        assert inbox.store.find_draft(DRAFT.message_id) == "saved"
        assert inbox.store.find_sent(DRAFT.message_id) == "not_sent"
        assert inbox.sent() == []

    def test_of_drafts_with_one_id_at_once_one_is_stored(self, inbox: Inbox) -> None:
        stores = [inbox.store] * 4
        gate = threading.Barrier(len(stores))

        def save(store: MailStore) -> str:
            gate.wait()
            return store.save_draft(DRAFT)

        with ThreadPoolExecutor(len(stores)) as threads:
            assert sorted(threads.map(save, stores)) == ["already_saved"] * 3 + ["saved"]
        assert inbox.reopen().find_draft(DRAFT.message_id) == "saved"
        assert inbox.reopen().save_draft(DRAFT) == "already_saved"
        assert len(inbox.drafts()) == 1

    def test_the_connection_test_makes_the_folder_and_stores_nothing(self, inbox: Inbox) -> None:
        inbox.store.test_connection(drafts=True)
        assert inbox.drafts() == []


class TestWait:
    @pytest.fixture(autouse=True)
    def _after_a_first_one(self, inbox: Inbox) -> None:
        """Which ends at once where nothing is known of the inbox yet."""
        inbox.deliver(RAW)
        inbox.store.list_unprocessed(1)
        inbox.wait(0)

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
