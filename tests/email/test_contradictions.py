from __future__ import annotations

from datetime import date

import pytest

from guarantee_email_agent.email.contradictions import contradicts, day_of_mail
from guarantee_email_agent.instructions.instruction import Instructions
from guarantee_email_agent.instructions.look_up import WARRANTY
from guarantee_email_agent.integrations.look_up_answer import LookUpAnswer

TODAY = date(2026, 1, 18)


def check(instructions: Instructions, status: str, *, today: date | None = TODAY, **facts: str) -> bool:
    return contradicts(LookUpAnswer(status, facts), WARRANTY, instructions, today, 30)


@pytest.mark.parametrize(
    ("status", "ends", "wrong"),
    [
        ("valid", "2027-01-01", False),
        ("valid", "2026-01-18", False),
        ("valid", "2025-12-19", False),  # 30 days ago
        ("valid", "2025-12-18", True),
        ("valid", "2020-01-01", True),
        ("expired", "2026-01-17", False),
        ("expired", "2026-01-18", True),
        ("expired", "2027-01-01", True),
        ("valid", "31.12.2026", False),
        ("not_found", "2020-01-01", False),
    ],
)
def test_a_status_against_its_date(status: str, ends: str, wrong: bool, instructions: Instructions) -> None:
    assert check(instructions, status, expiration_date=ends) is wrong


def test_a_date_that_may_be_two_contradicts_where_either_does(instructions: Instructions) -> None:
    assert check(instructions, "expired", expiration_date="02/01/2026") is True  # 2 January or 1 February


def test_a_coverage_that_no_file_knows(instructions: Instructions) -> None:
    assert check(instructions, "valid", expiration_date="2027-01-01", coverage="full") is False
    assert check(instructions, "valid", expiration_date="2027-01-01", coverage="galactic") is True


def test_without_a_day_nothing_can_be_compared(instructions: Instructions) -> None:
    assert check(instructions, "valid", today=None, expiration_date="2020-01-01") is False


@pytest.mark.parametrize(
    ("received", "arrived_at", "day"),
    [
        ("2026-01-18T10:00:00Z", 0.0, TODAY),
        ("", 1_768_730_400.0, TODAY),
        ("yesterday", 1_768_730_400.0, TODAY),
        ("", None, None),
    ],
)
def test_the_day_of_a_mail(received: str, arrived_at: float | None, day: date | None) -> None:
    assert day_of_mail(received, arrived_at) == day
