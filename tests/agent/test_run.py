"""`run` as an operator sees it: real processes, real servers over stdio, a real Maildir."""

import re
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from company import Company

pytestmark = pytest.mark.slow

LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d (DEBUG|INFO|WARNING|ERROR) .*")


class TestStart:
    def test_sigterm_ends_it_before_anything_is_loaded(self) -> None:
        """As the first process of a container, which a signal without a handler does not reach."""
        program = """
import signal, sys, types
from guarantee_email_agent.__main__ import main
sys.argv = ["guarantee-email-agent", "run"]
signal.signal(signal.SIGTERM, signal.SIG_IGN)
loading = types.ModuleType("guarantee_email_agent.cli")
loading.__getattr__ = lambda name: signal.raise_signal(signal.SIGTERM)
sys.modules[loading.__name__] = loading
main()
sys.exit(1)
"""
        assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


class TestOnce:
    def test_our_own_services_need_no_sdk(self, company: Company) -> None:
        """Which takes a second to load, and 40 MB."""
        company.receive("valid")
        program = (
            "import sys; from guarantee_email_agent.cli import run; code = run(['run', '--once']);"
            "print([name for name in ('anthropic', 'mcp', 'pydantic', 'uvicorn') if name in sys.modules]);"
            "sys.exit(code)"
        )
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=company.folder, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "[]"), done.stderr
        assert len(company.replies()) == 1

    @pytest.mark.slow
    @pytest.mark.parametrize("module", [True, False])
    def test_our_own_services_may_be_mcp_servers(self, company: Company, module: bool) -> None:
        """As a configuration of an earlier version has them, also under the earlier name of the mailbox."""
        pytest.importorskip("mcp", reason="mcp is not installed: uv sync --group ci")

        def server(name: str, *options: str) -> dict[str, object]:
            started = (
                (f"guarantee_email_agent.mcp_servers.{name}",)
                if module
                else ("guarantee_email_agent", "mcp-server", name)
            )
            return {"command": sys.executable, "args": ["-m", *started, *options]}

        company.configure(
            mcp={
                "gmail": server("mail", "--from", "support@example.com", "--maildir", "mailbox"),
                "warranty_api": server("warranty", "--file", "warranties.csv"),
                "ticketing_system": server("ticketing", "--database", "tickets.db"),
            }
        )
        company.receive("valid")
        done = company.run("run", "--once")
        assert (done.returncode, len(company.replies()), company.tickets()) == (0, 1, 1), done.stderr
        assert done.stderr.count("\n") == 1
        assert "config.yaml:1: mcp.gmail is read as mailbox.server, its name from now on. Rename it" in done.stderr

    def test_answers_what_is_there_and_exits(self, company: Company) -> None:
        company.receive("valid")
        company.receive("expired", "Is SN20077 still under warranty?")
        company.receive("robot", headers="Auto-Submitted: auto-replied\n")
        done = company.run("run", "--once")

        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        assert len(company.replies()) == 2
        assert company.tickets() == 1
        counts = company.inbox_counts()
        assert len(counts) == 9
        assert {name: count for name, count in counts.items() if count} == {"answered": 2, "not answered": 1}


