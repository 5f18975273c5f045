"""What the agent needs of the outside world: three small ports.

A failure is an IntegrationError with code `{port}_{timeout|unavailable|malformed|...}`; its `retryable` tells whether
another try can heal it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class MailPort(Protocol):
    """The mailbox."""

    async def send_email(
        self,
        to: str,
        subject: str,
        body: str,
        thread_id: str | None = None,
        *,
        message_id: str | None = None,
        in_reply_to: str | None = None,
        references: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Mapping[str, Any]:
        """Send one mail. `message_id` follows from the mail answered, so a mail sent twice can be recognised."""


class WarrantyPort(Protocol):
    """The warranty system."""

    async def check_warranty(self, serial_number: str) -> Mapping[str, Any]:
        """`{"status": …, "expiration_date": …, "coverage": …}`; the answer is checked by the caller."""


class TicketingPort(Protocol):
    """The ticketing system."""

    async def create_ticket(self, ticket_data: Mapping[str, Any]) -> Mapping[str, Any]:
        """`{"ticket_id": …}`. The same `idempotency_key` gives the same ticket, so a repeated call is harmless."""
