"""A small company's support desk in a folder, and agents that work there: real processes over real files."""

import json
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from waiting import PATIENCE_S, wait_until

ADDRESS = "support@example.com"
SHORT_TIMES = {"poll_interval_s": 0.2, "mail_budget_s": 2}
WHOLE_INBOX = {"answer_since": "all", "max_delay_days": None, "limits": {"per_address": 1000, "per_thread": 1000}}
"""One customer writes all mails, some of them before the agent is first started."""


class Company:
    """A support desk in a folder: a Maildir, a warranty list, tickets, a ledger, and agents that work there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.agents: list[subprocess.Popen[str]] = []
        self.program = ["-m", "guarantee_email_agent"]
        """Of the agents that `start` starts."""
        for part in ("cur", "new", "tmp"):
            (folder / "mailbox" / part).mkdir(parents=True)
        (folder / "warranties.csv").write_text(
            "serial_number,expiration_date,coverage\nSN12345,2099-12-31,full\nSN20077,2020-02-28,full\n"
        )
        self.configure()

    def configure(self, **sections: Mapping[str, object]) -> None:
        """Settings of `config.yaml`; what is not named stays as a test needs it."""
        settings = {
            "mailbox": {"from_address": ADDRESS},
            **sections,
            "agent": {"require_eval": False, **WHOLE_INBOX, **sections.get("agent", SHORT_TIMES)},
        }
        (self.folder / "config.yaml").write_text(json.dumps(settings))

    def receive(self, name: str, text: str = "My dryer SN12345 is broken.", headers: str = "") -> None:
        draft = self.folder / "mailbox" / "tmp" / name
        draft.write_text(
            f"From: customer@example.com\nTo: {ADDRESS}\nSubject: Dryer {name}\n"
            f"Date: Sun, 18 Jan 2026 10:00:00 +0000\nMessage-ID: <{name}@example.com>\n{headers}\n{text}\n"
        )
        draft.rename(self.folder / "mailbox" / "new" / name)

    def run(self, *arguments: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "guarantee_email_agent", *arguments],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def start(self) -> subprocess.Popen[str]:
        agent = subprocess.Popen(
            [sys.executable, *self.program, "run"],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.agents.append(agent)
        return agent

    def stop(self, *agents: subprocess.Popen[str], by: signal.Signals = signal.SIGTERM, code: int = 0) -> list[str]:
        """Signal them all; what each printed, stdout and stderr together."""
        for agent in agents:
            agent.send_signal(by)
        printed = ["".join(agent.communicate(timeout=PATIENCE_S)) for agent in agents]
        assert [agent.returncode for agent in agents] == [code] * len(agents), printed
        return printed

    def wait_for_replies(self, count: int, timeout_s: float = PATIENCE_S) -> None:
        wait_until(lambda: len(self.replies()) >= count, timeout_s, lambda: f"There are {len(self.replies())} replies")
        assert len(self.replies()) == count

    def wait_for_log(self, text: str, timeout_s: float = PATIENCE_S) -> None:
        log = self.folder / "agent.log"
        wait_until(lambda: log.exists() and text in log.read_text(), timeout_s, log.read_text)

    def replies(self) -> list[str]:
        return [file.read_text() for file in sorted((self.folder / "mailbox").glob(".Sent/[cn]*/*"))]

    def tickets(self) -> int:
        if not (self.folder / "tickets.db").exists():
            return 0
        with closing(sqlite3.connect(self.folder / "tickets.db")) as database:
            return int(database.execute("SELECT count(*) FROM tickets").fetchone()[0])

    def inbox_counts(self) -> dict[str, int]:
        checked = self.run("check", "--inbox").stdout
        return {
            name: int(count) for name, count in re.findall(r"^    ([a-z ]+)(?: \(.*\))?: (\d+)$", checked, re.MULTILINE)
        }

    @staticmethod
    def server_processes(agent: subprocess.Popen[str]) -> dict[int, str]:
        """The command line of each server of somebody else that an agent has started, by its process id."""
        children = Path(f"/proc/{agent.pid}/task/{agent.pid}/children").read_text().split()
        return {int(pid): Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ") for pid in children}

    def close(self) -> None:
        for agent in self.agents:
            if agent.poll() is None:
                agent.kill()
            agent.communicate()
