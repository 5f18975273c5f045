"""The mark of the ledger that serves a mailbox, in a Maildir and on an IMAP server."""

import email
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from mail_servers import MailServers
from mail_stores import Opener, Proxied, refused

from guarantee_email_agent.services.mail.imap import ImapMailbox
from guarantee_email_agent.services.mail.maildir import Maildir

OURS, THEIRS = "0123456789abcdef", "fedcba9876543210"
Reopen = Callable[[], Maildir | ImapMailbox]


@pytest.fixture(params=["Maildir", "IMAP"])
def reopen(request: pytest.FixtureRequest, tmp_path: Path) -> Reopen:
    """The same mailbox, as each process has it."""
    if request.param == "Maildir":
        return partial(Maildir, tmp_path / "mailbox", "support@example.com", create=True)
    request.getfixturevalue("mail_servers")
    return request.getfixturevalue("open_mailbox")


def test_who_comes_first_has_the_mailbox_until_it_is_taken_over_and_taken_back(reopen: Reopen) -> None:
    store = reopen()
    assert store.find_owner() is None
    for _ in range(2):
        assert store.claim_mailbox(OURS) == OURS
        assert reopen().claim_mailbox(THEIRS) == OURS
    assert reopen().claim_mailbox(THEIRS, take_over=True) == THEIRS
    assert store.find_owner() == THEIRS
    assert store.claim_mailbox(OURS) == THEIRS
    assert store.claim_mailbox(OURS, take_over=True) == OURS
    assert reopen().find_owner() == OURS


def test_of_many_at_once_one_has_it_and_all_know(reopen: Reopen) -> None:
    ledgers = [f"{number:016x}" for number in range(6)]
    stores = [reopen() for _ in ledgers]
    gate = threading.Barrier(len(stores))

    def claim(store: Maildir | ImapMailbox, ledger: str) -> str:
        store.find_owner()
        gate.wait()
        return store.claim_mailbox(ledger)

    with ThreadPoolExecutor(len(stores)) as threads:
        owners = set(threads.map(claim, stores, ledgers))
    assert owners == {reopen().find_owner()}
    assert len(owners) == 1


def test_each_inbox_of_one_account_has_its_own(open_mailbox: Opener, mail_servers: MailServers) -> None:
    with mail_servers.folder_of_its_own("Warranty"):
        assert open_mailbox().claim_mailbox(OURS) == OURS
        assert open_mailbox(folder="Warranty").claim_mailbox(THEIRS) == THEIRS
        assert open_mailbox().find_owner() == OURS


def test_people_who_find_the_mail_can_read_what_it_is_for(mailbox: ImapMailbox, mail_servers: MailServers) -> None:
    mailbox.claim_mailbox(OURS)
    (raw,) = mail_servers.folder("guarantee-email-agent")
    mark = email.message_from_bytes(raw)
    assert mark["X-Agent-Ledger"] == OURS
    assert "run --take-over" in mark.get_payload()
    assert mailbox.list_unprocessed(10).total == 0


def test_a_server_that_takes_no_mark_is_told_and_used(
    proxied: Proxied, caplog: pytest.LogCaptureFixture, mail_servers: MailServers
) -> None:
    mail_servers.empty()
    with proxied(rewrite={b"OK [APPENDUID": b"NO [NOPERM] Permission denied [APPENDUID"}) as (mailbox, _):
        assert mailbox.claim_mailbox(OURS) == OURS
    assert "cannot bear a mark of the ledger" in caplog.text


@pytest.mark.parametrize("command", [b"EXAMINE", b"FETCH"])
def test_a_mark_that_cannot_be_looked_at_is_not_none(proxied: Proxied, open_mailbox: Opener, command: bytes) -> None:
    def refuse(data: bytes) -> bytes | None:
        return data.split()[0] + b" NO [SERVERBUG] Internal error\r\n" if command in data else None

    open_mailbox().claim_mailbox(OURS)
    with proxied(answer=refuse) as (mailbox, _):
        for ask in (mailbox.find_owner, partial(mailbox.claim_mailbox, THEIRS)):
            with refused("mail_unavailable"):
                ask()


def test_a_file_that_names_no_ledger_is_told(tmp_path: Path) -> None:
    store = Maildir(tmp_path / "mailbox", "support@example.com", create=True)
    store.claim_mailbox(OURS)
    (tmp_path / "mailbox/guarantee-email-agent/ledger").write_text("")
    with refused("mail_unsupported") as caught:
        store.find_owner()
    assert "Restore it, or remove it" in caught.value.message
