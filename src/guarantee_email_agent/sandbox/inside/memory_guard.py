"""Holds what no limit on a single process can hold: the memory of all of them together, and the number of files.

The kernel's own account of a group of processes (a cgroup) is not ours to have everywhere, so the first process of the
sandbox counts, as often as the room that is left could be filled. It cannot be stopped from inside.
"""

from __future__ import annotations

import os
import signal
import socket
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Final

from guarantee_email_agent.isolation.processes import living_thread

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
            for process in sorted(processes, reverse=True):
                self._kill(reason, process)
                used -= process[0]
                if used <= self._memory:
                    break
        elif processes and available_memory() < _MIN_AVAILABLE_BYTES:
            self._kill("the machine ran out of memory", *processes)
        elif processes and sockets > _MAX_SOCKETS:
            self._kill(f"more than {_MAX_SOCKETS} sockets were open", *processes)
        self._used, self._available_then, now = max(used, 0), available_memory(), time.monotonic()
        self._count_at = now + max(next_s, _TIME_SHARE * (now - began))
        if stopped:
            _signal_all(signal.SIGCONT)

    def _kill(self, reason: str, *processes: tuple[int, int]) -> None:
        for _, pid in processes:
            self._on_kill(pid, reason)
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)


def _signal_all(number: signal.Signals) -> None:
    """To every process but ourselves, the first one."""
    with suppress(OSError):
        os.kill(-1, number)


_MAPPING_BYTES: Final = 256
"""What the kernel keeps for each part of a process's memory."""
_DESCRIPTOR_BYTES: Final = 5 << 10
"""Half of a full pipe, and what the kernel keeps for it; what is in a pipe is in no process's account."""
_USUAL_DESCRIPTORS: Final = 64
_PRIVATE_FIELDS: Final = (b"RssAnon:", b"VmSwap:", b"VmPTE:")
_OTHER_FIELDS: Final = (b"VmData:", b"VmStk:", b"VmExe:", b"VmLib:")
_SHARED_SUFFIX: Final = b" /dev/zero (deleted)"
"""How the kernel calls memory that processes share and that is in no file."""


def measure_processes(limit: int, before_each: Callable[[], None]) -> tuple[list[tuple[int, int]], int]:
    """([(bytes, pid)] of every process but ourselves, all of it together). before_each: called before each is read.

    Shared memory counts once, as far as it is mapped: no process's account holds what others wrote to it. Pages common
    since a fork count for each process, unless that comes to more than `limit`: to count them exactly takes longer.
    """
    own = os.getpid()
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != own]
    seen: set[bytes] = set()
    found = []
    for pid in pids:
        before_each()
        found.append((_process_size(pid, seen), pid))
    segments = _shared_segments_size()
    if sum(size for size, _ in found) + segments > limit:
        found = [(_proportional_size(pid, size), pid) for size, pid in found]
    return found, sum(size for size, _ in found) + segments


def available_memory() -> int:
    """What programs on this machine can still have."""
    with open("/proc/meminfo", "rb") as file:
        return _field(file.read(512), b"MemAvailable:")


def _process_size(pid: int, seen: set[bytes]) -> int:
    """seen: the shared parts that were counted before."""
    if (text := _read(f"/proc/{pid}/status")) is None:
        return 0  # it has ended
    if b"\nState:\tZ" in text:
        thread = living_thread(pid)
        return 0 if thread is None else _process_size(thread, seen)
    size = sum(_field(text, name) for name in _PRIVATE_FIELDS) + _descriptors_size(text)
    if (maps := _read(f"/proc/{pid}/maps")) is None:  # it hides them: then all that they can be counts
        return size + max(_field(text, b"VmSize:") - sum(_field(text, name) for name in _OTHER_FIELDS), 0)
    parts = maps.splitlines()
    for part in parts:
        if part.endswith(_SHARED_SUFFIX):
            place, _, offset, _, identity = part.split(None, 5)[:5]
            if (key := identity + b" " + offset) not in seen:
                seen.add(key)
                start, _, end = place.partition(b"-")
                size += int(end, 16) - int(start, 16)
    return size + len(parts) * _MAPPING_BYTES


def _descriptors_size(status: bytes) -> int:
    """The most that a process's pipes may hold, by the size of its table: the kernel does not say how many they are."""
    table = status.partition(b"FDSize:")[2].split(None, 1)
    return max(int(table[0]) - _USUAL_DESCRIPTORS, 0) * _DESCRIPTOR_BYTES if table else 0


