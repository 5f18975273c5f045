"""Times as people read them, also on the days on which clocks change."""

from datetime import date, time

import pytest

from guarantee_email_agent.cli import run
from guarantee_email_agent.utils.clock import LocalTime

BERLIN = LocalTime("Europe/Berlin")
WINTER = 1_768_729_425.0  # 2026-01-18, 9:43:45 UTC


def test_a_moment_stands_in_the_zone_that_is_named() -> None:
    assert BERLIN.text(WINTER) == "2026-01-18 10:43:45"
    assert BERLIN.zone_at(WINTER) == "CET, UTC+01:00"
    assert BERLIN.zone_at(WINTER + 180 * 86_400) == "CEST, UTC+02:00"
    assert LocalTime("UTC").zone_at(WINTER) == "UTC"
    assert LocalTime("Asia/Kathmandu").zone_at(WINTER) == "UTC+05:45"


def test_without_one_it_is_the_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    import time as system_time

    monkeypatch.setenv("TZ", "Asia/Tokyo")
    system_time.tzset()
    try:
        clock = LocalTime()
        assert (clock.text(WINTER), clock.zone_at(WINTER)) == ("2026-01-18 18:43:45", "JST, UTC+09:00")
        assert clock.text(clock.seconds(date(2026, 1, 18))) == "2026-01-18 00:00:00"
        assert run(["log", "--since", "9999-12-31 23:59"]) == 2  # no such moment there
    finally:
        monkeypatch.undo()
        system_time.tzset()


def test_a_day_begins_and_ends_on_the_spot_be_it_of_23_hours_or_25() -> None:
    hours = [
        (BERLIN.seconds(date(2026, month, day + 1), time(7)) - BERLIN.seconds(date(2026, month, day), time(7))) / 3600
        for month, day in ((1, 18), (3, 28), (10, 24))
    ]
    assert hours == [24, 23, 25]


def test_a_moment_that_no_calendar_has_is_shown_all_the_same() -> None:
    assert BERLIN.text(1e20) == "1970-01-01 00:00:00"
