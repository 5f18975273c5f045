"""Mails with a number, half of which want or tell more than a status answers: what becomes of them."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from shipped_instructions import SHIPPED

from guarantee_email_agent import evaluate
from guarantee_email_agent.eval import EvalLoader

MAILS = Path(__file__).with_name("numbered_mails.jsonl")
MOST_ANSWERED, MOST_NEEDLESS = 71, 135
"""Of 630 for a person so many are told a status today, of 630 others so many get one. Fewer is progress."""


@pytest.mark.slow
def test_no_more_who_want_something_else_are_told_a_status_than_before() -> None:
    suite = SHIPPED.parent / "evals" / "scenarios"
    case = EvalLoader().load_eval_test_case(suite / "valid_warranty_001.yaml")
    mails = [json.loads(line) for line in MAILS.read_text(encoding="utf-8").splitlines()]
    cases = []
    for number, mail in enumerate(mails):
        subject, _, body = mail["text"].partition("\n\n")
        email = replace(case.input.email, subject=subject, body=body)
        cases.append(replace(case, scenario_id=f"mail_{number}", input=replace(case.input, email=email)))
    shown = [result.case.shown.response for result in evaluate(cases).results]
    answered = [
        mail["text"] for mail, got in zip(mails, shown, strict=True) if mail["person"] and got["ticket_created"]
    ]
    needless = [
        mail["text"] for mail, got in zip(mails, shown, strict=True) if not mail["person"] and not got["email_sent"]
    ]
    assert len(answered) <= MOST_ANSWERED, "\n---\n".join(answered)
    assert len(needless) <= MOST_NEEDLESS, "\n---\n".join(needless)
