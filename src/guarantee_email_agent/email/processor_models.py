"""What processing one mail comes to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class ProcessingResult:
    """Everything that is known about one mail after the agent has dealt with it.

    `success` means that the mail is done: answered, or deliberately not answered (`skip_reason` says why). Otherwise
    `failed_step` names the step, `error_code` and `error_message` say what was wrong, and the mail stays unprocessed;
    `error_details` may hold `retryable` (another try can heal it) and `outage` (a service as a whole is down).
    """

    success: bool
    message_id: str
    scenario_used: str | None = None
    serial_number: str | None = None
    warranty_status: str | None = None
    email_sent: bool = False
    response_body: str | None = None
    ticket_created: bool = False
    ticket_id: str | None = None
    ticket_fields: Mapping[str, str] = field(default_factory=dict)
    skip_reason: str | None = None
    failed_step: str | None = None
    error_code: str | None = None
    error_message: str | None = None
    error_details: Mapping[str, Any] = field(default_factory=dict)
    processing_time_ms: int = 0
