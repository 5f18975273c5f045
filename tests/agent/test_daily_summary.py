"""The summary of a day: what it says, that it comes once, and that nobody who answers it gets an answer."""

from __future__ import annotations

import asyncio
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from command_line import run_program
from mailbox_in_memory import KEY, MailboxInMemory, Tickets, Warranties, mail, worker_on
from steered_desk import SteeredDesk

from guarantee_email_agent.agent.daily_summary import (
    DailySummary,
    check_summary_file,
    last_period,
    require_summary_file,
)
from guarantee_email_agent.agent.identity_key import identity_key
from guarantee_email_agent.agent.outbox import NOT_WAITING
from guarantee_email_agent.config.loader import load_config
from guarantee_email_agent.integrations.ports import InboxEntry
from guarantee_email_agent.ledger.agents import AgentReport, Work
from guarantee_email_agent.ledger.ledger import Ledger
from guarantee_email_agent.ledger.opening import open_ledger
from guarantee_email_agent.utils.clock import SystemClock
from guarantee_email_agent.utils.errors import AgentError, ConfigurationError
from guarantee_email_agent.utils.local_time import LocalTime

TOMORROW_S = 86_400.0
HOUR_S = 3600.0


def at_tomorrow(desk: SteeredDesk) -> closing[Ledger]:
    """The ledger a day later, so that a day with what was done in it is over."""
    import time

    key = identity_key(desk.config)
    return closing(open_ledger(desk.config.agent.ledger, key=key, now=lambda: time.time() + TOMORROW_S))


def summary_of(desk: SteeredDesk, ledger: Ledger, first_start: float = 0.0) -> DailySummary:
    return DailySummary(desk.config, ledger, identity_key(desk.config), first_start, SystemClock())


def tell(summary: DailySummary) -> bool:
    return asyncio.run(summary.tell_if_due())


def sent(desk: SteeredDesk) -> list[str]:
    return [file.read_text() for file in (desk.inbox / ".Sent" / "cur").glob("*")]


def test_it_counts_what_was_done_and_names_what_took_long(tmp_path: Path) -> None:
    desk = SteeredDesk(tmp_path, summary={"at": "00:00", "zone": "UTC", "file": "summary-{date}.txt"})
    answered = desk.ended("first", "answered", "valid-warranty")
    desk.ended("angry", "handed_over", "anger")
    with at_tomorrow(desk) as ledger:
        ledger.agents.beat("one:1", AgentReport("1.0", "answer"), {answered: Work(12.5, 0.25)})
        assert tell(summary_of(desk, ledger))
    (file,) = tmp_path.glob("summary-20*.txt")
    text = file.read_text()
    assert "Answered: 1\n" in text
    assert "Handed over: 1\n    anger: 1\n" in text
    assert f"Slowest:\n    {answered[:8]}: 12.5 s, answered, tries: 1\n" in text
    assert "Language model: 0.2500 USD\nDown now: nothing\nUnfinished now: 0\n" in text


def test_what_people_took_while_an_agent_worked_on_it_is_not_unfinished(tmp_path: Path) -> None:
    desk = SteeredDesk(tmp_path, summary={"at": "00:00", "zone": "UTC", "file": "summary.txt"})
    with desk.ledger() as ledger:
        for name, reason in (("taken", NOT_WAITING), ("waits", "timeout")):
            ledger.release(desk.claim(ledger, name), count_attempt=False, retry_after_s=0, reason=reason)
    with at_tomorrow(desk) as ledger:
        assert tell(summary_of(desk, ledger))
    assert "Unfinished now: 1, the oldest first seen " in (tmp_path / "summary.txt").read_text()


def test_it_is_mailed_once_whoever_asks_in_mode_observe_too(tmp_path: Path) -> None:
    desk = SteeredDesk(
        tmp_path, agent={"mode": "observe"}, summary={"at": "00:00", "zone": "UTC", "to": "lead@example.com"}
    )
    desk.ended("first", "handed_over", "anger")
    with at_tomorrow(desk) as ledger:
        assert [tell(summary_of(desk, ledger)) for _ in range(2)] == [True, False]
    (told,) = sent(desk)
    assert "To: lead@example.com\n" in told
    assert "Auto-Submitted: auto-replied\n" in told
    assert "Handed over: 1" in told


