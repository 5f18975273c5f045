"""Ctrl-C, for the threads that it does not reach."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager


class Interruption:
    """event: which may be set elsewhere, too."""

    def __init__(self, event: threading.Event | None = None) -> None:
        self._event = threading.Event() if event is None else event
        self._changed = threading.Condition()
        self._working = 0

    def request(self) -> None:
        self._event.set()

    def requested(self) -> bool:
        return self._event.is_set()

    @contextmanager
    def awaited(self, by: int = 1) -> Iterator[None]:
        """Work whose end `wait` waits for."""
        self._count(by)
        try:
            yield
        finally:
            self._count(-by)

    def not_awaited(self) -> AbstractContextManager[None]:
        """For a part of that work whose end `wait` does not wait for."""
        return self.awaited(-1)

    def wait(self, timeout_s: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._working <= 0, timeout_s)

    def _count(self, by: int) -> None:
        with self._changed:
            self._working += by
            self._changed.notify_all()
