from __future__ import annotations

import pytest

from guarantee_email_agent.email.contradictions import contradicts
from guarantee_email_agent.instructions.instruction import Instructions
from guarantee_email_agent.instructions.look_up import WARRANTY
from guarantee_email_agent.integrations.look_up_answer import LookUpAnswer

RECEIVED = "2026-01-18T10:00:00Z"


def check(instructions: Instructions, status: str, *, received: str = RECEIVED, **facts: str) -> bool:
    return contradicts(LookUpAnswer(status, facts), WARRANTY, instructions, received, 30)


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


def test_a_mail_without_a_date_cannot_be_compared(instructions: Instructions) -> None:
    assert check(instructions, "valid", received="", expiration_date="2027-01-01") is True
    assert check(instructions, "valid", received="") is False
