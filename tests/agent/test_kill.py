"""Agents killed with SIGKILL while they work: afterwards one reply and one ticket for every mail.

What only real processes can show: that what was written is there for the next one. Simulated histories kill at every
call there is (tests/support/simulation), so each effect dies here where most is at stake. The last one moves mails into
folders in place of keywords: Dovecot behind a proxy that behaves as Exchange does.
"""

import contextlib
import os
import random
import re
import secrets
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import ClassVar

import pytest
from company import ADDRESS, Company
from exchange_imap import AS_EXCHANGE, refuse_keywords
from mail_servers import MailServers
from mailbox_in_memory import mail
from tcp_proxy import TcpProxy
from waiting import wait_until

pytestmark = pytest.mark.slow


PROGRAM = Path(__file__).parent / "programs" / "killed_agent.py"
DEATHS = int(os.environ.get("KILL_TEST_DEATHS", "3"))
"""How many agents die at any moment; for longer trials."""

STEPS = ("read_raw after", "create_ticket after", "send_reply before", "send_reply after", "mark before")
STEPS_OF_A_DRAFT = ("save_draft before", "save_draft after", "mark after")
# Where another mode could do it again.
STEPS_BETWEEN_MODES = (
    "create_ticket after",
    *("send_reply before", "send_reply after", "mark before"),
    *("save_draft before", "save_draft after"),
)


@pytest.fixture
def plan(company: Company) -> Path:
    """By which agents die that the company starts."""
    plan = company.folder / "plan"
    plan.write_text("\n".join(STEPS))
    company.program = [str(PROGRAM), str(plan)]
    return plan


def die_at_every_step(company: Company, plan: Path) -> None:
    for _ in plan.read_text().splitlines():
        agent = company.start()
        _, err = agent.communicate(timeout=90)
        assert agent.returncode == -signal.SIGKILL, err
    assert plan.read_text() == ""


def die_at_any_moment(company: Company, times: int, receive: Callable[[str], object]) -> None:
    """Each agent gets five mails more, and is killed some milliseconds after its first answer."""
    moments = random.Random(20260118)
    for agents in range(times):
        for letter in "abcde":
            receive(f"mail{agents}{letter}")
        agent = company.start()
        for line in agent.stdout:
            if "Email answered" in line:
                break
        time.sleep(moments.uniform(0, 0.1))
        agent.kill()
        agent.communicate()


def finish(company: Company) -> None:
    """Run until nothing is left: a mail in progress at the last death waits for the end of its lease."""
    for _ in range(20):
        if company.run("run", "--once").returncode == 0:
            return
        time.sleep(1)


def assert_one_for_each(company: Company, replies: list[str], mails: int) -> None:
    """One reply, one ticket and one outcome for each mail."""
    answered = answered_mails(replies)
    assert len(answered) == mails
    assert set(answered.values()) == {1}
    assert company.tickets() == mails
    assert {kind: count for kind, count in company.inbox_counts().items() if count} == {"answered": mails}


def answered_mails(raws: list[str]) -> Counter[str]:
    """How many of these mails answer which Message-ID."""
    return Counter(re.findall(r"^In-Reply-To: (<[^>]*>)\r?$", "\n".join(raws), re.MULTILINE))


def drafts(company: Company) -> list[str]:
    return [file.read_text() for file in (company.folder / "mailbox").glob(".Drafts/[cn]*/*")]


