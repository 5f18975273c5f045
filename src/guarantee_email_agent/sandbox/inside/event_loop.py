"""One thread that waits for everything at once: the socket to the outside, the output of commands, and deadlines."""

from __future__ import annotations

import heapq
import itertools
import os
import select
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

Handler = Callable[[int], None]

_CHUNK: Final = 1 << 18
_IDLE_S: Final = 60.0


class Timer:
    """A deadline that can be called off."""

    __slots__ = ("action", "cancelled")

    def __init__(self, action: Callable[[], None]) -> None:
        self.action = action
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class EventLoop:
    """Calls handlers when descriptors are ready, deadlines pass and children end. Monotonic seconds throughout."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._handlers: dict[int, Handler] = {}
        self._timers: list[tuple[float, int, Timer]] = []
        self._numbers = itertools.count()
        self._exit_handlers: dict[int, Handler] = {}
        self._running = True
        wake_read, wake_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self.watch(wake_read, self._reap)

    def watch(self, descriptor: int, handler: Handler, *, write: bool = False) -> None:
        """Call `handler(descriptor)` whenever it is ready. A descriptor is watched for one thing at a time."""
        self._handlers[descriptor] = handler
        self._epoll.register(descriptor, select.EPOLLOUT if write else select.EPOLLIN)

    def unwatch(self, descriptor: int) -> None:
        if self._handlers.pop(descriptor, None) is not None:
            self._epoll.unregister(descriptor)

    def is_watched(self, descriptor: int) -> bool:
        return descriptor in self._handlers

    def after(self, seconds: float, action: Callable[[], None]) -> Timer:
        timer = Timer(action)
        heapq.heappush(self._timers, (time.monotonic() + seconds, next(self._numbers), timer))
        return timer

    def on_exit(self, pid: int, handler: Handler) -> None:
        """Call `handler(wait status)` once the child has ended."""
        self._exit_handlers[pid] = handler

    def stop(self) -> None:
        self._running = False

    def run(self) -> None:
        while self._running:
            for descriptor, _ in self._epoll.poll(self._pause()):
                # A handler before this one may have closed it.
                if (handler := self._handlers.get(descriptor)) is not None:
                    handler(descriptor)
            while self._timers and self._timers[0][0] <= time.monotonic():
                timer = heapq.heappop(self._timers)[2]
                if not timer.cancelled:
                    timer.action()

    def _pause(self) -> float:
        while self._timers and self._timers[0][2].cancelled:
            heapq.heappop(self._timers)
        return min(max(self._timers[0][0] - time.monotonic(), 0.0), _IDLE_S) if self._timers else _IDLE_S

    def _reap(self, descriptor: int) -> None:
        os.read(descriptor, 4096)
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                # As the first process it is also the parent of everything that lost its own.
                if (handler := self._exit_handlers.pop(ended[0], None)) is not None:
                    handler(ended[1])


class Writer:
    """Writes to a descriptor without ever waiting: what is not taken yet is kept. on_error: the other end is closed."""

    def __init__(self, loop: EventLoop, descriptor: int, on_error: Callable[[], None]) -> None:
        os.set_blocking(descriptor, False)
        self._loop = loop
        self._descriptor = descriptor
        self._on_error = on_error
        self._pending: list[memoryview] = []

    @property
    def pending_bytes(self) -> int:
        return sum(map(len, self._pending))

    def write(self, data: bytes) -> None:
        self._pending.append(memoryview(data))
        self._flush(self._descriptor)

    def close(self) -> None:
        self._loop.unwatch(self._descriptor)
        os.close(self._descriptor)

    def _flush(self, descriptor: int) -> None:
        try:
            while self._pending:
                self._pending[0] = self._pending[0][os.write(descriptor, self._pending[0]) :]
                if not self._pending[0]:
                    self._pending.pop(0)
        except BlockingIOError:
            if not self._loop.is_watched(descriptor):
                self._loop.watch(descriptor, self._flush, write=True)
        except OSError:
            self._on_error()
        else:
            self._loop.unwatch(descriptor)


def read_available(descriptor: int) -> bytes | None:
    """What can be read without waiting: None where nothing is there yet, nothing at the end."""
    try:
        return os.read(descriptor, _CHUNK)
    except BlockingIOError:
        return None
    except OSError:
        return b""
