"""Turns at a thing that one thread at a time can use."""

from __future__ import annotations

import threading
from collections import deque


class Turns:
    """Taken in the order in which they were asked for.

    Of a plain lock, or of a pool of one connection, a thread that gives it back and asks at once gets it again, nearly
    every time: the others were seen to wait ten seconds for a turn of one millisecond.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._waiting: deque[threading.Lock] = deque()
        self._taken = False

    def take(self, patience_s: float) -> bool:
        """Wait for a turn, up to `patience_s` seconds. Whether it came; then `give` it back."""
        with self._guard:
            if not self._taken:
                self._taken = True
                return True
            mine = threading.Lock()
            mine.acquire()
            self._waiting.append(mine)
        if mine.acquire(timeout=patience_s):
            return True
        with self._guard:
            if mine in self._waiting:
                self._waiting.remove(mine)
                return False
        return True  # it came at the very last moment

    def give(self) -> None:
        """Hand the turn on to who has waited longest."""
        with self._guard:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._taken = False
