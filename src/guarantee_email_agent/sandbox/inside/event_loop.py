"""One thread that waits for everything at once: the socket to the outside, the output of commands, and deadlines."""

from __future__ import annotations

import heapq
import os
import select
import signal
import time
from collections.abc import Callable
from typing import Final

Handler = Callable[[int], None]

_IDLE_S: Final = 60.0


class Timer:
    """A deadline that can be called off."""

    __slots__ = ("action", "cancelled")

    def __init__(self, action: Callable[[], None]) -> None:
        self.action = action
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class Loop:
    """Calls handlers when descriptors are ready, deadlines pass and children end. Monotonic seconds throughout."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._handlers: dict[int, Handler] = {}
        self._timers: list[tuple[float, int, Timer]] = []
        self._count = 0
        self._ended: dict[int, Callable[[int], None]] = {}
        self._running = True
        wake_read, wake_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self.watch(wake_read, self._reap)

    @staticmethod
    def now() -> float:
        return time.monotonic()

    def watch(self, descriptor: int, handler: Handler, *, write: bool = False) -> None:
        self._handlers[descriptor] = handler
        self._epoll.register(descriptor, select.EPOLLOUT if write else select.EPOLLIN)

    def unwatch(self, descriptor: int) -> None:
        if self._handlers.pop(descriptor, None) is not None:
            self._epoll.unregister(descriptor)

    def watched(self, descriptor: int) -> bool:
        return descriptor in self._handlers

    def at(self, when: float, action: Callable[[], None]) -> Timer:
        timer = Timer(action)
        self._count += 1
        heapq.heappush(self._timers, (when, self._count, timer))
        return timer

    def after(self, seconds: float, action: Callable[[], None]) -> Timer:
        return self.at(self.now() + seconds, action)

    def on_end(self, pid: int, action: Callable[[int], None]) -> None:
        """Call `action(wait status)` once the child has ended."""
        self._ended[pid] = action

    def stop(self) -> None:
        self._running = False

    def run(self) -> None:
        while self._running:
            for descriptor, _ in self._epoll.poll(self._pause()):
                # A handler before this one may have closed it.
                if (handler := self._handlers.get(descriptor)) is not None:
                    handler(descriptor)
            while self._timers and self._timers[0][0] <= self.now():
                timer = heapq.heappop(self._timers)[2]
                if not timer.cancelled:
                    timer.action()

    def _pause(self) -> float:
        while self._timers and self._timers[0][2].cancelled:
            heapq.heappop(self._timers)
        return min(max(self._timers[0][0] - self.now(), 0.0), _IDLE_S) if self._timers else _IDLE_S

    def _reap(self, descriptor: int) -> None:
        os.read(descriptor, 4096)
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            # As the first process it is also the parent of everything that lost its own.
            if (action := self._ended.pop(pid, None)) is not None:
                action(status)
