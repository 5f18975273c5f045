"""What this process knows of its own tries to send, which no look into a folder can tell."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Literal

Fate = Literal["accepted", "filed", "refused", "open"]
_REMEMBERED: Final = 10_000


class Fates:
    """By Message-ID: `accepted` by the server, `filed` (its copy was seen), `refused` (never taken), or `open`."""

    def __init__(self) -> None:
        self._fates: OrderedDict[str, tuple[Fate, float]] = OrderedDict()
        self._sending: set[str] = set()
        self._changed = threading.Condition()

    def of(self, message_id: str) -> tuple[Fate, float] | None:
        """The fate, and seconds since it was learned; None for a Message-ID that was never tried here."""
        with self._changed:
            known = self._fates.get(message_id)
        return None if known is None else (known[0], time.monotonic() - known[1])

    def learn(self, message_id: str, fate: Fate) -> None:
        with self._changed:
            self._fates[message_id] = (fate, time.monotonic())
            self._fates.move_to_end(message_id)
            while len(self._fates) > _REMEMBERED:
                self._fates.popitem(last=False)

    def overdue(self, seconds: float) -> str | None:
        """A reply accepted longer ago, the copy of which was not seen yet."""
        before = time.monotonic() - seconds
        with self._changed:
            return next((one for one, (fate, at) in self._fates.items() if fate == "accepted" and at < before), None)

    @contextmanager
    def alone(self, message_id: str) -> Iterator[None]:
        """Only one try with a Message-ID at a time."""
        with self._changed:
            while message_id in self._sending:
                self._changed.wait()
            self._sending.add(message_id)
        try:
            yield
        finally:
            with self._changed:
                self._sending.remove(message_id)
                self._changed.notify_all()
