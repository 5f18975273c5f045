"""How outages read, a line each, for whoever looks back at them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from steered_desk import SteeredDesk

from guarantee_email_agent.agent.outage_log import MAX_LINES, outage_line, outages_report, summary_lines
from guarantee_email_agent.cli import run
from guarantee_email_agent.ledger.outages import OutageReport, Place, RecordedOutage
from guarantee_email_agent.utils.local_time import LocalTime

UTC = LocalTime("UTC")
NOW = 1_768_734_000.0  # 2026-01-18 11:00
PASSED = RecordedOutage("mail", "mail_unavailable", NOW - 7200, NOW - 6200, NOW - 6000, 12)


@pytest.mark.parametrize(
    ("outage", "line"),
    [
        (
            PASSED,
            "mail: 2026-01-18 09:00:00 to 2026-01-18 09:20:00 (20 min), 12 mails waited at most (mail_unavailable)",
        ),
        (
            replace(PASSED, ended_at=None, seen_at=NOW - 15, waiting=1),
            "mail: since 2026-01-18 09:00:00 (2 h), 1 mail waited at most (mail_unavailable)",
        ),
        (
            replace(PASSED, ended_at=None, waiting=None),
            "mail: since 2026-01-18 09:00:00, last seen down 2026-01-18 09:16:40 (mail_unavailable)",
        ),
    ],
    ids=["over", "on", "nobody knows"],
)
def test_a_line(outage: RecordedOutage, line: str) -> None:
    assert outage_line(outage, UTC, NOW) == line


def test_a_summary_names_those_that_lasted_and_counts_the_others() -> None:
    short = replace(PASSED, ended_at=PASSED.began_at + 59)
    title, line, rest = summary_lines([short, PASSED, short], UTC, NOW)
    assert (title, rest) == ("Outages:", "    shorter than a minute: 2")
    assert line.startswith("    mail: 2026-01-18 09:00:00 to")
    assert list(summary_lines([], UTC, NOW)) == ["Outages: none"]
    assert list(summary_lines([PASSED] * (MAX_LINES + 2), UTC, NOW))[-1] == "    and 2 more: log --outages"


def test_for_programs_they_have_times_with_their_zone() -> None:
    (report,) = outages_report([replace(PASSED, ended_at=None)], UTC)
    assert report["began"] == "2026-01-18T09:00:00+00:00"
    assert (report["ended"], report["last_seen_down"]) == (None, "2026-01-18T09:16:40+00:00")


def test_the_log_lists_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    desk = SteeredDesk(tmp_path)
    with desk.ledger() as ledger:
        place = Place("mail", "list", "a1" * 16)
        ledger.outages.save("one:1", [OutageReport("0" * 32, place, "mail_timeout", 600.0, 0.0, proved=True)])
    monkeypatch.chdir(tmp_path)
    assert run(["log", "--outages", "--today"]) == 0
    assert capsys.readouterr().out.endswith(" (10 min) (mail_timeout)\n")
    assert run(["log", "--outages", "--subjects"]) == 2
    assert "log: --subjects is about mails, and --outages about services" in capsys.readouterr().err
