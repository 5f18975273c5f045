"""What processes and folders take up, as Linux counts it in /proc."""

from __future__ import annotations

import os
from contextlib import suppress

from guarantee_email_agent.tasks.judge_limits import MIB


def threads_of_user(user: int) -> int:
    """How many threads all processes of a user have."""
    return sum(int(fields[17]) for _, fields, owner in processes() if owner == user)


def processes() -> list[tuple[int, list[str], int]]:
    """Every process: its id, the fields of /proc/<id>/stat from the third one (state) on, and its user."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                    fields = file.read().rpartition(")")[2].split()
                    found.append((int(name), fields, os.fstat(file.fileno()).st_uid))
            except OSError:
                continue  # it has ended
    return found


def descendants() -> list[tuple[int, list[str]]]:
    """Our children, their children and so on: id and fields of /proc/<id>/stat from the third one on."""
    children: dict[int, list[tuple[int, list[str]]]] = {}
    for pid, fields, _ in processes():
        children.setdefault(int(fields[1]), []).append((pid, fields))
    found: list[tuple[int, list[str]]] = []
    waiting = [os.getpid()]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += [pid for pid, _ in below]
    return found


def memory_of_descendants(most: int) -> int:
    """Bytes that they hold together; counted exactly, shared pages once, only where the rough count is above `most`."""
    page = os.sysconf("SC_PAGE_SIZE")
    resident = {pid: int(fields[21]) * page for pid, fields in descendants()}
    if sum(resident.values()) <= most:
        return 0
    return sum(_own_share(pid, rough) for pid, rough in resident.items())


def is_larger(folder: str, most: int) -> bool:
    """Whether the files below `folder` take more than `most` bytes, or are more than 256 for each MiB of them."""
    size = count = 0
    waiting = [folder]
    while waiting:
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                size += entry.stat(follow_symlinks=False).st_blocks * 512
                count += 1
                if size > most or count > most // MIB * 256:
                    return True
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
    return False


def _own_share(pid: int, rough: int) -> int:
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith("Pss:"))
    except (OSError, StopIteration):
        return rough
