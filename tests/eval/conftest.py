from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from messages_server import MessagesServer, running_messages_server

from guarantee_email_agent.eval.models import (
    EvalEmail,
    EvalExpectedOutput,
    EvalInput,
    EvalResult,
    EvalTestCase,
    InvalidScenario,
)


@pytest.fixture
def server() -> Iterator[MessagesServer]:
    """Speaks `/v1/messages` on loopback; gives honest answers unless it is told others."""
    with running_messages_server() as server:
        yield server


def make_scenario(**changes: Any) -> EvalTestCase:
    email = EvalEmail(subject="Hi", body="SN12345", from_address="customer@example.com", received="2026-01-18")
    expected = EvalExpectedOutput(email_sent=True, ticket_created=True, scenario_instruction_used="valid-warranty")
    return EvalTestCase(
        **{
            "scenario_id": "valid_warranty_001",
            "description": "Customer asks",
            "category": "valid-warranty",
            "created": "2026-01-18",
            "input": EvalInput(email),
            "expected_output": expected,
            "file": "evals/scenarios/valid_warranty_001.yaml",
        }
        | changes
    )


@pytest.fixture
def scenario() -> Callable[..., EvalTestCase]:
    """Makes a scenario; any field can be given."""
    return make_scenario


@pytest.fixture
def outcome() -> Callable[..., EvalResult]:
    """Makes a result: passed where no failures are given; further arguments are fields of the scenario."""

    def make(*failures: str, took_ms: int = 3, **changes: Any) -> EvalResult:
        return EvalResult(make_scenario(**changes), not failures, list(failures), {"email_sent": True}, took_ms)

    return make


@pytest.fixture
def invalid() -> EvalResult:
    """The result of a file that cannot be used."""
    broken = InvalidScenario("a_1.yaml", "evals/a_1.yaml", "Missing field: created", "eval_missing_field")
    return EvalResult.of_invalid(broken)
