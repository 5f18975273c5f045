"""Holds what no limit on a single process can hold: the memory of all of them together, and the number of files.

The kernel's own account of a group of processes (a cgroup) is not ours to have everywhere, so the first process of the
sandbox counts, as often as the room that is left could be filled. It cannot be stopped from inside.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from .memory_usage import available_memory, measure_processes
from .socket_memory import count_sockets, socket_memory

_FILL_BYTES_S: Final = 4 << 30
"""Faster than this a processor fills no memory."""
_MIN_PAUSE_S: Final = 0.002
_MAX_PAUSE_S: Final = 0.2
_RECOUNT_S: Final = 0.01
"""Until the next count after a process was killed."""
_SLOW_COUNT_S: Final = 0.005
"""A count that takes longer has to wait for others, which could hide in the meantime what they take."""
_TIME_SHARE: Final = 10
"""Counting may take one part in so many of the time."""
_MIN_AVAILABLE_BYTES: Final = 256 << 20
"""With less memory left on the whole machine, everything in the sandbox is ended."""
_MAX_SOCKETS: Final = 1024
"""More take too long to count."""


class MemoryGuard:
    """memory: bytes for all processes together. files: how many there may be on each of the file systems.

    file_systems: where they are mounted. own_network: whether the network, and so the count of its sockets, is the
    sandbox's own. on_kill: called with a process and the reason why it is ended; on_end: with the reason why the
    sandbox has to end.

    What all processes use takes a while to count, and with many of them busy the counter itself waits for its turn.
    What the machine has left is known at once; so as soon as that has fallen by as much as the sandbox had left, all
    processes are stopped until they are counted, and go on unless it was they.
    """

    def __init__(
        self,
        on_kill: Callable[[int, str], None],
        on_end: Callable[[str], None],
        *,
        memory: int,
        files: int,
        file_systems: Sequence[str],
        own_network: bool,
    ) -> None:
        self._memory = memory
        self._files = files
        self._file_systems = file_systems
        self._on_kill = on_kill
        self._on_end = on_end
        self._own_network = own_network
        self._cores = os.cpu_count() or 1
        self._used = 0
        self._available_then = available_memory()
        self._count_at = time.monotonic()

    def check(self) -> float:
        """End what uses too much. Gives the seconds until the next check."""
        available = available_memory()
        # What was given back may be taken again by others.
        self._available_then = max(self._available_then, available)
        possible = self._used + self._available_then - available
        if possible > self._memory or time.monotonic() >= self._count_at:
            self._measure(hurry=possible > self._memory)
        for path in self._file_systems:
            state = os.statvfs(path)
            if state.f_files and state.f_files - state.f_ffree > self._files:
                self._on_end(f"the sandbox held more than {self._files} files")
        room = self._memory - self._used - self._available_then + available
        return min(max(room / (_FILL_BYTES_S * self._cores), _MIN_PAUSE_S), _MAX_PAUSE_S)

    def _measure(self, *, hurry: bool) -> None:
        """Count what is used, and kill what uses too much. hurry: it may be too much already."""
        began, stopped = time.monotonic(), False

        def stop_others() -> None:
            nonlocal stopped
            if not stopped and (hurry or time.monotonic() - began > _SLOW_COUNT_S):
                stopped = True
                _signal_all(signal.SIGSTOP)

        processes, used = measure_processes(self._memory, stop_others)
        sockets = count_sockets() if self._own_network else 0
        if 0 < sockets <= _MAX_SOCKETS:
            used += socket_memory()
        next_s = _MAX_PAUSE_S
        if used > self._memory:
            next_s = _RECOUNT_S
            reason = f"the sandbox's memory of {self._memory >> 20} MiB was used up"
            for size, pid in sorted(processes, reverse=True):
                self._kill(pid, reason)
                used -= size
                if used <= self._memory:
                    break
        elif processes and available_memory() < _MIN_AVAILABLE_BYTES:
            self._kill_all(processes, "the machine ran out of memory")
        elif processes and sockets > _MAX_SOCKETS:
            self._kill_all(processes, f"more than {_MAX_SOCKETS} sockets were open")
        self._used, self._available_then, now = max(used, 0), available_memory(), time.monotonic()
        self._count_at = now + max(next_s, _TIME_SHARE * (now - began))
        if stopped:
            _signal_all(signal.SIGCONT)

    def _kill_all(self, processes: Sequence[tuple[int, int]], reason: str) -> None:
        for _, pid in processes:
            self._kill(pid, reason)

    def _kill(self, pid: int, reason: str) -> None:
        self._on_kill(pid, reason)
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def _signal_all(number: signal.Signals) -> None:
    """To every process but ourselves, the first one."""
    with suppress(OSError):
        os.kill(-1, number)
