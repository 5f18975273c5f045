"""The two requests that the agent makes of a mail, as a model gets them."""

import copy
from typing import Any

from guarantee_email_agent.email.model_requests import mail_data
from guarantee_email_agent.email.parsing.email import Email
from guarantee_email_agent.email.parsing.parse import parse_email
from guarantee_email_agent.instructions.instruction import Instructions
from guarantee_email_agent.instructions.router import Situation
from guarantee_email_agent.instructions.template import select_template
from guarantee_email_agent.llm.prompts import choice_request, triage_request

PARAMETERS = {"model": "model-1", "max_tokens": 100, "temperature": 0.0}
FACTS = {"serial_number": "SN1", "warranty_status": "valid", "expiration_date": "2031-02-03", "coverage": None}


def triage(instructions: Instructions, body: str) -> dict[str, Any]:
    return copy.deepcopy({**PARAMETERS, **triage_request(mail_data(_email(body)), instructions)})


def choice(instructions: Instructions, body: str, **facts: Any) -> dict[str, Any]:
    scenario = instructions.route(Situation(False, "warranty", "one", "valid"))
    known = FACTS | facts
    template = select_template(scenario.templates_in("en"), known)
    assert template
    request = choice_request(mail_data(_email(body)), instructions, scenario, known, template.offered(known))
    return copy.deepcopy({**PARAMETERS, **request})


def _email(body: str) -> Email:
    return parse_email({"subject": "s", "body": body, "from": "c@example.com", "received": "r", "message_id": "m"})
