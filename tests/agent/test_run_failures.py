"""What an operator gets wrong, and what breaks under a running agent: one clear line, the right code, nothing lost."""

import os
import re
import sqlite3
import time
from contextlib import closing

import pytest
from company import ADDRESS, Company

pytestmark = pytest.mark.slow
YEAR_2200 = 7_258_118_400.0
NOBODY = 65_534
DAY_S = 86_400


def refusal(company: Company, code: int) -> str:
    """The one line on stderr with which both commands end; `check` has it on stdout, behind its sign."""
    done = company.run("run", "--once")
    assert done.returncode == code, done.stderr
    (line,) = done.stderr.splitlines()
    checked = company.run("check")
    assert checked.returncode == code
    assert line.removeprefix("guarantee-email-agent: ") in checked.stdout.replace("\n    ", "\n")
    return line


class TestAtTheStart:
    def test_an_inbox_that_is_missing(self, company: Company) -> None:
        (company.folder / "mailbox").rename(company.folder / "elsewhere")
        assert "mailbox" in refusal(company, 3)

    def test_an_address_for_metrics_that_is_another_machines(self, company: Company) -> None:
        company.configure(metrics={"listen": "192.0.2.1:9464"})
        done, checked = company.run("run"), company.run("check")
        assert (done.returncode, checked.returncode) == (2, 2)
        (line,) = done.stderr.splitlines()
        assert f"✗ Metrics: {line.removeprefix('guarantee-email-agent: ')}\n" in checked.stdout

    @pytest.mark.parametrize(
        ("sections", "code", "message"),
        [
            ({"mailbox": {}}, 2, "mailbox.from_address is missing"),
            ({"mailbox": {"from_address": ADDRESS, "imap": {"host": "localhost"}}}, 2, "IMAP_PASSWORD is not set"),
            ({"agent": {"ledger": "nowhere/ledger.db"}}, 2, "nowhere"),
            ({"mcp": {"warranty_api": {"command": "no-such-program"}}}, 3, "no-such-program"),
            ({"mcp": {"warranty_api": {"command": "echo", "args": ["rubbish"]}}}, 3, "warranty_api"),
        ],
        ids=["no address", "no password", "no folder for the ledger", "no server program", "a server that ends"],
    )
    def test_a_setting_that_cannot_work(
        self, company: Company, sections: dict[str, object], code: int, message: str
    ) -> None:
        company.configure(**({"agent": {}} | sections))
        assert message in refusal(company, code)

    def test_a_mail_server_that_is_not_there(self, company: Company, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("IMAP_PASSWORD", "hush")
        server = {"host": "127.0.0.1", "port": 9, "security": "none"}
        company.configure(mailbox={"from_address": ADDRESS, "imap": server, "smtp": server}, agent={})
        line = refusal(company, 3)
        assert "127.0.0.1" in line
        assert "hush" not in line

    def test_all_problems_are_reported_at_once(self, company: Company) -> None:
        (company.folder / "warranties.csv").unlink()
        company.configure(mailbox={}, logging={"file": "nowhere/agent.log"})
        checked = company.run("check")
        assert checked.returncode == 2
        assert [line.partition(":")[0] for line in checked.stdout.splitlines() if line.startswith("✗")] == [
            "✗ Log",
            "✗ Mailbox",
            "✗ Warranty system",
        ]

    @pytest.mark.parametrize("mode", ["answer", "observe"])
    def test_a_first_start_by_a_clock_that_is_behind(self, company: Company, mode: str) -> None:
        """All of the inbox would come after it, and be answered."""
        company.configure(agent={"answer_since": "first-start", "mode": mode})
        company.receive("first")
        mail, now = company.folder / "mailbox" / "new" / "first", time.time()
        os.utime(mail, (now, now + 3 * DAY_S))
        done = company.run("run", "--once")
        assert done.returncode == 2
        assert re.fullmatch(
            r"guarantee-email-agent: The clock says \d{4}-\d\d-\d\d, but the inbox has mail of \d{4}-\d\d-\d\d\. Set "
            r"the clock, or agent\.answer_since to the date from which on mails are answered\n",
            done.stderr,
        )
        os.utime(mail, (now, now - 3 * DAY_S))  # the clock was set
        right = company.run("run", "--once")
        assert (right.returncode, right.stderr) == (0, "")
        assert "Inbox: 0 mails to answer, 1 too old" in right.stdout

    def test_a_clock_that_is_behind_at_a_later_start(self, company: Company) -> None:
        """A machine without a battery starts before it has the time: its agent goes on."""
        company.configure(agent={"answer_since": "first-start"})
        company.run("run", "--once")
        company.receive("later")
        os.utime(company.folder / "mailbox" / "new" / "later", (time.time(), time.time() + 3 * DAY_S))
        done = company.run("run", "--once")
        assert done.returncode == 0
        assert "Inbox: 1 mails to answer, 0 too old" in done.stdout
        with closing(sqlite3.connect(company.folder / "ledger.db")) as ledger, ledger:
            ledger.execute("UPDATE ledger_facts SET value = value + 86400.0 WHERE name LIKE 'first_start %'")
        company.receive("meanwhile")
        done = company.run("run", "--once")
        assert re.search(r"ERROR The first start, .* UTC, lies in the future: the clock was ahead then", done.stderr)
        assert "Emails answered: 1," in done.stdout

    def test_a_ledger_of_another_key(self, company: Company, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("LEDGER_KEY", "one")
        company.run("run", "--once")
        monkeypatch.setenv("LEDGER_KEY", "two")
        assert "LEDGER_KEY" in refusal(company, 2)

    def test_a_check_without_the_key_keeps_no_run_with_it_from_starting(
        self, company: Company, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        company.receive("first")
        checked = company.run("check", "--inbox")
        assert checked.returncode == 0
        assert "ledger.db (the first run makes it)" in checked.stdout
        assert "to answer: 1" in checked.stdout
        assert not list(company.folder.glob("ledger.db*"))
        monkeypatch.setenv("LEDGER_KEY", "that of the service")
        assert company.run("run", "--once").returncode == 0
        assert company.run("check").returncode == 0
        monkeypatch.delenv("LEDGER_KEY")
        assert "ledger.db.key is missing" in company.run("check").stdout

    def test_a_check_says_that_the_first_start_was_by_a_clock_ahead(self, company: Company) -> None:
        company.configure(agent={"answer_since": "first-start"})
        assert company.run("run", "--once").returncode == 0
        with closing(sqlite3.connect(company.folder / "ledger.db")) as ledger, ledger:
            ledger.execute("UPDATE ledger_facts SET value = ? WHERE name LIKE 'first_start %'", (repr(YEAR_2200),))
        checked = company.run("check")
        assert checked.returncode == 0, checked.stdout
        assert "⚠️ Clock: the first start, 2200-01-01 00:00:00 +0000, lies in the future" in checked.stdout

    @pytest.mark.skipif(os.geteuid() != 0, reason="needs root, who leaves files that others cannot write")
    def test_a_check_by_root_says_that_it_leaves_files_of_roots(self, company: Company) -> None:
        assert "User:" not in company.run("check").stdout
        os.chown(company.folder, NOBODY, NOBODY)
        checked = company.run("check")
        assert checked.returncode == 0, checked.stdout
        assert f"⚠️ User: root checks, and {company.folder} belongs to user {NOBODY}: " in checked.stdout

    def test_a_demo_in_a_folder_beside_us(self, company: Company) -> None:
        done = company.run("run", "--demo", "new/demo")
        assert done.returncode == 0, done.stderr
        assert company.run("run", "--once", "--config", "new/demo/config.yaml").returncode == 0


class TestWhileItRuns:
    def test_a_locked_ledger_holds_mail_up_and_loses_none(self, company: Company) -> None:
        company.start()
        company.receive("first")
        company.wait_for_replies(1)
        with closing(sqlite3.connect(company.folder / "ledger.db", isolation_level=None)) as others:
            others.execute("BEGIN EXCLUSIVE")
            company.receive("second")
            time.sleep(1)
            assert len(company.replies()) == 1
            others.execute("COMMIT")
        company.wait_for_replies(2)


class TestARestoredLedger:
    def test_answers_nothing_twice(self, company: Company) -> None:
        """Saved while the agent ran; a mail that was answered later lost its mark, as if the agent had crashed."""
        agent = company.start()
        company.receive("before")
        company.wait_for_replies(1)
        with closing(sqlite3.connect(company.folder / "ledger.db")) as ledger:
            ledger.execute("VACUUM INTO ?", (str(company.folder / "backup.db"),))
        company.receive("after", "My dryer SN12345 is broken, too.")
        company.wait_for_replies(2)
        company.stop(agent)
        (company.folder / "backup.db").replace(company.folder / "ledger.db")
        inbox = company.folder / "mailbox"
        (answered,) = (inbox / "cur").glob("after*")
        answered.rename(inbox / "new" / "after")

        done = company.run("run", "--once")
        assert done.returncode == 0, done.stderr
        assert "Inbox: 1 mails to answer" in done.stdout
        assert (len(company.replies()), company.tickets()) == (2, 2)
