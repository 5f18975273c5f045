"""What the tests of a Maildir and of an IMAP mailbox ask alike."""

import email
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from tcp_proxy import TcpProxy

from guarantee_email_agent.services.call_errors import ToolError
from guarantee_email_agent.services.mail.imap import ImapMailbox
from guarantee_email_agent.services.mail.imap_session import connect
from guarantee_email_agent.services.mail.mail_server import MailServer
from guarantee_email_agent.services.mail.mail_store import INBOX_STATES, MailStore
from guarantee_email_agent.services.mail.maildir import Maildir
from guarantee_email_agent.services.mail.smtp import try_login
from guarantee_email_agent.services.ports import Reply

Opener = Callable[..., ImapMailbox]
Proxied = Callable[..., AbstractContextManager[tuple[ImapMailbox, TcpProxy]]]
REPLY = Reply("customer@example.org", "Re: warranty", "It is valid.\n", "<reply-1@example.com>")


def open_maildir(directory: Path) -> Maildir:
    return Maildir(directory, "support@example.com", create=True)


def log_in(server: MailServer) -> None:
    """Connect as well, whichever kind it is."""
    if server.kind == "IMAP":
        connect(server).logout()
    else:
        try_login(server)


def login_refusal(server: MailServer) -> ToolError:
    with pytest.raises(ToolError) as caught:
        log_in(server)
    return caught.value


def ids(mailbox: MailStore, limit: int = 100) -> list[str]:
    return [entry.id for entry in mailbox.list_unprocessed(limit).entries]


def message_ids(raws: list[bytes]) -> list[str]:
    return [str(email.message_from_bytes(raw)["Message-ID"]) for raw in raws]


def counts(**marked: int) -> dict[str, int]:
    return dict.fromkeys(map(str, INBOX_STATES), 0) | marked


@contextmanager
def refused(code: str) -> Iterator[pytest.ExceptionInfo[ToolError]]:
    with pytest.raises(ToolError) as caught:
        yield caught
    assert caught.value.code == code
