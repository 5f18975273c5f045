from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scenario_folder import SHIPPED, TEMPLATES

from guarantee_email_agent.eval.case_result import as_case, mail_fingerprint
from guarantee_email_agent.eval.loader import EvalLoader
from guarantee_email_agent.eval.models import EvalResult, EvalTestCase, PreviousReply
from guarantee_email_agent.runlog.suite_statistics import DistinctMails, MailCounter

FIRST = EvalLoader().load_eval_test_case(TEMPLATES / "valid_warranty_001.yaml")
BODY = "Hello,\n\nmy washer SN12345 leaks. Is it covered?\n\nRegards\nKim Larsen\n"


def scenario(mocks: dict[str, Any] | None = None, previous: PreviousReply | None = None, **mail: Any) -> EvalTestCase:
    email = replace(FIRST.input.email, **{"body": BODY} | mail)
    given_mocks = FIRST.input.mock_responses if mocks is None else mocks
    return replace(FIRST, input=replace(FIRST.input, email=email, mock_responses=given_mocks, previous_reply=previous))


def are_copies(one: EvalTestCase, other: EvalTestCase) -> bool:
    return mail_fingerprint(one) == mail_fingerprint(other)


@pytest.mark.parametrize(
    "mail",
    [
        {"body": BODY.replace("SN12345", "HX-77-20391")},
        {"body": BODY.replace("\n\n", "\n").upper()},
        {"body": BODY.replace("Kim Larsen", "Sam")},
        {"body": BODY.replace("SN12345 leaks", "  SN12345\nleaks")},
        {"from_address": "sam@example.org"},
        {"from_address": '"Sam Jones" <sam.jones@example.org>'},
        {"received": "2027-03-04T11:12:13Z"},
        {"headers": {"Message-ID": "<1@example.com>", "date": "today"}},
        {"raw": b"DKIM-Signature: v=1\r\nMIME-Version: 1.0\r\n\r\nwritten otherwise"},
    ],
)
def test_what_a_copying_hand_changes_makes_no_new_mail(mail: dict[str, Any]) -> None:
    assert are_copies(scenario(), scenario(**mail))


def test_the_name_of_the_sender_in_the_text_makes_no_new_mail() -> None:
    one = scenario(from_address="kim@example.com", body="Kim here. My washer leaks.")
    assert are_copies(one, scenario(from_address="sam@example.com", body="Sam here. My washer leaks."))


def test_other_expectations_make_no_new_mail() -> None:
    other = replace(scenario(), expected_output=replace(FIRST.expected_output, response_body_contains=("else",)))
    assert are_copies(scenario(), replace(other, scenario_id="valid_warranty_002", description="Else"))


@pytest.mark.parametrize(
    "mail",
    [
        {"body": BODY.replace("washer", "dryer")},
        {"body": BODY.replace("SN12345", "SN\u20112345")},
        {"body": BODY.replace("SN12345", "12345SN")},
        {"subject": "Complaint"},
        {"headers": {"Precedence": "bulk"}},
        {"raw": b"Precedence: bulk\r\n\r\n"},
        {"attachments": ("photo.jpg",)},
        {"from_address": "noreply@example.com"},
        {"from_address": "Mail Delivery System <>"},
        {"from_address": '"Your warranty is fully covered" <kim@example.com>'},
        {"mocks": {}},
        {"mocks": {"warranty_api": {"status": "expired"}}},
        {"mocks": {"warranty_api": {"error": "timeout"}}},
        {"previous": PreviousReply("<r@example.com>", "missing-info")},
    ],
)
def test_what_the_agent_meets_makes_another_mail(mail: dict[str, Any]) -> None:
    assert not are_copies(scenario(), scenario(**mail))


def test_the_order_of_keys_makes_no_other_mail() -> None:
    one = {"warranty_api": {"status": "valid", "coverage": "full"}, "ticketing": {}}
    other = {"ticketing": {}, "warranty_api": {"coverage": "full", "status": "valid"}}
    assert are_copies(scenario(one), scenario(other))


def test_a_short_mail_is_not_taken_for_a_signature() -> None:
    assert not are_copies(scenario(body="Hello"), scenario(body="Warranty"))


def count(results: Iterable[EvalResult]) -> DistinctMails:
    mails = MailCounter()
    for result in results:
        mails.add(as_case(result))
    return mails.count()


def test_files_that_cannot_be_used_are_copies_of_none(invalid: EvalResult) -> None:
    assert count([invalid, EvalResult(FIRST, True)]) == DistinctMails(2, 1)


def test_the_shipped_scenarios_are_all_distinct() -> None:
    files: dict[bytes, str] = {}
    for case in EvalLoader().discover_test_cases(SHIPPED):
        first = files.setdefault(mail_fingerprint(case), case.scenario_id)
        assert first == case.scenario_id, f"{case.scenario_id} is a copy of {first}"


@given(st.lists(st.tuples(st.sampled_from(["washer", "dryer", "oven", "kettle"]), st.booleans()), max_size=30))
def test_copies_count_once_and_pass_only_together(runs: list[tuple[str, bool]]) -> None:
    results = [
        EvalResult(scenario(body=f"My {device} SN{number} leaks."), passed)
        for number, (device, passed) in enumerate(runs)
    ]
    devices = {device for device, _ in runs}
    good = {device for device in devices if all(passed for other, passed in runs if other == device)}
    assert count(results) == DistinctMails(len(devices), len(good))


@given(st.text(), st.text(), st.text(max_size=30))
def test_any_mail_has_a_fingerprint_that_does_not_change(subject: str, body: str, sender: str) -> None:
    one = scenario(subject=subject, body=body, from_address=sender)
    assert are_copies(one, replace(one))
