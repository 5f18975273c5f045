"""How well the interpreter reads mails that people labelled by hand, in four languages and more.

Each line of `mails/*.jsonl` is a mail with the intent and the serial numbers that a support lead would see in it. The
lexicon was tuned on the first three files; the fourth was written afterwards and never used for tuning.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from guarantee_email_agent.email.parsing.parse import parse_email
from guarantee_email_agent.instructions.instruction import Instructions
from guarantee_email_agent.interpreter.interpreter import InstructionInterpreter
from guarantee_email_agent.interpreter.serial_numbers import canonical_serial_number
from guarantee_email_agent.llm.prompts import triage_request

MAILS = Path(__file__).with_name("mails")
MOST_WRONG = {"one": 3, "two": 4, "three": 5, "four": 4}
"""What is misread today. Fewer is progress: lower the figure. More is a step back."""


@pytest.mark.parametrize("name", sorted(MOST_WRONG))
def test_no_more_mails_are_misread_than_before(name: str, instructions: Instructions) -> None:
    async def misread() -> list[str]:
        wrong = []
        for line in (MAILS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
            mail = json.loads(line)
            raw = {"subject": mail["subject"], "body": mail["body"], "from": mail["from"], "message_id": mail["id"]}
            if mail["html"]:
                raw["headers"] = {"Content-Type": "text/html"}
            request = triage_request(parse_email(raw), instructions)
            answer = (await InstructionInterpreter().create(**request)).content[0].input
            # What numbers a mail about something else holds does not matter.
            numbers_matter = mail["intent"] != "other"
            if answer["intent"] != mail["intent"] or (
                numbers_matter and _keys(answer["serial_numbers"]) != _keys(mail["serials"])
            ):
                wrong.append(f"{mail['id']}: wanted {mail['intent']} {mail['serials']}, got {dict(answer)}")
        return wrong

    wrong = asyncio.run(misread())
    assert len(wrong) <= MOST_WRONG[name], "\n".join(wrong)


def _keys(numbers: list[str]) -> list[str]:
    return sorted(canonical_serial_number(number) for number in numbers)
