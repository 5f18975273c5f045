import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from guarantee_email_agent.eval.mocks import (
    MockAnthropicClient,
    MockGmailClient,
    MockTicketingClient,
    MockWarrantyAPIClient,
    create_mock_clients,
)
from guarantee_email_agent.eval.models import EvalEmail, EvalInput, EvalTestCase
from guarantee_email_agent.utils.errors import IntegrationError

Scenario = Callable[..., EvalTestCase]
EMAIL = EvalEmail(
    "My dryer",
    "SN12345 is broken",
    "Jane <jane@example.com>",
    "2026-01-18T10:00:00Z",
    to="service@example.com",
    headers={"X-One": "1"},
    attachments=("photo.jpg",),
)


def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(coroutine)


def with_mocks(scenario: Scenario, **mock_responses: Any) -> EvalTestCase:
    return scenario(input=EvalInput(EMAIL, mock_responses))


def error_of(coroutine: Coroutine[Any, Any, Any]) -> IntegrationError:
    with pytest.raises(IntegrationError) as caught:
        run(coroutine)
    return caught.value


def test_the_mailbox_holds_the_scenarios_mail_as_it_enters_the_agent(scenario: Scenario) -> None:
    assert run(MockGmailClient(with_mocks(scenario)).get_unread_emails()) == [
        {
            "subject": "My dryer",
            "body": "SN12345 is broken",
            "from": "Jane <jane@example.com>",
            "received": "2026-01-18T10:00:00Z",
            "message_id": "eval-valid_warranty_001",
            "to": "service@example.com",
            "headers": {"X-One": "1"},
            "attachments": ["photo.jpg"],
        }
    ]


def test_what_is_sent_is_captured_whole(scenario: Scenario) -> None:
    mailbox = MockGmailClient(scenario())

    run(mailbox.send_email("jane@example.com", "Re: x", "Hello", "t-1", message_id="<r@example.com>"))

    assert mailbox.sent_emails == [
        {
            "to": "jane@example.com",
            "subject": "Re: x",
            "body": "Hello",
            "thread_id": "t-1",
            "message_id": "<r@example.com>",
        }
    ]


@pytest.mark.parametrize(("failure", "retryable"), [("timeout", False), ("unavailable", True), ("malformed", False)])
def test_a_mailbox_that_fails_captures_nothing(failure: str, retryable: bool, scenario: Scenario) -> None:
    mailbox = MockGmailClient(with_mocks(scenario, gmail={"error": failure}))
    error = error_of(mailbox.send_email("jane@example.com", "Re: x", "Hello"))
    # After a time-out nobody knows whether the mail went out, so sending it again could send it twice.
    assert (error.code, error.retryable, mailbox.sent_emails) == (f"gmail_{failure}", retryable, [])


@pytest.mark.parametrize(
    ("mock", "status"),
    [({"status": "on hold"}, "on hold"), ({}, "not_found"), ({"error": "malformed", "status": "valid"}, None)],
)
def test_the_warranty_system_answers_as_the_scenario_says(
    mock: dict[str, str], status: str | None, scenario: Scenario
) -> None:
    warranty = MockWarrantyAPIClient(with_mocks(scenario, warranty_api=mock))
    assert run(warranty.check_warranty("SN12345")).get("status") == status


def test_a_malformed_ticket_has_no_number(scenario: Scenario) -> None:
    ticketing = MockTicketingClient(with_mocks(scenario, ticketing={"error": "malformed"}))
    assert "ticket_id" not in run(ticketing.create_ticket({"serial_number": "SN1"}))


@pytest.mark.parametrize("failure", ["timeout", "unavailable"])
def test_systems_that_fail_may_be_asked_again(failure: str, scenario: Scenario) -> None:
    warranty = MockWarrantyAPIClient(with_mocks(scenario, warranty_api={"error": failure}))
    ticketing = MockTicketingClient(with_mocks(scenario, ticketing={"error": failure}))
    errors = error_of(warranty.check_warranty("SN12345")), error_of(ticketing.create_ticket({"serial_number": "SN1"}))
    assert [error.code for error in errors] == [f"warranty_api_{failure}", f"ticketing_{failure}"]
    assert all(error.retryable for error in errors)


def test_tickets_are_numbered_and_captured_one_for_each_key() -> None:
    ticketing = MockTicketingClient()
    tickets = [{"idempotency_key": key} for key in ("a", "b", "a")]
    ids = [run(ticketing.create_ticket(ticket))["ticket_id"] for ticket in tickets]
    assert ids == ["MOCK-TICKET-001", "MOCK-TICKET-002", "MOCK-TICKET-001"]
    assert [ticket["ticket_id"] for ticket in ticketing.created_tickets] == ids[:2]
    assert [ticket["data"] for ticket in ticketing.created_tickets] == tickets[:2]


def test_a_field_of_a_ticket_may_be_called_data() -> None:
    ticketing = MockTicketingClient()
    run(ticketing.create_ticket({"data": "a field"}))
    assert ticketing.created_tickets[0]["data"] == "a field"
    with pytest.raises(KeyError):
        ticketing.created_tickets[0]["colour"]


@pytest.mark.parametrize(("client", "service"), [("warranty", "warranty_api"), ("ticketing", "ticketing")])
def test_a_connection_that_fails_says_so(client: str, service: str, scenario: Scenario) -> None:
    clients = create_mock_clients(with_mocks(scenario, **{service: {"error": "unavailable"}}))
    assert error_of(clients[client].test_connection()).code == f"{service}_unavailable"
    assert run(create_mock_clients(scenario())[client].test_connection()) is True


def test_the_model_keeps_what_it_was_asked(scenario: Scenario) -> None:
    model = MockAnthropicClient()
    request: dict[str, Any] = {"system": "", "messages": [], "tool_choice": {"name": "unknown"}}
    with pytest.raises(Exception, match="unknown"):
        run(model.messages.create(**request))
    assert model.requests == [request]
