"""The list of all checks of a result, passed ones too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kept_suite import KeptSuite
from scenario_folder import SHIPPED, failing

from guarantee_email_agent.eval.check_list import list_checks
from guarantee_email_agent.eval.loader import EvalLoader
from guarantee_email_agent.eval.models import EvalResult, EvalTestCase
from guarantee_email_agent.store.run_reader import RunStore

CASE = EvalLoader().load_eval_test_case(str(SHIPPED / "valid_warranty_001.yaml"))
ACTUAL: dict[str, Any] = {
    "email_sent": True,
    "response_body": "Your Warranty  is valid until 2025-12-31, and fully covered.",
    "ticket_created": True,
    "ticket_fields": {**CASE.expected_output.ticket_fields},
    "scenario_used": "valid-warranty",
}


def checked(case: EvalTestCase = CASE, **changes: Any) -> list[tuple[str, bool]]:
    return [(row["name"], row["passed"]) for row in rows(case, **changes)]


def rows(case: EvalTestCase = CASE, **changes: Any) -> list[dict[str, Any]]:
    actual = ACTUAL | changes
    failures = case.expected_output.matches(actual)[1]
    return list_checks(case, EvalResult(case, not failures, failures, actual))


def test_every_check_that_passed_is_listed() -> None:
    expected = CASE.expected_output
    found = checked()
    assert all(passed for _, passed in found)
    count = len(expected.response_body_contains) + len(expected.response_body_excludes) + len(expected.ticket_fields)
    assert len(found) == count + 3


def test_a_phrase_shows_as_it_stands_in_the_reply() -> None:
    (row,) = [row for row in rows() if row["expected"] == "'warranty is valid'"]
    assert row["actual"] == "Your Warranty is valid until 2025-12-31, and fully c …"


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"email_sent": False}, "email_sent"),
        ({"response_body": "It expired"}, "response_body_contains"),
        ({"ticket_created": False}, "ticket_created"),
        ({"ticket_fields": {}}, "ticket_fields"),
        ({"scenario_used": None}, "scenario_instruction_used"),
    ],
)
def test_a_failed_check_stands_in_its_place_with_its_reason(change: dict[str, Any], name: str) -> None:
    found = rows(**change)
    failed = [row for row in found if not row["passed"]]
    assert name in {row["name"] for row in failed}
    assert all(row["reason"] for row in failed)
    assert [row["name"] for row in found if row["name"] == name] == [
        row["name"] for row in rows() if row["name"] == name
    ]


def test_what_failed_beside_the_scenario_file_comes_last() -> None:
    result = EvalResult(CASE, False, ["agent: it ended with exit code 3"], ACTUAL)
    assert list_checks(CASE, result)[-1] == {
        "name": "agent",
        "passed": False,
        "expected": None,
        "actual": None,
        "reason": "it ended with exit code 3",
    }


def test_what_was_not_judged_is_not_listed() -> None:
    """An agent that is not ours reports no scenario, which is no failure of it."""
    listed = list_checks(CASE, EvalResult(CASE, True, [], ACTUAL | {"scenario_used": None}))
    assert "scenario_instruction_used" not in {row["name"] for row in listed}


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_store_has_all_checks_the_reading_and_the_answers_of_the_calls(tmp_path: Path, jobs: int) -> None:
    suite = KeptSuite(tmp_path / "scenarios")
    suite.write(1)
    suite.write(2, failing)
    suite.run(jobs=jobs)
    with RunStore(suite.file) as store:
        transcripts = [store.transcript(each) for each in store.results(store.find_run("last"))]
    verdicts = [[row["passed"] for row in each.judgement["checks"]] for each in transcripts]
    assert (all(verdicts[0]), verdicts[1].count(False)) == (True, 1)
    assert transcripts[0].trace["read"] == {
        "topic": "warranty",
        "language": "en",
        "number_kind": "serial_number",
        "numbers": ["SN12345"],
        "look_up": "warranty_api",
        "number": "SN12345",
        "status": "valid",
        "reply_language": "en",
    }
    steps = transcripts[0].trace["execution_trace"]
    names = [step["action"]["action_type"] for step in steps]
    assert names == ["warranty.check_warranty", "ticketing.create_ticket", "mail.send_reply"]
    assert '"status": "valid"' in steps[0]["feedback"]["message"]


def test_german_sharp_s_in_a_reply_moves_no_excerpt_out_of_place() -> None:
    (row,) = [
        row for row in rows(response_body="Straße: the warranty is valid") if row["expected"] == "'warranty is valid'"
    ]
    assert row["actual"] == "strasse: the warranty is valid"