def test_after_a_crash_the_mailbox_says_whether_it_left(tmp_path: Path) -> None:
    desk = SteeredDesk(tmp_path, summary={"at": "00:00", "zone": "UTC", "to": "lead@example.com"})
    with at_tomorrow(desk) as ledger:
        assert tell(summary_of(desk, ledger))
        _forget_that_it_was_told(desk)
        assert tell(summary_of(desk, ledger))
    assert len(sent(desk)) == 1


def test_while_it_cannot_be_written_it_waits(tmp_path: Path) -> None:
    desk = SteeredDesk(tmp_path, summary={"at": "00:00", "zone": "UTC", "file": "later/summary.txt"})
    with at_tomorrow(desk) as ledger:
        with pytest.raises(AgentError, match=r"cannot be written to .*later/summary\.txt"):
            tell(summary_of(desk, ledger))
        (tmp_path / "later").mkdir()
        assert tell(summary_of(desk, ledger))
    assert [file.name for file in (tmp_path / "later").iterdir()] == ["summary.txt"]


def test_no_day_before_the_first_start_is_told(tmp_path: Path) -> None:
    desk = SteeredDesk(tmp_path, summary={"at": "00:00", "zone": "UTC", "file": "summary.txt"})
    with at_tomorrow(desk) as ledger:
        assert not tell(summary_of(desk, ledger, first_start=ledger.time()))


@pytest.mark.parametrize("at", ["18:00", "05:00"])
def test_the_first_one_after_another_time_was_chosen_begins_where_the_one_before_ended(tmp_path: Path, at: str) -> None:
    monday = datetime(2026, 1, 19, 7, 30, tzinfo=UTC).timestamp()
    desk = SteeredDesk(tmp_path, summary={"at": "07:00", "zone": "UTC", "file": "summary-{date}.txt"})
    key = identity_key(desk.config)
    for now, time in ((monday, "07:00"), (monday + 36 * HOUR_S, at)):  # Tuesday in the evening
        config = replace(desk.config, summary=replace(desk.config.summary, at=time))
        with closing(open_ledger(config.agent.ledger, key=key, now=lambda now=now: now)) as ledger:
            assert tell(DailySummary(config, ledger, key, 0.0, SystemClock()))
    text = (tmp_path / "summary-2026-01-20.txt").read_text()
    assert text.startswith(f"From 2026-01-19 07:00:00 to 2026-01-20 {at}:00 (UTC)")


def test_what_was_told_long_ago_makes_no_day_longer(tmp_path: Path) -> None:
    monday = datetime(2026, 1, 19, 7, 30, tzinfo=UTC).timestamp()
    desk = SteeredDesk(tmp_path, summary={"at": "07:00", "zone": "UTC", "file": "summary-{date}.txt"})
    key = identity_key(desk.config)
    for now in (monday, monday + 72 * HOUR_S):
        with closing(open_ledger(desk.config.agent.ledger, key=key, now=lambda now=now: now)) as ledger:
            assert tell(summary_of(desk, ledger))
    text = (tmp_path / "summary-2026-01-22.txt").read_text()
    assert text.startswith("From 2026-01-21 07:00:00 to 2026-01-22 07:00:00 (UTC)")


def test_a_day_ends_at_its_time_on_the_spot() -> None:
    berlin = LocalTime("Europe/Berlin")
    noon = 1_768_734_000.0  # 2026-01-18, 12:00 in Berlin
    period = last_period(berlin, "07:00", noon)
    assert (berlin.text(period.begin), berlin.text(period.end)) == ("2026-01-17 07:00:00", "2026-01-18 07:00:00")
    assert last_period(berlin, "12:01", noon).day.isoformat() == "2026-01-17"
    assert last_period(berlin, "12:00", noon).day.isoformat() == "2026-01-18"


def test_who_answers_it_is_left_to_a_person(tmp_path: Path) -> None:
    mailbox = MailboxInMemory("answer")
    header = b"\r\nIn-Reply-To: <summary-2026-01-18-0123456789abcdef0123456789abcdef@example.com>\r\n\r\n"
    mailbox.mails["answer"] = mail("answer").replace(b"\r\n\r\n", header)
    with closing(open_ledger(str(tmp_path / "ledger.db"), key=KEY)) as ledger:
        worker = worker_on(mailbox, ledger, Warranties(), Tickets())
        result = asyncio.run(worker.work(InboxEntry("answer", 1), ledger.time()))
    assert (result.reason, mailbox.marks, mailbox.sent) == ("summary-reply", {"answer": "handed_over"}, [])


