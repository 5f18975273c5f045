import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from mail_servers import MailServers
from mail_stores import Proxied, refused

from guarantee_email_agent.services.mail import imap
from guarantee_email_agent.services.mail.imap import ImapMailbox

MAIL = b"From: customer@example.org\r\nSubject: warranty\r\n\r\nSN12345\r\n"
LONG_S = 60.0  # nothing here waits that long, unless it fails


def wait(mailbox: ImapMailbox, timeout_s: float = LONG_S) -> bool:
    return mailbox.wait(timeout_s, threading.Event())


@contextmanager
def soon(act: Callable[[], object]) -> Iterator[None]:
    timer = threading.Timer(0.5, act)
    timer.start()
    yield
    timer.join()


def test_a_mail_is_noticed_after_others_left(mailbox: ImapMailbox, mail_servers: MailServers) -> None:
    mail_servers.deliver(MAIL, MAIL, MAIL)
    wait(mailbox)
    mail_servers.empty()
    assert not wait(mailbox, 0.2)
    mail_servers.deliver(MAIL)
    assert wait(mailbox)
    assert not wait(mailbox, 0.2)


def test_waiting_does_not_keep_other_calls(mailbox: ImapMailbox, mail_servers: MailServers) -> None:
    mail_servers.deliver(MAIL)
    wait(mailbox)
    stop = threading.Event()
    waiting = threading.Thread(target=mailbox.wait, args=(LONG_S, stop))
    waiting.start()
    assert mailbox.list_unprocessed(1).total == 1
    stop.set()
    waiting.join()


def test_a_server_without_idle_is_looked_at_again_and_again(
    proxied: Proxied, mail_servers: MailServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imap, "_POLL_S", 0.1)
    with proxied(rewrite={b" IDLE": b""}) as (mailbox, _):
        wait(mailbox)
        assert not wait(mailbox, 0.2)
        with soon(lambda: mail_servers.deliver(MAIL)):
            assert wait(mailbox)


def test_an_idle_is_renewed(mailbox: ImapMailbox, mail_servers: MailServers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imap, "_RENEW_S", 0.1)
    wait(mailbox)
    assert not wait(mailbox, 0.5)
    with soon(lambda: mail_servers.deliver(MAIL)):
        assert wait(mailbox)


def test_a_connection_lost_while_waiting_is_made_anew(proxied: Proxied, mail_servers: MailServers) -> None:
    with proxied() as (mailbox, proxy):
        wait(mailbox)
        with soon(proxy.cut):
            assert not wait(mailbox, 1.0)
        assert proxy.accepted == 2
        with soon(lambda: mail_servers.deliver(MAIL)):
            assert wait(mailbox)


@pytest.mark.parametrize("left", [1, 2, 3])
def test_a_mail_that_came_without_a_connection_is_noticed_also_where_others_left(
    proxied: Proxied, mail_servers: MailServers, left: int
) -> None:
    mail_servers.deliver(*[MAIL] * left)
    with proxied() as (mailbox, proxy):
        wait(mailbox)
        proxy.cut()
        mail_servers.empty()
        mail_servers.deliver(MAIL)
        assert wait(mailbox)
        assert not wait(mailbox, 0.2)


def test_waiting_without_a_server_is_an_error_and_no_busy_loop(proxied: Proxied) -> None:
    with proxied() as (mailbox, _):
        wait(mailbox)
    with refused("mail_unavailable") as caught:
        wait(mailbox)
    assert caught.value.retryable


def test_the_first_wait_ends_at_once_and_two_others_both_end(mailbox: ImapMailbox) -> None:
    assert wait(mailbox)
    other = threading.Thread(target=wait, args=(mailbox, 0.3))
    other.start()
    assert not wait(mailbox, 0.3)
    other.join()
