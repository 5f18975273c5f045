"""How well the interpreter reads mails that people labelled by hand, in four languages and more.

Each line of `mails/*.jsonl` is a mail with the topic and the serial numbers that a support lead would see in it. The
lexicon was tuned on all of them; the mails that it was not tuned on are scenarios in `evals/held_out`.
`also_right` is a topic that does no harm either. A mail that should be left to a person names the reasons in
`hand_over`; files of that name hold such mails and what resembles them.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from shipped_instructions import SHIPPED, shipped_interpreter

from guarantee_email_agent.email.parsing.email import Email
from guarantee_email_agent.email.parsing.parse import parse_email
from guarantee_email_agent.instructions.hand_over_lexicon import parse_hand_over
from guarantee_email_agent.instructions.instruction import Instructions
from guarantee_email_agent.interpreter.serial_numbers import canonical_serial_number
from guarantee_email_agent.llm.prompts import triage_request

MAILS = Path(__file__).with_name("mails")
MOST_WRONG = {
    "one": 1,
    "two": 3,
    "three": 4,
    "five": 3,
    "six": 4,
    "seven": 4,
    "eight": 4,
    "nine": 0,
    "ten": 3,
    "eleven": 0,
    "twelve": 0,
}
"""What is misread today. Fewer is progress: lower the figure. More is a step back."""


@pytest.mark.parametrize("name", sorted(MOST_WRONG))
def test_no_more_mails_are_misread_than_before(name: str, instructions: Instructions) -> None:
    async def misread() -> list[str]:
        wrong = []
        for mail in _mails(name):
            if mail.get("hand_over"):
                continue  # nobody reads further
            request = triage_request(_parse(mail), instructions)
            answer = (await shipped_interpreter().create(**request)).content[0].input
            # What numbers a mail about something else holds does not matter.
            numbers_matter = mail["topic"] != "other"
            if answer["topic"] not in (mail["topic"], mail.get("also_right")) or (
                numbers_matter and _keys(answer["serial_numbers"]) != _keys(mail["serials"])
            ):
                wrong.append(f"{mail['id']}: wanted {mail['topic']} {mail['serials']}, got {dict(answer)}")
        return wrong

    wrong = asyncio.run(misread())
    assert len(wrong) <= MOST_WRONG[name], "\n".join(wrong)


@pytest.mark.parametrize("name", sorted(path.stem for path in MAILS.glob("*.jsonl")))
def test_the_mails_for_a_person_are_found_and_no_others(name: str) -> None:
    hand_over = parse_hand_over((SHIPPED / "scenarios" / "hand-over.md").read_text(encoding="utf-8"))
    wrong = []
    for mail in _mails(name):
        email = _parse(mail)
        found, wanted = hand_over.find(f"{email.subject}\n\n{email.new_text}"), mail.get("hand_over", [])
        if bool(found) != bool(wanted):
            wrong.append(f"{mail['id']}: wanted {wanted}, got {found}")
    assert wrong == []


def _mails(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (MAILS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def _parse(mail: dict[str, Any]) -> Email:
    raw = {"subject": mail["subject"], "body": mail["body"], "from": "c@example.com", "message_id": mail["id"]}
    if mail.get("html"):
        raw["headers"] = {"Content-Type": "text/html"}
    return parse_email(raw)


def _keys(numbers: list[str]) -> list[str]:
    return sorted(canonical_serial_number(number) for number in numbers)
