"""What `status` and `log` show of a ledger."""

import json
import re
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from small_disks import run_on_small_disk
from steered_desk import MAIL, SteeredDesk

from guarantee_email_agent.agent.process_identity import process_name
from guarantee_email_agent.agent.status import LISTED
from guarantee_email_agent.cli import run
from guarantee_email_agent.ledger.agents import AgentReport, ReportedOutage, Work
from guarantee_email_agent.services.ports import Comparison, Outcome, WrittenReply

DOWN = ReportedOutage("warranty_api", "warranty_api_timeout", 1_768_729_425.0)

COMPARED: list[tuple[Outcome, Comparison, int | None]] = [
    ("drafted", "as_it_was", 100),
    ("drafted", "as_it_was", 100),
    ("drafted", "edited", 80),
    ("drafted", "edited", 90),
    ("drafted", "unknown", None),
    ("observed", "another", 20),
]


class TestStatus:
    def test_all_is_well(self, desk: SteeredDesk, capsys: pytest.CaptureFixture[str]) -> None:
        with desk.ledger() as ledger:
            ledger.agents.beat(process_name(), AgentReport("1.0", "answer"))
        assert run(["status", "--fail-on-problem"]) == 0
        out = capsys.readouterr().out
        assert " runs: mode answer, version 1.0, since " in out
        assert out.endswith("Unfinished: 0 mails\nFailed: 0 mails\nLast 24 hours: nothing\n")

    def test_mails_that_are_too_old_are_counted_of_all_inboxes(
        self, desk: SteeredDesk, capsys: pytest.CaptureFixture[str]
    ) -> None:
        with desk.ledger() as ledger:
            for inbox, number in (("a0" * 16, 30), ("a0" * 16, 20), ("b0" * 16, 1)):
                ledger.keep_too_old(inbox, number)
        assert run(["status"]) == 0
        assert "Too old: 21 mails, left alone by agent.answer_since or" in capsys.readouterr().out
        assert run(["status", "--json", "-"]) == 0
        assert json.loads(capsys.readouterr().out)["too_old"] == 21
        assert run(["log", "--summary", "--since", "yesterday"]) == 0
        assert "Too old, left alone: 21\n" in capsys.readouterr().out

    def test_drafts_are_counted_by_what_people_sent_instead(
        self, desk: SteeredDesk, capsys: pytest.CaptureFixture[str]
    ) -> None:
        with desk.ledger() as ledger:
            for number, (outcome, comparison, percent) in enumerate(COMPARED):
                claim = desk.claim(ledger, f"mail{number}")
                if outcome == "drafted":
                    ledger.intend_send(claim, "<reply@example.com>", delivery="draft")
                written = None if comparison == "unknown" else WrittenReply(f"{number:032}", "")
                ledger.finish(claim, outcome, "", written)
                ledger.comparisons.save(claim.mail_key, comparison, percent)
            ledger.finish(desk.claim(ledger, "left"), "observed", "anger")
        assert run(["status", "--json", "-"]) == 0
        told = capsys.readouterr()
        line = "Of 5 drafts 2 were sent as they were, 2 edited (85 % of the words alike), 1 not compared\n"
        assert told.err.endswith(
            f"{line}Of 1 observed reply 0 were sent in the same words, 1 replaced by another answer (20 % of the words "
            "alike)\n"
        )
        assert json.loads(told.out)["comparisons"][0] == {
            "outcome": "drafted",
            "comparison": "as_it_was",
            "mails": 2,
            "alike_percent": 100.0,
        }

    def test_a_full_disk_is_a_problem_whatever_the_agents_last_said(self, tmp_path: Path) -> None:
        program = """
import os, sys
from pathlib import Path
from steered_desk import SteeredDesk
from guarantee_email_agent.agent.process_identity import process_name
from guarantee_email_agent.cli import run
from guarantee_email_agent.ledger.agents import AgentReport
os.chdir(sys.argv[1])
desk = SteeredDesk(Path(sys.argv[1]))
with desk.ledger() as ledger:
    ledger.agents.beat(process_name(), AgentReport("1.0", "answer"))
    assert run(["status", "--fail-on-problem"]) == 0
    try:
        with open("filler", "wb", buffering=0) as filler:
            while filler.write(bytes(4096)):
                pass
    except OSError:
        pass
    assert run(["status", "--fail-on-problem"]) == 1
"""
        folder = tmp_path / "disk"
        done = run_on_small_disk(folder, "1m", [sys.executable, "-c", program, folder])
        assert done.returncode == 0, done.stderr
        assert "The ledger cannot be written: No space left on device. Make room" in done.stdout

    def test_what_a_person_should_look_at_is_a_problem(
        self, desk: SteeredDesk, capsys: pytest.CaptureFixture[str]
    ) -> None:
        desk.receive("busy")
        failed = desk.ended("failed", "quarantined", "llm_timeout")
        desk.ended("angry", "handed_over", "anger")
        name, _, started = process_name().rpartition(":")
        killed = f"{name}:{int(started) + 1}"
        with desk.ledger() as ledger:
            ledger.agents.beat(killed, AgentReport("1.0", "answer", 2, 1_768_729_425.0, (DOWN,)))
            desk.claim(ledger, "busy", killed)
        assert run(["status", "--fail-on-problem", "--json", "-"]) == 1
        told = capsys.readouterr()
        assert "was killed: mode answer" in told.err
        assert f"    works on {desk.location('busy')[:12]}\n" in told.err
        assert ", which runs no more, for another " in told.err
        assert "    2 mails in its inbox without an outcome, the oldest of 2026-01-18 09:43:45\n" in told.err
        line = rf"    {failed[:12]}  quarantined \d+ s ago, tries: 1, llm_timeout, first seen \d+ s ago\n"
        assert re.search(line, told.err)
        assert "Last 24 hours: handed over 1 (anger 1), quarantined 1 (llm_timeout 1)\n" in told.err
        report = json.loads(told.out)
        assert [problem.split()[0] for problem in report["problems"]] == ["no", "agent", "1"]
        assert report["agents"][0]["state"] == "killed"
        assert report["failed"][0]["mail_key"] == failed

    @pytest.mark.parametrize(("silence_s", "code"), [(800, 1), (1000, 0), (-800, 1), (-1000, 0)])
    def test_a_container_that_was_replaced_is_a_problem_for_a_while(
        self, desk: SteeredDesk, capsys: pytest.CaptureFixture[str], silence_s: int, code: int
    ) -> None:
        with desk.ledger() as ledger:
            ledger.agents.beat("elsewhere:1", AgentReport("1.0", "answer", outages=(DOWN,)))
            ledger.agents.beat(process_name(), AgentReport("1.0", "answer"))
        with closing(sqlite3.connect(desk.folder / "ledger.db")) as other, other:
            other.execute("UPDATE ledger_agents SET seen_at = seen_at - ? WHERE owner = 'elsewhere:1'", (silence_s,))
        assert run(["status", "--fail-on-problem", "--json", "-"]) == code
        told = capsys.readouterr()
        assert ("✗ Agent elsewhere:1" in told.err) == (code == 1)
        assert json.loads(told.out)["problems"] == ["agent elsewhere:1 may be gone"] * code

    def test_mails_that_people_took_meanwhile_hide_none_that_wait(
        self, desk: SteeredDesk, capsys: pytest.CaptureFixture[str]
    ) -> None:
        taken = [f"taken-{number}" for number in range(LISTED + 1)]
        with desk.ledger() as ledger:
            for name in (*taken, "waits"):
                reason = "mail_not_waiting" if name in taken else "ticketing_timeout"
                ledger.release(desk.claim(ledger, name), count_attempt=False, retry_after_s=0, reason=reason)
        assert run(["status", "--json", "-"]) == 0
        told = capsys.readouterr()
        assert f"Unfinished: 1 mail\n    {desk.location('waits')[:12]}  due, tries: 0, ticketing_timeout" in told.err
        assert f"With people: {LISTED + 1} mails answered, flagged, moved or deleted by somebody" in told.err
        report = json.loads(told.out)
        assert (report["unfinished_count"], report["taken_count"]) == (1, LISTED + 1)


