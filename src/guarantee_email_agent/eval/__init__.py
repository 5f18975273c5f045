"""Scenarios: load, mock, run, check, report.

from guarantee_email_agent.eval import EvalLoader, EvalRunner

results = await EvalRunner(load_config()).run_suite(EvalLoader().discover_test_cases("evals/scenarios"))
"""

from __future__ import annotations

from guarantee_email_agent.eval.loader import EvalLoader
from guarantee_email_agent.eval.mocks import (
    MockAnthropicClient,
    MockGmailClient,
    MockTicketingClient,
    MockWarrantyAPIClient,
    create_mock_clients,
)
from guarantee_email_agent.eval.models import EvalEmail, EvalExpectedOutput, EvalInput, EvalResult, EvalTestCase
from guarantee_email_agent.eval.reporter import EvalReporter
from guarantee_email_agent.eval.runner import EvalRunner

__all__ = [
    "EvalEmail",
    "EvalExpectedOutput",
    "EvalInput",
    "EvalLoader",
    "EvalReporter",
    "EvalResult",
    "EvalRunner",
    "EvalTestCase",
    "MockAnthropicClient",
    "MockGmailClient",
    "MockTicketingClient",
    "MockWarrantyAPIClient",
    "create_mock_clients",
]
