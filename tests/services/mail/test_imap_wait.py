from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from mail_stores import Proxied, refused

from guarantee_email_agent.services.mail import imap
from guarantee_email_agent.services.mail.imap import ImapMailbox

if TYPE_CHECKING:
    from mail_servers import MailServers

MAIL = b"From: customer@example.org\r\nSubject: warranty\r\n\r\nSN12345\r\n"
LONG_S = 60.0  # nothing here waits that long, unless it fails


@pytest.fixture(autouse=True)
def _look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imap, "_POLL_S", 0.1)


def wait(mailbox: ImapMailbox, timeout_s: float = LONG_S) -> bool:
    return mailbox.wait(timeout_s, threading.Event())


@contextmanager
def soon(act: Callable[[], object]) -> Iterator[None]:
    timer = threading.Timer(0.5, act)
    timer.start()
    yield
    timer.join()


@pytest.mark.parametrize("emptied", [False, True])
def test_a_mail_that_arrived_between_two_waits_is_noticed_once_also_where_others_left(
    mailbox: ImapMailbox, mail_servers: MailServers, emptied: bool
) -> None:
    mail_servers.deliver(MAIL, MAIL)
    assert wait(mailbox)
    if emptied:
        mail_servers.empty()
    assert not wait(mailbox, 0.2)
    mail_servers.deliver(MAIL)
    assert wait(mailbox)
    assert not wait(mailbox, 0.2)


def test_a_mail_is_noticed_while_it_waits_also_on_a_connection_that_is_made_anew(
    proxied: Proxied, mail_servers: MailServers
) -> None:
    with proxied() as (mailbox, proxy):
        wait(mailbox)
        with soon(proxy.cut):
            assert not wait(mailbox, 1.0)
        assert proxy.accepted == 2
        with soon(lambda: mail_servers.deliver(MAIL)):
            assert wait(mailbox)


def test_waiting_does_not_keep_other_calls_and_ends_when_it_is_told_to(
    mailbox: ImapMailbox, mail_servers: MailServers
) -> None:
    mail_servers.deliver(MAIL)
    wait(mailbox)
    stop = threading.Event()
    waiting = threading.Thread(target=mailbox.wait, args=(LONG_S, stop))
    waiting.start()
    assert mailbox.list_unprocessed(1).total == 1
    stop.set()
    waiting.join()


def test_waiting_without_a_server_is_an_error_and_no_busy_loop(proxied: Proxied) -> None:
    with proxied() as (mailbox, _):
        wait(mailbox)
    with refused("mail_unavailable") as caught:
        wait(mailbox)
    assert caught.value.retryable
