"""The agent where its mail server withholds single mails: Dovecot behind a proxy, and Postfix."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

import pytest
from company import ADDRESS, Company
from mailbox_in_memory import mail
from tcp_proxy import TcpProxy
from withheld_mail import WithheldMail

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from mail_servers import MailServers


@pytest.mark.parametrize(
    ("item", "how"),
    [(b"RFC822.SIZE", "NO"), (b"RFC822.SIZE", "break"), (b"BODY.PEEK[]", "NO"), (b"BODY.PEEK[]", "NIL")],
)
def test_ten_mails_that_the_server_withholds_keep_no_other_from_its_answer(
    company: Company, mail_servers: MailServers, monkeypatch: pytest.MonkeyPatch, item: bytes, how: str
) -> None:
    for name, value in (("IMAP_PASSWORD", mail_servers.password), ("SSL_CERT_FILE", str(mail_servers.ca_file))):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("LEDGER_KEY", secrets.token_hex())
    mail_servers.deliver(*(mail(f"mail{number}") for number in range(13)))
    withheld = WithheldMail(item, "NIL" if how == "NIL" else "NO")
    trouble: Any = {"on_request": lambda request: withheld(request) is None} if how == "break" else {"answer": withheld}
    with TcpProxy(mail_servers.imap_port, **trouble) as proxy:
        company.configure(
            mailbox={
                "from_address": ADDRESS,
                "imap": {"host": "localhost", "port": proxy.port, "security": "none"},
                "smtp": {"host": "localhost", "port": mail_servers.smtps_port},
            }
        )
        withheld.uids = set(sorted(mail_servers.uids())[:10])
        done = company.run("run", "--once")
    mail_servers.wait_until_sent()
    assert (done.returncode, len(mail_servers.sent_to_customers())) == (1, 3)
    assert "Emails answered: 3," in done.stdout
    assert done.stderr.count("in step read: mail_unreadable") == 10