class TestMaildir:
    AGENT: ClassVar = {"poll_interval_s": 0.2, "mail_budget_s": 2.5, "max_attempts": 50}

    def test_killed_at_every_step(self, company: Company, plan: Path) -> None:
        company.configure(agent=self.AGENT)
        for number in range(12):
            company.receive(f"mail{number:02d}")
        die_at_every_step(company, plan)
        finish(company)
        assert_one_for_each(company, company.replies(), 12)

    def test_killed_at_every_step_of_a_draft(self, company: Company, plan: Path) -> None:
        company.configure(agent={**self.AGENT, "mode": "drafts"})
        plan.write_text("\n".join(STEPS_OF_A_DRAFT))
        for number in range(8):
            company.receive(f"mail{number:02d}")
        die_at_every_step(company, plan)
        finish(company)
        assert sorted(answered_mails(drafts(company)).values()) == [1] * 8
        assert (company.replies(), company.tickets()) == ([], 0)
        assert {name: count for name, count in company.inbox_counts().items() if count} == {"drafted": 8}

    def test_each_start_in_another_mode(self, company: Company, plan: Path) -> None:
        """Whatever the agent died at, the next one in its mode does not do it a second time in its own way."""
        modes = ("answer", "observe", "drafts")
        plan.write_text("")
        for number, step in enumerate(STEPS_BETWEEN_MODES):
            company.receive(f"mail{number:02d}")
            mode = "drafts" if "save_draft" in step else "answer"
            plan.write_text(step)
            company.configure(agent={**self.AGENT, "mode": mode})
            agent = company.start()
            _, err = agent.communicate(timeout=90)
            assert agent.returncode == -signal.SIGKILL, err
            others = [other for other in modes if other != mode]
            company.configure(agent={**self.AGENT, "mode": others[number % len(others)]})
            company.run("run", "--once")
        company.configure(agent={**self.AGENT, "mode": modes[-1]})
        finish(company)
        written = answered_mails([*company.replies(), *drafts(company)])
        counts = company.inbox_counts()
        assert set(written.values()) == {1}
        assert (len(written), counts["to answer"]) == (counts["answered"] + counts["drafted"], 0)

    def test_killed_at_any_moment_while_another_program_takes_the_replies(self, company: Company) -> None:
        company.configure(agent=self.AGENT)
        taken: list[str] = []
        done = threading.Event()

        def take() -> None:
            while not done.wait(0.002):
                for file in (company.folder / "mailbox").glob(".Sent/cur/*"):
                    taken.append(file.read_text())
                    file.unlink()

        with ThreadPoolExecutor(1) as threads:
            taking = threads.submit(take)
            try:
                die_at_any_moment(company, 2 * DEATHS, company.receive)
                finish(company)
                wait_until(lambda: not company.replies())
            finally:
                done.set()
            taking.result()
        assert_one_for_each(company, taken, 10 * DEATHS)


class TestImap:
    """Dovecot and Postfix; what reached the customers' mailbox counts."""

    AGENT: ClassVar = {"poll_interval_s": 0.2, "mail_budget_s": 6, "max_attempts": 50}

    @pytest.fixture
    def mailbox(self, mail_servers: MailServers, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
        """The section `mailbox`, for empty mailboxes."""
        monkeypatch.setenv("IMAP_PASSWORD", mail_servers.password)
        return {
            "from_address": ADDRESS,
            "imap": {"host": "localhost", "port": mail_servers.imaps_port, "ca_file": str(mail_servers.ca_file)},
            "smtp": {"host": "localhost", "port": mail_servers.smtps_port},
            "copy_wait_s": 2,
        }

    def test_killed_at_every_step(
        self, company: Company, plan: Path, mail_servers: MailServers, mailbox: dict[str, object]
    ) -> None:
        company.configure(mailbox=mailbox, agent=self.AGENT)
        mail_servers.deliver(*(mail(f"mail{number}") for number in range(12)))
        die_at_every_step(company, plan)
        finish(company)
        mail_servers.wait_until_sent()

        assert_one_for_each(company, [raw.decode() for raw in mail_servers.sent_to_customers()], 12)

    def test_killed_at_every_step_of_a_draft(
        self, company: Company, plan: Path, mail_servers: MailServers, mailbox: dict[str, object]
    ) -> None:
        company.configure(mailbox=mailbox, agent={**self.AGENT, "mode": "drafts"})
        plan.write_text("\n".join(STEPS_OF_A_DRAFT))
        mail_servers.deliver(*(mail(f"mail{number}") for number in range(8)))
        die_at_every_step(company, plan)
        finish(company)

        stored = answered_mails([raw.decode() for raw in mail_servers.folder("Drafts")])
        assert sorted(stored.values()) == [1] * 8
        assert mail_servers.sent_to_customers() == []
        assert {name: count for name, count in company.inbox_counts().items() if count} == {"drafted": 8}

    def test_killed_at_any_moment(
        self, company: Company, mail_servers: MailServers, mailbox: dict[str, object]
    ) -> None:
        company.configure(mailbox=mailbox, agent=self.AGENT)
        die_at_any_moment(company, DEATHS, lambda name: mail_servers.deliver(mail(name)))
        finish(company)
        mail_servers.wait_until_sent()

        assert_one_for_each(company, [raw.decode() for raw in mail_servers.sent_to_customers()], 5 * DEATHS)


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