def _proportional_size(pid: int, size: int) -> int:
    """`size`, with no more than its share of the pages that are common since a fork."""
    text = _read(f"/proc/{pid}/smaps_rollup")
    return size if text is None else max(size - _field(text, b"Anonymous:") + _field(text, b"Pss_Anon:"), 0)


def _shared_segments_size() -> int:
    """Shared memory segments (System V), which stay when no process has them any more."""
    lines = (_read("/proc/sysvipc/shm") or b"").splitlines()[1:]
    return sum(sum(map(int, line.split()[14:16])) for line in lines)


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None


def _field(text: bytes, name: bytes) -> int:
    value = text.partition(name)[2].split(None, 1)
    return int(value[0]) << 10 if value else 0


MOST_HIDDEN: Final = 416 << 10
"""What one socket can have sent, its buffer being of the usual size: the last message may be as long as the buffer."""
_EACH: Final = 4 << 10
"""The kernel's own for a socket: the socket, its file, inode and entry."""

_SOCK_DIAG, _BY_FAMILY, _DUMP, _DONE, _ERROR = 4, 20, 0x301, 3, 2  # linux/netlink.h, linux/sock_diag.h
_HEADER: Final = struct.Struct("=IHHII")
_ATTRIBUTE: Final = struct.Struct("=HH")
_ALL_BUT_HALF: Final = ~(1 << 3 | 1 << 6 | 1 << 12) & 0xFFFFFFFF
"""States; what has been half opened or closed (SYN_RECV, TIME_WAIT, NEW_SYN_RECV) is not counted as a socket."""
_UNIX: Final = struct.pack("=BBHIIIII", socket.AF_UNIX, 0, 0, _ALL_BUT_HALF, 0, 0x20, 0, 0)
# Family, protocol, what is asked for (INET_DIAG_SKMEMINFO), states, and any address.
_INTERNET: Final = tuple(
    struct.pack("=BBBBI48x", family, protocol, 1 << 6, 0, _ALL_BUT_HALF)
    for family in (socket.AF_INET, socket.AF_INET6)
    for protocol in (socket.IPPROTO_TCP, socket.IPPROTO_UDP)
)
# Request, length of what precedes the attributes of an answer, number of the one with the socket's memory.
_QUESTIONS: Final = ((_UNIX, 16, 5), *((request, 72, 7) for request in _INTERNET))
_MEMORY: Final = struct.Struct("=8I")  # received, limit, sent, limit, ahead, queued, options, backlog


def count_sockets() -> int:
    with suppress(OSError, ValueError, IndexError), open("/proc/net/sockstat", "rb") as file:
        return int(file.readline().split()[2])
    return 0


def socket_memory() -> int:
    """What the sockets of this network namespace hold, which shows in no process's account; in bytes.

    The kernel tells for each socket over netlink (sock_diag(7)), for those in flight between processes too. One that
    was closed before what it had sent was read is in no list any more, but still in the count of all.
    """
    count, size = 0, 0
    with suppress(OSError), socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as kernel:
        kernel.settimeout(1.0)
        for request, skipped, wanted in _QUESTIONS:
            kernel.send(_HEADER.pack(_HEADER.size + len(request), _BY_FAMILY, _DUMP, 1, 0) + request)
            for answer in _answers(kernel):
                count += 1
                size += _memory_in(answer[skipped:], wanted)
        count += 1  # the one that asks
    everyone = count_sockets()
    return size + everyone * _EACH + max(everyone - count, 0) * MOST_HIDDEN


def _answers(kernel: socket.socket) -> Iterator[memoryview]:
    while True:
        data = memoryview(kernel.recv(1 << 18))
        while data:
            length, kind = _HEADER.unpack_from(data)[:2]
            if kind in (_DONE, _ERROR):
                return
            yield data[_HEADER.size : length]
            data = data[_aligned(length) :]


def _memory_in(attributes: memoryview, wanted: int) -> int:
    while len(attributes) >= _ATTRIBUTE.size:
        length, kind = _ATTRIBUTE.unpack_from(attributes)
        if kind == wanted:
            received, _, sent, _, ahead, queued, options, backlog = _MEMORY.unpack_from(attributes, _ATTRIBUTE.size)
            return int(received + max(sent, queued) + ahead + options + backlog)
        attributes = attributes[_aligned(length) :]
    return 0


def _aligned(length: int) -> int:
    return (length + 3) & ~3
