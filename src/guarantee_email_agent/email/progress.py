"""How far the work on one mail has come."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from guarantee_email_agent.email.processor_models import ProcessingResult
from guarantee_email_agent.utils.clock import Clock


class Progress:
    """The current step of one mail and its result so far; the only thing that changes while it is processed."""

    def __init__(self, message_id: str, clock: Clock, step_ms: dict[str, float] | None = None) -> None:
        self._known: dict[str, Any] = {"success": False, "message_id": message_id}
        self._clock = clock
        self._step = "parse"
        self._step_began: float | None = clock.monotonic()
        self._step_ms = {} if step_ms is None else step_ms

    @property
    def step(self) -> str:
        return self._step

    @step.setter
    def step(self, name: str) -> None:
        self.end_step()
        self._step = name

    def skip_step(self) -> None:
        """There is nothing to do in the current one: its time is not counted."""
        self._step_began = None

    def end_step(self) -> None:
        """Count the time of the current one."""
        now = self._clock.monotonic()
        if self._step_began is not None:
            self._step_ms[self._step] = (now - self._step_began) * 1000
        self._step_began = now

    def record(self, **known: Any) -> None:
        self._known.update(known)

    @property
    def ticket_fields(self) -> Mapping[str, str]:
        return cast("Mapping[str, str]", self._known.get("ticket_fields", {}))

    def fail(self, code: str, message: str, details: Mapping[str, Any] | None = None) -> None:
        self.record(failed_step=self.step, error_code=code, error_message=message, error_details=dict(details or {}))

    def result(self, elapsed_s: float) -> ProcessingResult:
        return ProcessingResult(**self._known, processing_time_ms=round(elapsed_s * 1000), step_ms=self._step_ms)
