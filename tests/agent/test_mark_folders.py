"""The agent on a mailbox that keeps no keywords, killed around its moves.

Dovecot behind a proxy that behaves as Exchange does, and Postfix; what reached the customers' mailbox counts.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import signal
import subprocess
from collections import Counter

import pytest
from company import ADDRESS, Company
from exchange_imap import AS_EXCHANGE, refuse_keywords
from mail_servers import MailServers
from mailbox_in_memory import mail
from tcp_proxy import TcpProxy
from waiting import wait_until

pytestmark = pytest.mark.slow


class ExchangeDesk:
    """A company whose mailbox is behind the proxy."""

    def __init__(self, company: Company, servers: MailServers) -> None:
        self.company = company
        self._is_killing = self._carries_out = False
        self._agent: subprocess.Popen[str] | None = None
        self.proxy = TcpProxy(servers.imap_port, self._passes, AS_EXCHANGE, self._answer)
        company.configure(
            mailbox={
                "from_address": ADDRESS,
                "imap": {"host": "localhost", "port": self.proxy.port, "security": "none"},
                "smtp": {"host": "localhost", "port": servers.smtps_port},
                "copy_wait_s": 2,
            },
            agent={"poll_interval_s": 0.2, "mail_budget_s": 6, "max_attempts": 50},
        )

    def _answer(self, request: bytes) -> bytes | None:
        return b"" if not self._carries_out and self._kills(request) else refuse_keywords(request)

    def _passes(self, request: bytes) -> bool:
        return not self._kills(request)

    def _kills(self, request: bytes) -> bool:
        """Whether it is the command to move a mail, at which the agent dies."""
        is_fatal = self._is_killing and request.split()[1:2] == [b"UID"] and b"Answered" in request
        if is_fatal and self._agent is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._agent.pid, signal.SIGKILL)
        return is_fatal

    def die_at_a_move(self, *, carries_out: bool) -> None:
        """carries_out: whether the mail server does so before."""
        self._carries_out = carries_out
        self._agent = self.company.start()
        self._is_killing = True
        _, err = self._agent.communicate(timeout=90)
        assert self._agent.returncode == -signal.SIGKILL, err
        self._is_killing = False


def test_killed_at_every_step_of_a_move(
    company: Company, mail_servers: MailServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IMAP_PASSWORD", mail_servers.password)
    monkeypatch.setenv("LEDGER_KEY", secrets.token_hex())
    monkeypatch.setenv("SSL_CERT_FILE", str(mail_servers.ca_file))
    desk = ExchangeDesk(company, mail_servers)
    with desk.proxy:
        for number, carries_out in enumerate((False, True)):
            mail_servers.put("INBOX", mail(f"mail{number}"))
            desk.die_at_a_move(carries_out=carries_out)
        wait_until(lambda: company.run("run", "--once").returncode == 0, 60)
        counts = company.inbox_counts()
    mail_servers.wait_until_sent()
    sent = "\n".join(raw.decode() for raw in mail_servers.sent_to_customers())
    replies = Counter(re.findall(r"^In-Reply-To: (<[^>]*>)\r?$", sent, re.MULTILINE))
    assert (len(replies), set(replies.values()), company.tickets()) == (2, {1}, 2)
    assert (counts["answered"], counts["to answer"]) == (2, 0)
    assert len(mail_servers.folder("guarantee-email-agent.Answered")) == 2
