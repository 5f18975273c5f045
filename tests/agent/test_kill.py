"""Agents and servers killed with SIGKILL at every step: afterwards one reply and one ticket for every mail."""

from __future__ import annotations

import os
import random
import re
import secrets
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import pytest
from company import ADDRESS, Company

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from mail_servers import MailServers

PROXY = Path(__file__).parent / "programs" / "kill_proxy.py"
DEATHS = int(os.environ.get("KILL_TEST_DEATHS", "5"))
"""How many agents die at any moment; for longer trials."""

STEPS = [
    "read_raw after agent",
    *(
        f"{tool} {phase} {victim}"
        for tool in ("create_ticket", "send_reply", "mark")
        for phase in ("before", "after")
        for victim in ("agent", "both")
    ),
]


def behind_proxies(plan: Path, mail: tuple[str, ...]) -> dict[str, object]:
    """The section `mcp` with the servers that have effects behind a proxy that kills at the steps of `plan`."""
    servers = {"ticketing_system": ("ticketing", "--database", "tickets.db"), "gmail": ("mail", *mail)}
    return {
        name: {
            "command": sys.executable,
            "args": [
                *(str(PROXY), str(plan), "--"),
                *(sys.executable, "-P", "-m", f"guarantee_email_agent.mcp_servers.{module}", *args),
            ],
            "env": ["IMAP_PASSWORD", "MAIL_KEY"] if "--imap-host" in args else [],
        }
        for name, (module, *args) in servers.items()
    }


def die_at_every_step(company: Company, plan: Path) -> None:
    deaths = 0
    while plan.read_text():
        agent = company.start()
        _, err = agent.communicate(timeout=90)
        assert agent.returncode == -signal.SIGKILL, err
        deaths += 1
    assert deaths == len(STEPS)


def die_at_any_moment(company: Company, times: int, receive_five: Callable[[int], None]) -> None:
    """Each agent gets five mails more, and is killed some milliseconds after its first answer."""
    moments = random.Random(20260118)
    for number in range(times):
        receive_five(5 * number)
        agent = company.start()
        assert agent.stdout is not None
        for line in agent.stdout:
            if "Email answered" in line:
                break
        time.sleep(moments.uniform(0, 0.1))
        agent.kill()
        agent.communicate()


def finish(company: Company) -> None:
    """Run until nothing waits any more: what was in work at the last death waits for the end of its lease."""
    for _ in range(20):
        if company.run("run", "--once").returncode == 0:
            return
        time.sleep(1)


def assert_one_for_each(company: Company, replies: list[str], mails: int) -> None:
    """One reply, one ticket and one outcome for each mail."""
    answered = Counter(re.findall(r"^In-Reply-To: (<[^>]*>)\r?$", "\n".join(replies), re.MULTILINE))
    assert len(answered) == mails
    assert set(answered.values()) == {1}
    assert company.tickets() == mails
    assert company.inbox_counts() == {
        "unprocessed": 0,
        "answered": mails,
        "not answered": 0,
        "quarantined": 0,
        "unknown": 0,
    }


class TestMaildir:
    AGENT: ClassVar = {"poll_interval_s": 0.2, "lease_s": 3, "mail_budget_s": 2.5, "max_attempts": 50}

    def test_killed_at_every_step(self, company: Company) -> None:
        plan = company.folder / "plan"
        plan.write_text("\n".join(STEPS))
        company.configure(mcp=behind_proxies(plan, ("--maildir", "mailbox", "--from", ADDRESS)), agent=self.AGENT)
        for number in range(20):
            company.receive(f"mail{number:02d}")
        die_at_every_step(company, plan)
        finish(company)

        assert_one_for_each(company, company.replies(), 20)

    def test_killed_at_any_moment(self, company: Company) -> None:
        company.configure(agent=self.AGENT)

        def receive_five(first: int) -> None:
            for number in range(first, first + 5):
                company.receive(f"mail{number:02d}")

        die_at_any_moment(company, DEATHS, receive_five)
        finish(company)

        assert_one_for_each(company, company.replies(), 5 * DEATHS)


class TestImap:
    """Dovecot and Postfix; what reached the customers' mailbox counts."""

    AGENT: ClassVar = {"poll_interval_s": 0.2, "lease_s": 9, "mail_budget_s": 6, "max_attempts": 50}

    @pytest.fixture
    def mailbox(self, mail_servers: MailServers, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
        """The section `mailbox`, for empty mailboxes."""
        mail_servers.empty()
        monkeypatch.setenv("IMAP_PASSWORD", mail_servers.password)
        monkeypatch.setenv("MAIL_KEY", secrets.token_hex())
        return {
            "from_address": ADDRESS,
            "imap": {"host": "localhost", "port": mail_servers.imaps_port, "ca_file": str(mail_servers.ca_file)},
            "smtp": {"host": "localhost", "port": mail_servers.smtps_port},
            "copy_wait_s": 2,
        }

    def test_killed_at_every_step(
        self, company: Company, mail_servers: MailServers, mailbox: dict[str, object]
    ) -> None:
        plan = company.folder / "plan"
        plan.write_text("\n".join(STEPS))
        arguments = {
            "--from": ADDRESS,
            "--imap-host": "localhost",
            "--imap-port": str(mail_servers.imaps_port),
            "--smtp-host": "localhost",
            "--smtp-port": str(mail_servers.smtps_port),
            "--ca-file": str(mail_servers.ca_file),
            "--copy-wait": "2",
        }
        mail = tuple(part for option in arguments.items() for part in option)
        company.configure(mailbox=mailbox, mcp=behind_proxies(plan, mail), agent=self.AGENT)
        mail_servers.deliver(*(mail_to_us(number) for number in range(20)))
        die_at_every_step(company, plan)
        finish(company)
        mail_servers.wait_until_sent()

        assert_one_for_each(company, [raw.decode() for raw in mail_servers.sent_to_customers()], 20)

    def test_killed_at_any_moment(
        self, company: Company, mail_servers: MailServers, mailbox: dict[str, object]
    ) -> None:
        company.configure(mailbox=mailbox, agent=self.AGENT)

        def receive_five(first: int) -> None:
            mail_servers.deliver(*(mail_to_us(number) for number in range(first, first + 5)))

        die_at_any_moment(company, DEATHS, receive_five)
        finish(company)
        mail_servers.wait_until_sent()

        assert_one_for_each(company, [raw.decode() for raw in mail_servers.sent_to_customers()], 5 * DEATHS)


def mail_to_us(number: int) -> bytes:
    return (
        f"From: customer{number}@example.org\r\nTo: {ADDRESS}\r\nSubject: Dryer {number}\r\n"
        f"Date: Sun, 18 Jan 2026 10:00:00 +0000\r\nMessage-ID: <mail{number}@example.org>\r\n\r\n"
        "My dryer SN12345 is broken.\r\n"
    ).encode()
