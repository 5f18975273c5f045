"""What goes into processing a mail, what is found on the way, and its result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from guarantee_email_agent.instructions.router import SERIAL_COUNTS, Intent, SerialCount


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """What goes with every request to the model.

    max_tokens: of one answer. temperature: None for a model that does not take one.
    """

    model: str
    max_tokens: int = 1024
    temperature: float | None = 0.0

    def parameters(self) -> dict[str, Any]:
        temperature = {} if self.temperature is None else {"temperature": self.temperature}
        return {"model": self.model, "max_tokens": self.max_tokens, **temperature}


@dataclass(frozen=True, slots=True)
class Triage:
    """What a mail is about, and the serial numbers that really stand in it."""

    intent: Intent
    serial_numbers: tuple[str, ...]

    @property
    def serial_count(self) -> SerialCount:
        return SERIAL_COUNTS[min(len(self.serial_numbers), 2)]


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
