"""What the processes of the sandbox hold in memory, from /proc; all of it in bytes."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final

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