class TestLog:
    def test_outcomes_stand_in_the_order_of_time_with_what_they_took(
        self, desk: SteeredDesk, capsys: pytest.CaptureFixture[str]
    ) -> None:
        first = desk.ended("first", "answered", "valid-warranty")
        second = desk.ended("second", "handed_over", "anger")
        with desk.ledger() as ledger:
            ledger.agents.beat("one:1", AgentReport("1.0", "answer"), {first: Work(0.25, 0.002)})
        assert run(["log", "--today", "--json", "-"]) == 0
        told = capsys.readouterr()
        zone, *lines = told.err.splitlines()
        assert zone == "Times are UTC"
        assert [line.split("  ", 1)[1] for line in lines] == [
            f"{first[:12]}  answered      valid-warranty  250 ms  0.0020 USD",
            f"{second[:12]}  handed over   anger",
        ]
        assert [(each["mail_key"], each["outcome"]) for each in json.loads(told.out)] == [
            (first, "answered"),
            (second, "handed_over"),
        ]

    def test_what_is_listed_can_be_chosen(self, desk: SteeredDesk, capsys: pytest.CaptureFixture[str]) -> None:
        for name in ("one", "two", "three"):
            desk.ended(name, "handed_over", name)
        desk.ended("four", "quarantined", "four")
        assert run(["log", "--outcome", "handed_over", "--limit", "2", "--since", "2026-01-01 00:00"]) == 0
        shown = capsys.readouterr().out
        assert [name in shown for name in ("one", "two", "three", "four")] == [False, True, True, False]
        assert run(["log", "--since", "2999-01-01"]) == 0
        assert capsys.readouterr().out == "Times are UTC\n"

    def test_senders_and_subjects_come_from_the_mailbox_and_cannot_take_over_a_terminal(
        self, desk: SteeredDesk, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def opened(path: str, mode: str) -> Any:  # where root is denied nothing
            return open(desk.inbox if "denied" in path else path, mode)

        hostile = MAIL.replace(b"Dryer", b"=?utf-8?q?=1b[31mDryer=E2=80=AE?= x")
        desk.ended("hostile", "handed_over", "anger", hostile)
        desk.ended("gone", "handed_over", "anger")
        next((desk.inbox / "cur").glob("gone*")).unlink()
        desk.ended("denied", "quarantined", "mail_unreadable")
        monkeypatch.setattr("guarantee_email_agent.services.mail.maildir.open", opened, raising=False)
        assert run(["log", "--subjects"]) == 0
        out = capsys.readouterr().out
        assert "    ada@example.com: " in out
        assert "Dryer" in out
        assert not {"\x1b", "\u202e"} & set(out)
        assert "    (no longer in the inbox)\n" in out
        assert "    (mail_unreadable)\n" in out
        assert b"Dryer" not in (desk.folder / "ledger.db").read_bytes()

    @pytest.mark.parametrize(
        "options",
        [
            ["--since", "tomorrow"],
            ["--today", "--since", "2026-01-01"],
            ["--outcome", "lost"],
            ["--limit", "0"],
            ["--since", "today", "--until", "yesterday"],
        ],
    )
    def test_bad_usage(self, desk: SteeredDesk, options: list[str]) -> None:
        desk.ended("first", "handed_over")
        assert run(["log", *options]) == 2

    def test_a_mail_without_a_sender_is_shown_by_its_subject(
        self, desk: SteeredDesk, capsys: pytest.CaptureFixture[str]
    ) -> None:
        desk.ended("first", "quarantined", raw=MAIL.replace(b"From: ada@example.com\r\n", b""))
        assert run(["log", "--subjects"]) == 0
        assert "    (no sender): Dryer\n" in capsys.readouterr().out
