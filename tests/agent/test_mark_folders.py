"""The agent on a mailbox that keeps no keywords: killed around its moves, in company, and with people in between.

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
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

import pytest
from company import ADDRESS, Company
from exchange_imap import AS_EXCHANGE, refuse_keywords
from mailbox_in_memory import mail
from tcp_proxy import TcpProxy
from waiting import wait_until

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from mail_servers import MailServers

PARENT = "guarantee-email-agent"


class ExchangeDesk:
    """A company whose mailbox is behind the proxy. kill_at: a command at which the agent dies with its servers.

    answer: whether the mail server carries the fatal command out before.
    """

    def __init__(self, company: Company, servers: MailServers, rewrite: Mapping[bytes, bytes]) -> None:
        self.company, self.servers = company, servers
        self.kill_at = b""
        self.carries_out = False
        self.agent: subprocess.Popen[str] | None = None
        self.proxy = TcpProxy(servers.imap_port, self._passes, rewrite, self._answer)
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
        if self._is_fatal(request) and not self.carries_out:
            self._kill()
            return b""
        return refuse_keywords(request)

    def _passes(self, request: bytes) -> bool:
        if self._is_fatal(request):
            self._kill()
            return False
        return True

    def _is_fatal(self, request: bytes) -> bool:
        is_step = request.split()[1:2] == [b"UID"] and self.kill_at in request
        return bool(self.kill_at) and is_step and self.agent is not None

    def _kill(self) -> None:
        assert self.agent is not None
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.agent.pid, signal.SIGKILL)

    def die_at(self, command: bytes, *, carries_out: bool) -> None:
        self.carries_out = carries_out
        self.agent = self.company.start()
        self.kill_at = command
        _, err = self.agent.communicate(timeout=90)
        assert self.agent.returncode == -signal.SIGKILL, err
        self.kill_at = b""

    def finish(self) -> None:
        wait_until(lambda: self.company.run("run", "--once").returncode == 0, 60)

    def folder(self, name: str) -> list[bytes]:
        try:
            return self.servers.folder(f"{PARENT}.{name}")
        except LookupError:
            return []

    def replies(self) -> Counter[str]:
        self.servers.wait_until_sent()
        raws = "\n".join(raw.decode() for raw in self.servers.sent_to_customers())
        return Counter(re.findall(r"^In-Reply-To: (<[^>]*>)\r?$", raws, re.MULTILINE))


@pytest.fixture
def open_desk(
    company: Company, mail_servers: MailServers, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., ExchangeDesk]]:
    monkeypatch.setenv("IMAP_PASSWORD", mail_servers.password)
    monkeypatch.setenv("LEDGER_KEY", secrets.token_hex())
    monkeypatch.setenv("SSL_CERT_FILE", str(mail_servers.ca_file))
    with contextlib.ExitStack() as stack:

        def make(rewrite: Mapping[bytes, bytes] = AS_EXCHANGE) -> ExchangeDesk:
            desk = ExchangeDesk(company, mail_servers, rewrite)
            stack.enter_context(desk.proxy)
            return desk

        yield make


def test_killed_at_every_step_of_a_move(open_desk: Callable[..., ExchangeDesk], mail_servers: MailServers) -> None:
    desk = open_desk()
    for number, carries_out in enumerate((False, True)):
        mail_servers.put("INBOX", mail(f"mail{number}"))
        desk.die_at(b"Answered", carries_out=carries_out)
    desk.finish()
    assert (len(desk.replies()), set(desk.replies().values())) == (2, {1})
    assert desk.company.tickets() == 2
    counts = desk.company.inbox_counts()
    assert (counts["answered"], counts["to answer"]) == (2, 0)
    assert len(desk.folder("Answered")) == 2