@pytest.mark.parametrize(
    ("summary", "problem"),
    [
        ({"at": "7:00"}, 'summary.at: must be a time of day in quotes, such as "07:00"'),
        ({"zone": "Europe/Berlinn"}, "summary.zone: is no time zone of this machine: 'Europe/Berlinn'"),
        ({"to": "Lead <lead@example.com>"}, "summary.to: must be a bare address"),
        ({"to": "a@example.com", "file": "s.txt"}, "summary: has both 'to' and 'file'"),
        ({"to": "Support@example.com"}, "has summary.to: Support@example.com, an address of the agent itself"),
    ],
)
def test_a_setting_that_cannot_be(tmp_path: Path, summary: dict[str, Any], problem: str) -> None:
    desk = SteeredDesk(tmp_path, summary=summary)
    with pytest.raises(ConfigurationError) as raised:
        load_config(desk.folder / "config.yaml", environ={}, cwd=tmp_path)
    assert problem in raised.value.message


def _forget_that_it_was_told(desk: SteeredDesk) -> None:
    """As after a crash between the sending and the word to the ledger, whose time is over."""
    import sqlite3

    with closing(sqlite3.connect(desk.folder / "ledger.db")) as other, other:
        other.execute("UPDATE ledger_facts SET value = '1000' WHERE name LIKE 'summary %'")


def test_a_place_where_no_summary_can_be_written_is_told_at_once(tmp_path: Path) -> None:
    check_summary_file(tmp_path / "summary-{date}.txt")
    assert not list(tmp_path.iterdir())
    with pytest.raises(
        ConfigurationError, match=r"The summary cannot be written to .*No such file.* Correct summary\."
    ):
        check_summary_file(tmp_path / "missing" / "summary.txt")


@pytest.mark.parametrize(
    ("file", "used"),
    [
        ("ledger.db", "agent.ledger"),
        ("ledger.db-wal", "agent.ledger"),
        ("ledger.db.key", "agent.ledger"),
        ("tickets.db", "tickets.database"),
        ("warranties.csv", "warranties.file"),
        ("agent.log", "logging.file"),
        ("mail-token.json", "mailbox.oauth.token_file"),
        ("orders.csv", "look_ups.orders.table"),
        ("config.yaml", "the configuration"),
        ("folder/../config.yaml", "the configuration"),
        ("link", "agent.ledger"),
    ],
)
def test_a_file_that_is_something_else_is_never_replaced(tmp_path: Path, file: str, used: str) -> None:
    orders = {"topics": ["order"], "number": "n", "pattern": "[0-9]{5}", "labels": ["order"], "table": "orders.csv"}
    logging = {"file": "agent.log"}
    desk = SteeredDesk(tmp_path, summary={"file": file}, logging=logging, look_ups={"orders": orders})
    (tmp_path / "link").symlink_to(tmp_path / "ledger.db")
    with pytest.raises(ConfigurationError) as caught:
        require_summary_file(desk.config)
    assert f"is in use ({used}), and a summary would replace it" in caught.value.message
    assert "\n" not in caught.value.message


def test_what_is_no_file_is_never_replaced(tmp_path: Path) -> None:
    desk = SteeredDesk(tmp_path, summary={"file": "mailbox/new"})
    with pytest.raises(ConfigurationError, match=r"mailbox/new is no regular file\. Name one"):
        require_summary_file(desk.config)


def test_the_summary_before_may_be_replaced(tmp_path: Path) -> None:
    (tmp_path / "summary.txt").write_text("Of yesterday")
    require_summary_file(SteeredDesk(tmp_path, summary={"file": "summary.txt"}).config)


@pytest.mark.parametrize("command", [["check"], ["run", "--once"]])
def test_neither_check_nor_run_takes_the_ledger_for_it(tmp_path: Path, command: list[str]) -> None:
    SteeredDesk(tmp_path, summary={"file": "ledger.db"})
    ended = run_program(tmp_path, *command)
    assert ended.returncode == 2
    (line,) = [line for line in (ended.stdout + ended.stderr).splitlines() if "summary.file" in line]
    assert line.endswith("ledger.db is in use (agent.ledger), and a summary would replace it. Name a file of its own")
