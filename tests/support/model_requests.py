"""The two requests that the agent makes of a mail, as a model gets them."""

from __future__ import annotations

import copy
from typing import Any

from guarantee_email_agent.email.parsing.email import Email
from guarantee_email_agent.email.parsing.parse import parse_email
from guarantee_email_agent.instructions.instruction import Instructions
from guarantee_email_agent.instructions.router import Situation
from guarantee_email_agent.llm.prompts import draft_request, triage_request

PARAMETERS = {"model": "model-1", "max_tokens": 100, "temperature": 0.0}
FACTS = {"serial_number": "SN1", "warranty_status": "valid", "expiration_date": "2031-02-03", "coverage": None}


def triage(instructions: Instructions, body: str) -> dict[str, Any]:
    return copy.deepcopy({**PARAMETERS, **triage_request(_email(body), instructions)})


def draft(instructions: Instructions, body: str, objections: tuple[str, ...] = (), **facts: Any) -> dict[str, Any]:
    scenario = instructions.route(Situation(False, "warranty", "one", "valid"))
    request = draft_request(_email(body), instructions, scenario, FACTS | facts, objections)
    return copy.deepcopy({**PARAMETERS, **request})


def _email(body: str) -> Email:
    return parse_email({"subject": "s", "body": body, "from": "c@example.com", "received": "r", "message_id": "m"})
