"""Stand-ins for the four clients at the network's edge; everything behind them is the production code.

They answer from one scenario's `mock_responses`, capture what reaches them, and open no connection.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from guarantee_email_agent.eval.models import EvalTestCase
from guarantee_email_agent.integrations.ports import Reply
from guarantee_email_agent.interpreter.interpreter import InstructionInterpreter
from guarantee_email_agent.llm.port import Message, ModelClient
from guarantee_email_agent.utils.errors import IntegrationError

_RETRYABLE_FAULTS = frozenset({"timeout", "unavailable"})
_MALFORMED_ANSWER: Mapping[str, Any] = {"unexpected": "answer"}


def mail_of(test_case: EvalTestCase) -> dict[str, Any]:
    """The scenario's mail as it enters `EmailProcessor.process_email`."""
    email = test_case.input.email
    raw: dict[str, Any] = {
        "subject": email.subject,
        "body": email.body,
        "from": email.from_address,
        "received": email.received,
        "message_id": f"eval-{test_case.scenario_id}",
    }
    if email.to is not None:
        raw["to"] = email.to
    if email.headers:
        raw["headers"] = email.headers
    if email.attachments:
        raw["attachments"] = list(email.attachments)
    return raw


def send_email_arguments(reply: Reply) -> dict[str, Any]:
    """The reply as `MockGmailClient.send_email` takes and captures it; absent ids are None."""
    return {
        "to": reply.to,
        "subject": reply.subject,
        "body": reply.body,
        "thread_id": reply.thread_id,
        "message_id": reply.message_id,
        "in_reply_to": reply.in_reply_to or None,
        "references": reply.references,
        "headers": reply.headers,
    }


class MockGmailClient:
    """A mailbox with one unread mail; `sent_emails` holds what was sent, each as a mapping of the call's arguments."""

    def __init__(self, test_case: EvalTestCase) -> None:
        self._test_case = test_case
        self._fault = _fault_of(test_case, "gmail")
        self.sent_emails: list[dict[str, Any]] = []

    async def get_unread_emails(self) -> list[dict[str, Any]]:
        if self._fault:
            raise _failure("gmail", self._fault)
        return [mail_of(self._test_case)]

    async def send(self, reply: Reply) -> dict[str, Any]:
        return await self.send_email(**send_email_arguments(reply))

    async def send_email(
        self, to: str, subject: str, body: str, thread_id: str | None = None, **headers: Any
    ) -> dict[str, Any]:
        if self._fault:
            # After a time-out nobody knows whether the mail went out, so sending is not for a retry to repeat.
            raise _failure("gmail", self._fault, retryable=self._fault == "unavailable")
        self.sent_emails.append({"to": to, "subject": subject, "body": body, "thread_id": thread_id, **headers})
        return {"message_id": f"mock-message-{len(self.sent_emails):03d}"}

    async def close(self) -> None:
        """Nothing is open."""


class MockWarrantyAPIClient:
    """Answers the scenario's facts for whatever serial number; without any it knows none. `calls` holds the numbers."""

    def __init__(self, test_case: EvalTestCase) -> None:
        self._answer = dict(test_case.input.mock_responses.get("warranty_api") or {"status": "not_found"})
        self._fault = self._answer.pop("error", None)
        self.calls: list[str] = []

    async def check_warranty(self, serial_number: str) -> dict[str, Any]:
        self.calls.append(serial_number)
        if self._fault in _RETRYABLE_FAULTS:
            raise _failure("warranty_api", str(self._fault))
        return dict(_MALFORMED_ANSWER if self._fault else self._answer)

    async def test_connection(self) -> bool:
        if self._fault:
            raise _failure("warranty_api", str(self._fault))
        return True

    async def close(self) -> None:
        """Nothing is open."""


class MockTicketingClient:
    """Numbers its tickets MOCK-TICKET-001, -002, …; `created_tickets` holds their data with the `ticket_id`."""

    def __init__(self, test_case: EvalTestCase | None = None) -> None:
        self._fault = _fault_of(test_case, "ticketing") if test_case else None
        self._by_key: dict[str, str] = {}
        self.created_tickets: list[dict[str, Any]] = []

    async def create_ticket(self, ticket_data: Mapping[str, Any]) -> dict[str, Any]:
        if self._fault in _RETRYABLE_FAULTS:
            raise _failure("ticketing", str(self._fault))
        if self._fault:
            return dict(_MALFORMED_ANSWER)
        key = str(ticket_data.get("idempotency_key") or "")
        if key in self._by_key:
            return {"ticket_id": self._by_key[key], "status": "existing"}
        ticket_id = f"MOCK-TICKET-{len(self.created_tickets) + 1:03d}"
        self.created_tickets.append({**ticket_data, "ticket_id": ticket_id})
        if key:
            self._by_key[key] = ticket_id
        return {"ticket_id": ticket_id, "status": "created"}

    async def test_connection(self) -> bool:
        if self._fault:
            raise _failure("ticketing", self._fault)
        return True

    async def close(self) -> None:
        """Nothing is open."""


class MockAnthropicClient(ModelClient):
    """The deterministic model behind the Messages API's shape; `requests` holds what it was asked."""

    def __init__(self) -> None:
        self._interpreter = InstructionInterpreter()
        self.requests: list[dict[str, Any]] = []

    async def create(self, **request: Any) -> Message:
        """The answer follows from `request` alone."""
        self.requests.append(request)
        return await self._interpreter.create(**request)

    async def close(self) -> None:
        """Nothing is open."""


def create_mock_clients(test_case: EvalTestCase) -> dict[str, Any]:
    """Fresh clients for one scenario: `gmail`, `warranty`, `ticketing`, `anthropic`."""
    return {
        "gmail": MockGmailClient(test_case),
        "warranty": MockWarrantyAPIClient(test_case),
        "ticketing": MockTicketingClient(test_case),
        "anthropic": MockAnthropicClient(),
    }


def _fault_of(test_case: EvalTestCase, service: str) -> str | None:
    fault = test_case.input.mock_responses.get(service, {}).get("error")
    return str(fault) if fault else None


def _failure(service: str, fault: str, retryable: bool | None = None) -> IntegrationError:
    if retryable is None:
        retryable = fault in _RETRYABLE_FAULTS
    return IntegrationError(
        f"The mocked {service} fails as the scenario says: {fault}", f"{service}_{fault}", {"retryable": retryable}
    )
