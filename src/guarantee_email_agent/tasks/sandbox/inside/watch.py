"""Holds what no limit on a single process can hold: the memory of all of them together, and the number of files.

The kernel's own account of a group of processes (a cgroup) is not ours to have everywhere, so the first process of the
sandbox counts, as often as the room that is left could be filled. It cannot be stopped from inside.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Final

from .loop import Loop

_FILL_BYTES_S: Final = 4 << 30
"""Faster than this a processor fills no memory."""
_SHORTEST_S: Final = 0.004
_LONGEST_S: Final = 0.2
_MACHINE_BYTES: Final = 256 << 20
"""With less memory left on the whole machine, everything in the sandbox is ended."""
_SOCKETS: Final = 4096
"""What waits in a socket to be read is in nobody's memory, up to 400 KiB for each."""
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


class Watch:
    """memory: bytes for all processes together. files: how many there may be. root: where the disk is looked at.

    alone: whether the network, and so the count of its sockets, is the sandbox's own. on_kill: told, in words, why a
    process is ended; on_end: why the sandbox has to end.
    """

    def __init__(
        self,
        loop: Loop,
        memory: int,
        files: int,
        root: str,
        on_kill: Callable[[int, str], None],
        on_end: Callable[[str], None],
        *,
        alone: bool,
    ) -> None:
        self._loop = loop
        self._memory = memory
        self._files = files
        self._root = root
        self._on_kill = on_kill
        self._on_end = on_end
        self._alone = alone
        self._cores = os.cpu_count() or 1
        self._check()

    def _check(self) -> None:
        processes = _processes()
        used = sum(size for size, _ in processes) + _detached()
        if used > self._memory and (processes := _exactly(processes)):
            used = sum(size for size, _ in processes) + _detached()
        pause = min(max((self._memory - used) / (_FILL_BYTES_S * self._cores), _SHORTEST_S), _LONGEST_S)
        limit = f"the sandbox's memory of {self._memory >> 20} MiB was used up"
        if used > self._memory and processes:
            for size, pid in sorted(processes, reverse=True):
                self._on_kill(pid, limit)
                _kill(pid)
                used -= size
                if used <= self._memory:
                    break
            pause = _SHORTEST_S
        elif processes and _left_on_machine() < _MACHINE_BYTES:
            for _, pid in processes:
                self._on_kill(pid, "the machine ran out of memory")
                _kill(pid)
        elif processes and self._alone and _sockets() > _SOCKETS:
            for _, pid in processes:
                self._on_kill(pid, f"more than {_SOCKETS} sockets were open")
                _kill(pid)
        state = os.statvfs(self._root)
        if state.f_files and state.f_files - state.f_ffree > self._files:
            self._on_end(f"the sandbox held more than {self._files} files")
            return
        self._loop.after(pause, self._check)


def _processes() -> list[tuple[int, int]]:
    """(bytes, pid) of every process but ourselves; shared memory counts once for each that has it."""
    own, found = os.getpid(), []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != own:
            try:
                with open(f"/proc/{name}/statm", "rb") as file:
                    found.append((int(file.read().split()[1]) * _PAGE, int(name)))
            except (OSError, IndexError):
                continue
    return found


def _exactly(processes: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same with each shared page divided among those that have it, and what was swapped out; slower to learn."""
    found = []
    for size, pid in processes:
        try:
            with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
                fields = dict(line.split(b":", 1) for line in file.read().splitlines() if b":" in line)
            found.append(
                (sum(int(fields[key].split()[0]) << 10 for key in (b"Pss_Anon", b"Pss_Shmem", b"SwapPss")), pid)
            )
        except (OSError, KeyError, ValueError):
            # Just ending, or not ours to look into: then what is known already has to do.
            found.append((size, pid) if os.path.exists(f"/proc/{pid}") else (0, pid))
    return found


def _detached() -> int:
    """Bytes of shared memory segments (System V) that no process has in its own memory at the moment."""
    try:
        with open("/proc/sysvipc/shm", "rb") as file:
            segments = [line.split() for line in file.read().splitlines()[1:]]
            return sum(int(fields[14]) for fields in segments if fields[6] == b"0")
    except (OSError, ValueError, IndexError):
        return 0


def _sockets() -> int:
    try:
        with open("/proc/net/sockstat", "rb") as file:
            return int(file.readline().split()[2])
    except (OSError, ValueError, IndexError):
        return 0


def _left_on_machine() -> int:
    with open("/proc/meminfo", "rb") as file:
        for line in file:
            if line.startswith(b"MemAvailable:"):
                return int(line.split()[1]) << 10
    return _MACHINE_BYTES


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        return
