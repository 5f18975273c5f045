"""What customers write stays in the mailbox: canaries planted in mails are looked for everywhere else."""

import signal
import time
from pathlib import Path

import pytest
from company import ADDRESS, SHORT_TIMES, Company

pytestmark = pytest.mark.slow

CANARY = "xanthippe"  # in every part of a mail that a customer writes
MAIL = f"""\
From: "{CANARY} name" <{CANARY}.sender@example.com>
To: support@example.com
Cc: {CANARY}.cc@example.com
Subject: {CANARY} subject\x1b[2J
Date: Sun, 18 Jan 2026 10:00:00 +0000
Message-ID: <{CANARY}-id-{{number}}@example.com>
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary=part

--part
Content-Type: text/plain; charset=utf-8

{{text}} {CANARY} body
--part
Content-Type: text/plain; name={CANARY}.txt
Content-Disposition: attachment; filename={CANARY}.txt

{CANARY} attachment
--part--
"""
TEXTS = ("My dryer SN12345 is broken.", "My dryer is broken.", "SN12345 or SN20077?", "An application as a driver.")
NO_SENDER = f"Subject: {CANARY}\n\n{CANARY}\n"


def receive_canaries(company: Company) -> None:
    new = company.folder / "mailbox" / "new"
    for number, text in enumerate(TEXTS):
        (new / f"mail{number}").write_text(MAIL.format(number=number, text=text))
    (new / "nobody").write_text(NO_SENDER)


def files_beside_the_mailbox(company: Company) -> list[Path]:
    return [
        path for path in company.folder.rglob("*") if path.is_file() and company.folder / "mailbox" not in path.parents
    ]


@pytest.mark.parametrize("as_json", [False, True])
def test_no_word_of_a_customer_leaves_the_mailbox(company: Company, as_json: bool) -> None:
    company.configure(
        mailbox={"from_address": ADDRESS},
        agent={"max_attempts": 1, "caution": 0},  # to answer words that nobody knows
        logging={"file": "agent.log", "json": as_json},
    )
    receive_canaries(company)
    done = company.run("run", "--once")
    company.run("check", "--inbox")

    assert len(company.replies()) == len(TEXTS)
    assert CANARY not in done.stdout + done.stderr
    beside = files_beside_the_mailbox(company)
    assert {"agent.log", "ledger.db", "tickets.db"} <= {file.name for file in beside}
    assert [file.name for file in beside if CANARY.encode() in file.read_bytes() and file.name != "tickets.db"] == []
    tickets = (company.folder / "tickets.db").read_bytes().replace(f"{CANARY}.sender@example.com".encode(), b"")
    assert CANARY.encode() not in tickets


def test_a_log_at_debug_shows_no_control_characters(company: Company) -> None:
    receive_canaries(company)
    done = company.run("run", "--once", "--verbose")
    assert "\x1b" not in done.stdout + done.stderr


def test_the_agent_leaves_no_core_file(company: Company) -> None:
    company.configure(agent={**SHORT_TIMES, "caution": 0})
    agent = company.start()
    receive_canaries(company)
    company.wait_for_replies(len(TEXTS))
    limits = Path(f"/proc/{agent.pid}/limits").read_text()
    assert limits.partition("Max core file size")[2].split()[:2] == ["0", "0"]
    before = time.time()
    agent.send_signal(signal.SIGABRT)
    agent.communicate(timeout=30)
    assert [path for path in company.folder.rglob("core*") if path.stat().st_mtime >= before] == []
