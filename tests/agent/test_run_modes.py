"""The modes as an operator sees them: what `run` and `check` write in each, and what they need for it."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from company import Company

if TYPE_CHECKING:
    pass


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
