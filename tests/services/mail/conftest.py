import dataclasses
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from mail_servers import MailServers
from mail_stores import Opener, Proxied, open_maildir
from tcp_proxy import TcpProxy

from guarantee_email_agent.config.settings import Imap, MailboxSettings
from guarantee_email_agent.services.mail.imap import ImapMailbox
from guarantee_email_agent.services.mail.imap_replies import ImapSettings
from guarantee_email_agent.services.mail.mail_server import MailServer
from guarantee_email_agent.services.mail.maildir import Maildir

KEY = b"the key of the tests"


@pytest.fixture
def imap_server(mail_servers: MailServers) -> MailServer:
    """Dovecot, without TLS."""
    servers = mail_servers
    return MailServer("IMAP", servers.host, servers.imap_port, "none", servers.user, servers.password, servers.ca_file)


@pytest.fixture
def smtp_server(mail_servers: MailServers) -> MailServer:
    """Postfix, without TLS and without login."""
    return MailServer("SMTP", mail_servers.host, mail_servers.smtp_port, "none", None, None, mail_servers.ca_file)


@pytest.fixture
def open_mailbox(mail_servers: MailServers, imap_server: MailServer, smtp_server: MailServer) -> Iterator[Opener]:
    """Makes mailboxes over Dovecot and Postfix; any of the settings can be given."""
    opened: list[ImapMailbox] = []

    usual = ImapSettings(MailboxSettings(mail_servers.address), imap_server, smtp_server, key=KEY)

    def make(**changes: Any) -> ImapMailbox:
        def change(section: Any) -> Any:
            names = [each.name for each in dataclasses.fields(section) if each.name in changes]
            return dataclasses.replace(section, **{name: changes.pop(name) for name in names})

        settings = change(usual)
        imap = change(Imap("localhost"))
        settings = dataclasses.replace(settings, mailbox=dataclasses.replace(change(settings.mailbox), imap=imap))
        mailbox = ImapMailbox(settings)
        opened.append(mailbox)
        return mailbox

    yield make
    for mailbox in opened:
        mailbox.close()


@pytest.fixture
def mailbox(open_mailbox: Opener) -> ImapMailbox:
    return open_mailbox()


@pytest.fixture
def proxied(open_mailbox: Opener, imap_server: MailServer) -> Proxied:
    """A mailbox behind a proxy, which takes the arguments; settings: those of the mailbox that are not the usual."""

    @contextmanager
    def start(
        *arguments: Any, settings: Mapping[str, Any] = MappingProxyType({}), **options: Any
    ) -> Iterator[tuple[ImapMailbox, TcpProxy]]:
        with TcpProxy(imap_server.port, *arguments, **options) as proxy:
            yield open_mailbox(server=dataclasses.replace(imap_server, port=proxy.port), **settings), proxy

    return start


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Of the Maildir."""
    return tmp_path / "mailbox"


@pytest.fixture
def maildir(directory: Path) -> Maildir:
    return open_maildir(directory)