@pytest.mark.slow
class TestWatching:
    def test_mail_that_comes_is_answered_until_sigterm(self, company: Company) -> None:
        agent = company.start()
        company.receive("first")
        company.wait_for_replies(1)
        company.receive("second")
        company.wait_for_replies(2)
        (printed,) = company.stop(agent)
        assert "Emails answered: 2" in printed
        assert {LINE.fullmatch(line)[1] for line in printed.splitlines()} == {"INFO"}

    def test_sigint_stops_at_once(self, company: Company) -> None:
        agent = company.start()
        company.receive("first")
        company.wait_for_replies(1)
        assert company.server_processes(agent) == {}  # it is one process
        company.stop(agent, by=signal.SIGINT, code=130)

    @pytest.mark.parametrize("shared", ["sqlite", "postgresql"])
    def test_two_agents_on_one_inbox_answer_every_mail_once(
        self, company: Company, shared: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if shared == "postgresql":
            monkeypatch.setenv("LEDGER_URL", request.getfixturevalue("postgresql_url"))
            monkeypatch.setenv("LEDGER_KEY", "the same for both")
        agents = [company.start(), company.start()]
        for number in range(40):
            company.receive(f"mail{number:02d}")
        company.wait_for_replies(40)
        company.stop(*agents)

        assert len(company.replies()) == 40
        assert company.tickets() == 40
        assert (company.folder / "ledger.db").exists() == (shared == "sqlite")

    def test_a_log_that_was_moved_is_begun_anew_and_sighup_ends_as_sigterm_does(self, company: Company) -> None:
        log = company.folder / "agent.log"
        company.configure(
            agent={"poll_interval_s": 0.2},
            logging={"file": "agent.log"},
            mailbox={"from_address": "support@example.com"},
        )
        agent = company.start()
        company.receive("first")
        company.wait_for_log("Email answered: first")
        log.rename(company.folder / "agent.log.1")
        company.receive("second")
        company.wait_for_log("Email answered: second")
        company.stop(agent, by=signal.SIGHUP)

        assert "second" not in (company.folder / "agent.log.1").read_text()


def files(folder: Path) -> dict[str, tuple[int, int]]:
    """Every path below a folder, with what changes when it is written: its size and its time in nanoseconds."""
    found = {path: path.lstat() for path in (folder, *folder.rglob("*"))}
    return {
        str(path.relative_to(folder)): (0 if stat.S_ISDIR(status.st_mode) else status.st_size, status.st_mtime_ns)
        for path, status in found.items()
    }


class TestObserve:
    def test_nothing_is_written_but_the_ledger(self, company: Company) -> None:
        company.receive("valid")
        (company.folder / "mailbox" / "tmp" / "left-behind").touch()
        before = files(company.folder / "mailbox")
        checked = company.run("check", "--mode", "observe")
        observed = company.run("run", "--once", "--mode", "observe")

        assert (checked.returncode, observed.returncode) == (0, 0), checked.stdout + observed.stderr
        assert "Email would be answered: valid (valid-warranty, a ticket)" in observed.stdout
        assert files(company.folder / "mailbox") == before
        made = {path.name for path in company.folder.iterdir()} - {"mailbox", "config.yaml", "warranties.csv"}
        assert made == {"ledger.db", "ledger.db.key"}


class TestAnotherLedger:
    """Two ledgers on one mailbox would have each mail answered twice."""

    @pytest.mark.slow
    def test_is_refused_until_it_takes_over(self, company: Company) -> None:
        company.receive("first")
        assert company.run("run", "--once").returncode == 0
        for setting in ({"ledger": "other.db"}, {"ledger": "other.db", "mode": "drafts"}):
            company.configure(agent=setting)
            company.receive("second")
            done = company.run("run", "--once")
            assert done.returncode == 2
            (line,) = done.stderr.splitlines()
            assert "This mailbox is served with another ledger" in line
            assert "run --take-over" in line
            checked = company.run("check")
            assert checked.returncode == 2
            assert "✗ Mailbox: This mailbox is served with another ledger" in checked.stdout
        company.configure(agent={"ledger": "other.db"})
        done = company.run("run", "--once", "--take-over")
        assert done.returncode == 0
        assert "from now on it is served with" in done.stderr
        company.wait_for_replies(2)
        company.configure(agent={})
        assert company.run("run", "--once").returncode == 2

    def test_is_not_suspected_of_a_ledger_that_cannot_be_read(self, company: Company) -> None:
        assert company.run("run", "--once").returncode == 0
        (company.folder / "ledger.db").write_bytes(b"no database at all, but a file of some length")
        checked = company.run("check", "--inbox")
        assert checked.returncode == 1
        assert "✗ Ledger: " in checked.stdout
        assert "✓ Mailbox: " in checked.stdout
        assert "--take-over" not in checked.stdout  # whoever followed it would have mails answered twice
        assert "Inbox: " not in checked.stdout

    @pytest.mark.slow
    def test_ends_the_agents_of_the_one_before(self, company: Company) -> None:
        agent = company.start()
        company.receive("first")
        company.wait_for_replies(1)
        company.configure(agent={"ledger": "other.db"})
        assert company.run("run", "--once", "--take-over").returncode == 0
        assert "This mailbox is served with another ledger" in "".join(agent.communicate(timeout=60))
        assert agent.returncode == 2
