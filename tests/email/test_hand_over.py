"""What leaves a mail to a person before any model is asked. What then happens: `test_processor_recipients.py`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from guarantee_email_agent.email.hand_over import asked_for, hand_over_reasons
from guarantee_email_agent.email.parsing.parse import parse_email
from guarantee_email_agent.email.processor_models import AnswerPolicy, IncomingMail
from guarantee_email_agent.instructions.instruction import Instructions
from guarantee_email_agent.integrations.ports import Admission, Limit, Thread


@dataclass
class History:
    """Says the limit it is given, and keeps what it was asked."""

    limit: Limit | None = None
    asked: list[Admission] = field(default_factory=list)

    async def find_thread(self, reply_message_ids: Sequence[str]) -> Thread | None:
        return None

    async def admit(self, admission: Admission) -> Limit | None:
        self.asked.append(admission)
        return self.limit


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


def test_an_everyday_mail_has_none(instructions: Instructions) -> None:
    assert reasons(incoming("The kettle drips. SN12345"), instructions) == ()


def test_words_in_the_subject_count_but_not_those_of_a_conversation(instructions: Instructions) -> None:
    assert reasons(incoming("See above.", subject="The kettle caught fire"), instructions) == ("fire",)
    answer = incoming("SN12345", thread("missing-info"), subject="Re: The kettle caught fire")
    assert reasons(answer, instructions) == ()


def test_what_a_mere_forward_says_is_what_it_forwards(instructions: Instructions) -> None:
    forwarded = (
        "\n\n---------- Forwarded message ---------\nFrom: A <a@example.com>\nSubject: Kettle\n\nIt caught fire.\n"
    )
    assert reasons(incoming(f"FYI{forwarded}"), instructions) == ("fire",)


@pytest.mark.parametrize(("scenario", "follow_ups"), [("valid-warranty", 0), ("missing-info", 1)])
def test_a_further_mail_that_answers_no_question_is_a_follow_up(
    scenario: str, follow_ups: int, instructions: Instructions
) -> None:
    assert reasons(incoming("SN12345", thread(scenario, follow_ups)), instructions) == ("follow-up",)


@pytest.mark.parametrize(("sender_check", "found"), [("hold", ("unverified-sender",)), ("neutral", ())])
def test_a_sender_that_is_not_proved_waits_where_the_settings_say_so(
    sender_check: str, found: tuple[str, ...], instructions: Instructions
) -> None:
    policy = AnswerPolicy(sender_check=sender_check, authserv_id="mx.example.com")  # type: ignore[arg-type]
    assert reasons(incoming("SN12345", verified=False), instructions, policy) == found


def test_a_mail_beyond_a_limit_waits(instructions: Instructions) -> None:
    assert reasons(incoming("SN12345"), instructions, history=History("sender")) == ("limit-sender",)


def test_a_mail_with_a_reason_does_not_count_for_a_limit(instructions: Instructions) -> None:
    history = History()
    reasons(incoming("It caught fire."), instructions, history=history)
    assert history.asked == []


@pytest.mark.parametrize("name", ["missing-info", "missing_info"])
def test_what_was_asked_follows_from_the_name_of_the_scenario_as_any_ledger_has_it(
    name: str, instructions: Instructions
) -> None:
    assert asked_for(thread(name), instructions) == "serial_number"
    assert asked_for(thread("valid-warranty"), instructions) is None
