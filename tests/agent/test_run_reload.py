"""A running agent that gets SIGHUP: what it takes over, what it refuses, and what `check` says of it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from company import Company
from waiting import wait_until

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
AGENT = {"poll_interval_s": 0.2, "lease_s": 40, "mail_budget_s": 30}


class Desk:
    """A company whose agent runs, and its log."""

    def __init__(self, company: Company) -> None:
        self.company = company
        self.folder = company.folder
        shutil.copytree(ROOT / "instructions", self.folder / "instructions")
        self.configure()
        self.agent: subprocess.Popen[str] = company.start()
        company.wait_for_log("Watching the inbox")

    def configure(self, agent: dict[str, object] | None = None, **sections: dict[str, object]) -> None:
        self.company.configure(agent=AGENT | (agent or {}), logging={"file": "agent.log"}, **sections)

    def hang_up(self, *expected: str) -> list[str]:
        """Send SIGHUP; the lines that came of it, once all of `expected` are among them."""
        log = self.folder / "agent.log"
        before = len(log.read_text())
        self.agent.send_signal(signal.SIGHUP)
        wait_until(lambda: all(text in log.read_text()[before:] for text in expected), problem=log.read_text)
        return log.read_text()[before:].splitlines()

    def changes(self) -> list[str]:
        return [line for line in self.company.run("check").stdout.splitlines() if "Changes" in line]


@pytest.fixture
def desk(company: Company) -> Desk:
    return Desk(company)


def test_settings_are_taken_over_from_the_next_mail_on_and_what_needs_a_restart_is_named(desk: Desk) -> None:
    (desk.folder / ".env").write_text("IMAP_PASSWORD=hush\n")
    agent = AGENT | {"mode": "drafts", "limits": {"per_hour": 1}}
    desk.company.configure(agent=agent, logging={"file": "other.log", "json": True})
    soon, later = desk.changes()
    assert "for SIGHUP or a restart to take over: agent.limits.per_address" in soon
    assert later.endswith("for a restart to take over: agent.mode")

    desk.agent.send_signal(signal.SIGHUP)
    log = desk.folder / "other.log"
    wait_until(lambda: log.exists() and "needs a restart: IMAP_PASSWORD" in log.read_text())
    assert "needs a restart: agent.mode" in log.read_text()
    assert "hush" not in log.read_text()
    open_files = [os.readlink(file) for file in Path(f"/proc/{desk.agent.pid}/fd").iterdir() if file.exists()]
    assert not any(name.endswith("agent.log") for name in open_files)
    desk.company.receive("first")
    desk.company.wait_for_replies(1)
    assert desk.company.tickets() == 1
    desk.company.receive("second")
    wait_until(lambda: "Email handed over: second" in log.read_text())


def test_what_cannot_be_used_is_refused_as_a_whole_and_mails_go_on(desk: Desk) -> None:
    config, main = desk.folder / "config.yaml", desk.folder / "instructions" / "main.md"
    config.write_text("agent: {poll: 3}\nllm: 4\n")
    lines = desk.hang_up("config.yaml:1: agent.poll: unknown key", "config.yaml:2: llm: must be a mapping")
    assert all(" ERROR Not reloaded, everything stays as it was: config.yaml:" in line for line in lines)
    config.unlink()
    desk.hang_up("config.yaml is gone. Put it back")
    desk.configure({"lease_s": 10})
    desk.hang_up("agent.lease_s is 10, but one mail may take")
    desk.configure({"concurrency": 2})
    main.write_text("no frontmatter")
    desk.hang_up("Not reloaded", "main.md:1: has no frontmatter")
    assert any("agent.concurrency, instructions/main.md" in line for line in desk.changes())
    desk.company.receive("first")
    desk.company.wait_for_replies(1)
    (printed,) = desk.company.stop(desk.agent)
    assert "Reloaded:" not in printed
