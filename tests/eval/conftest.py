from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from scenario_folder import BUILT_IN

from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.eval.case_result import judged_case, unusable_case
from guarantee_email_agent.eval.models import (
    EvalEmail,
    EvalExpectedOutput,
    EvalInput,
    EvalResult,
    EvalTestCase,
    InvalidScenario,
)
from guarantee_email_agent.runlog.records import Check


@pytest.fixture
def config() -> Config:
    """The built-in defaults, with the shipped instructions."""
    return BUILT_IN


def mail_with_body(body: str) -> EvalInput:
    return EvalInput(
        EvalEmail(subject="Hi", body=body, from_address="customer@example.com", received="2026-01-18T10:00:00Z")
    )


def in_letters(number: int) -> str:
    """A word for each number that holds no digit."""
    return "".join("abcdefghij"[int(digit)] for digit in str(number))


def make_scenario(**changes: Any) -> EvalTestCase:
    expected = EvalExpectedOutput(email_sent=True, ticket_created=True, scenario_instruction_used="valid-warranty")
    return EvalTestCase(
        **{
            "scenario_id": "valid_warranty_001",
            "description": "Customer asks",
            "category": "valid-warranty",
            "created": "2026-01-18",
            "input": mail_with_body("SN12345"),
            "expected_output": expected,
            "file": f"evals/scenarios/{changes.get('scenario_id', 'valid_warranty_001')}.yaml",
        }
        | changes
    )


@pytest.fixture
def scenario() -> Callable[..., EvalTestCase]:
    """Makes a scenario; any field can be given."""
    return make_scenario


@pytest.fixture
def outcome() -> Callable[..., EvalResult]:
    """Makes a result: passed where no failed checks are given, as `name: reason` or with all that they have; further
    arguments are fields of the scenario.

    Its mail is distinct from all others, unless the scenario's `input` is given.
    """
    numbers = count()

    def make(*failures: str | Check, took_ms: int = 3, **changes: Any) -> EvalResult:
        scenario = make_scenario(**{"input": mail_with_body(f"Mail {in_letters(next(numbers))}")} | changes)
        checks = tuple(each if isinstance(each, Check) else Check(*each.split(": ", 1)) for each in failures)
        actual = {"email_sent": True, "processing_time_ms": took_ms}
        return EvalResult.of(scenario, [judged_case(scenario, checks, actual)])

    return make


@pytest.fixture
def invalid() -> EvalResult:
    """The result of a file that cannot be used."""
    broken = InvalidScenario("a_1.yaml", "evals/a_1.yaml", "Missing field: created", "eval_missing_field")
    return EvalResult.of(broken, [unusable_case(broken)])
