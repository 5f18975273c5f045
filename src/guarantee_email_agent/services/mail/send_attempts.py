"""What this process knows of its own attempts to send, which no look into a folder can tell."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Literal

AttemptState = Literal["accepted", "filed", "refused", "uncertain"]
_MAX_REMEMBERED: Final = 10_000


class SendAttempts:
    """By Message-ID: `accepted` by the server, `filed` (its copy was seen), `refused` (never taken), or `uncertain`."""

    def __init__(self) -> None:
        self._attempts: dict[str, tuple[AttemptState, float]] = {}  # the latest last
        self._sending: set[str] = set()
        self._changed = threading.Condition()

    def state(self, message_id: str) -> AttemptState | None:
        """None for a Message-ID that was never tried here."""
        with self._changed:
            return self._attempts.get(message_id, (None, 0))[0]

    def is_uncertain(self, message_id: str, within_s: float) -> bool:
        """Whether an attempt not longer ago than this may have succeeded."""
        with self._changed:
            state, at = self._attempts.get(message_id, (None, 0.0))
        return state == "uncertain" and time.monotonic() - at < within_s

    def record(self, message_id: str, state: AttemptState) -> None:
        with self._changed:
            self._attempts.pop(message_id, None)
            self._attempts[message_id] = (state, time.monotonic())
            if len(self._attempts) > _MAX_REMEMBERED:
                del self._attempts[next(iter(self._attempts))]

    def accepted_before(self, seconds: float) -> str | None:
        """A reply accepted longer ago than this, the copy of which was not seen yet."""
        before = time.monotonic() - seconds
        with self._changed:
            attempts = self._attempts.items()
            return next((found for found, (state, at) in attempts if state == "accepted" and at < before), None)

    @contextmanager
    def exclusive(self, message_id: str) -> Iterator[None]:
        """Only one attempt with a Message-ID at a time."""
        with self._changed:
            self._changed.wait_for(lambda: message_id not in self._sending)
            self._sending.add(message_id)
        try:
            yield
        finally:
            with self._changed:
                self._sending.remove(message_id)
                self._changed.notify_all()
