from collections.abc import Callable
from dataclasses import replace
from email import message_from_bytes
from email.policy import default

import pytest

from guarantee_email_agent.email.parsing.parse import parse_email
from guarantee_email_agent.eval.models import EvalEmail, EvalInput, EvalTestCase
from guarantee_email_agent.eval.served_mocks import raw_mail

EMAIL = EvalEmail(
    "Trockner kaputt: größer als 5 €",
    "Grüße,\nSN12345",
    "Jane <jane@example.com>",
    "2026-01-18T10:00:00Z",
    headers={"Auto-Submitted": "auto-replied", "X-Long": "a\n b"},
    attachments=("photo.jpg",),
)


@pytest.fixture
def case(scenario: Callable[..., EvalTestCase]) -> EvalTestCase:
    return scenario(input=EvalInput(EMAIL))


def test_the_bytes_say_the_same(case: EvalTestCase) -> None:
    assert parse_email(raw_mail(case)).subject == EMAIL.subject
    parsed = message_from_bytes(raw_mail(case), policy=default)
    text = parsed.get_body()
    assert text.get_content().splitlines() == EMAIL.body.splitlines()
    assert (parsed["From"], parsed["Auto-Submitted"], parsed["X-Long"]) == (EMAIL.from_address, "auto-replied", "a b")
    assert parsed["Date"] == "Sun, 18 Jan 2026 10:00:00 +0000"
    assert [part.get_filename() for part in parsed.iter_attachments()] == ["photo.jpg"]


def test_a_message_id_of_the_scenario_stands(case: EvalTestCase) -> None:
    own = replace(EMAIL, headers={"Message-Id": "<mine@example.com>"}, received="yesterday")
    parsed = message_from_bytes(raw_mail(replace(case, input=EvalInput(own))), policy=default)
    assert parsed.get_all("Message-ID") == ["<mine@example.com>"]
