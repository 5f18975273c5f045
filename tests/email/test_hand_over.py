"""What leaves a mail to a person before any model is asked. What then happens: `test_processor_recipients.py`."""

import asyncio
from dataclasses import replace
from datetime import date

import pytest
from mocked_desk import History

from guarantee_email_agent.email.hand_over import asked_for, contradicts, day_of_mail, hand_over_reasons
from guarantee_email_agent.email.identity import copy_key
from guarantee_email_agent.email.parsing.parse import parse_email
from guarantee_email_agent.email.processor_models import AnswerPolicy, IncomingMail
from guarantee_email_agent.instructions.instruction import Instructions
from guarantee_email_agent.instructions.look_up import WARRANTY
from guarantee_email_agent.services.look_up_answer import LookUpAnswer
from guarantee_email_agent.services.ports import Admission, Thread


def incoming(
    body: str, thread: Thread | None = None, subject: str = "Kettle", *, verified: bool = True
) -> IncomingMail:
    email = parse_email({"subject": subject, "body": body, "from": "c@example.org", "message_id": "<m@example.org>"})
    return IncomingMail(email, email.sender, verified, "identity", thread)


def thread(scenario: str, follow_ups: int = 0) -> Thread:
    return Thread("t", scenario, "T-1", "<reply-1@example.com>", 1000.0, 1, follow_ups)


def reasons(
    mail: IncomingMail,
    instructions: Instructions,
    policy: AnswerPolicy | None = None,
    history: History | None = None,
) -> tuple[str, ...]:
    return asyncio.run(hand_over_reasons(mail, instructions, policy or AnswerPolicy(), history, b"key"))


def test_words_in_the_subject_count_but_not_those_of_a_conversation(instructions: Instructions) -> None:
    assert reasons(incoming("See above.", subject="The kettle caught fire"), instructions) == ("fire",)
    answer = incoming("SN12345", thread("missing-info"), subject="Re: The kettle caught fire")
    assert reasons(answer, instructions) == ()


@pytest.mark.parametrize(("scenario", "follow_ups"), [("valid-warranty", 0), ("missing-info", 1)])
def test_a_further_mail_that_answers_no_question_is_a_follow_up(
    scenario: str, follow_ups: int, instructions: Instructions
) -> None:
    assert reasons(incoming("SN12345", thread(scenario, follow_ups)), instructions) == ("follow-up",)


def test_what_may_be_answered_is_counted_under_its_sender_its_thread_and_its_copies(instructions: Instructions) -> None:
    mail, history = incoming("SN12345", thread("missing-info")), History()
    shouting = replace(mail, recipient="C@EXAMPLE.ORG")
    assert reasons(mail, instructions, history=history) == reasons(shouting, instructions, history=history) == ()
    first, second = history.admissions
    assert first == second == Admission(first.sender_key, None, "t", copy_key(mail.email, b"key"))
    assert reasons(mail, instructions, history=History(limit="copy")) == ("copy",)


@pytest.mark.parametrize("name", ["missing-info", "missing_info"])
def test_what_was_asked_follows_from_the_name_of_the_scenario_as_any_ledger_has_it(
    name: str, instructions: Instructions
) -> None:
    assert asked_for(thread(name), instructions) == "serial_number"
    assert asked_for(thread("valid-warranty"), instructions) is None


TODAY = date(2026, 1, 18)


def check(instructions: Instructions, status: str, *, today: date | None = TODAY, **facts: str) -> bool:
    return contradicts(LookUpAnswer(status, facts), WARRANTY, instructions, today)


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


def test_a_coverage_that_no_file_knows(instructions: Instructions) -> None:
    assert check(instructions, "valid", expiration_date="2027-01-01", coverage="full") is False
    assert check(instructions, "valid", expiration_date="2027-01-01", coverage="galactic") is True
