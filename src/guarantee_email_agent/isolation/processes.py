"""The processes below this one, and the mounts that they see, as /proc has them; and how they are ended.

Standard library only: it travels into sandboxes, and into what runs an agent under test.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NamedTuple

_PAUSE_S = 0.001
_ENDED: Final = ("Z", "X")


def list_processes() -> list[tuple[int, list[str], int]]:
    """Every process: its id, the fields of /proc/<id>/stat from the third one (state) on, and its user."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError):  # it may have ended
                found.append((int(name), *_read_stat(name)))
    return found


def _read_stat(name: str) -> tuple[list[str], int]:
    with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
        # Its program's name may hold anything, but ends at the last bracket.
        return file.read().rpartition(")")[2].split(), os.fstat(file.fileno()).st_uid


def living_thread(pid: int) -> int | None:
    """A thread that goes on, None where all have ended: a first one that has ended shows nothing of what they hold."""
    with suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/task"):
            with suppress(OSError):
                if _read_stat(name)[0][0] not in _ENDED:
                    return int(name)
    return None


def descendants() -> list[tuple[int, list[str]]]:
    """Our children, their children and so on: id and fields of /proc/<id>/stat from the third one on."""
    children: dict[int, list[tuple[int, list[str]]]] = {}
    for pid, fields, _ in list_processes():
        children.setdefault(int(fields[1]), []).append((pid, fields))
    found: list[tuple[int, list[str]]] = []
    waiting = [os.getpid()]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += [pid for pid, _ in below]
    return found


def living_descendants() -> list[tuple[int, list[str]]]:
    """Those that have not ended; in the place of a first thread that has ended stands one that goes on."""
    found = []
    for pid, fields in descendants():
        if fields[0] not in _ENDED:
            found.append((pid, fields))
        elif (thread := living_thread(pid)) is not None:
            with suppress(OSError):
                found.append((thread, _read_stat(str(thread))[0]))
    return found


def kill_group(leader: int) -> None:
    """End a process with all that it started and that did not part from it."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def kill_descendants() -> None:
    """Once: a process that forks meanwhile is found the next time, if this one adopts orphans."""
    with suppress(FileNotFoundError):  # there is no /proc
        for pid, _ in descendants():
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)


def end_children(timeout_s: float, kill: Callable[[], None] = kill_descendants) -> bool:
    """`kill` again and again until no child is left; False where there still is one after so many seconds."""
    give_up_at = time.monotonic() + timeout_s
    with suppress(ChildProcessError):
        while time.monotonic() < give_up_at:
            if not os.waitpid(-1, os.WNOHANG)[0]:
                kill()
                time.sleep(_PAUSE_S)
        return False
    return True


class Mount(NamedTuple):
    """point: where. device, root: what, as a folder of a file system. kind: of that."""

    point: str
    device: str
    root: str
    kind: str


def list_mounts() -> dict[str, Mount]:
    """By their mount points; the topmost where several have one."""
    mounts = {}
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            fields, _, source = line.partition(" - ")
            _, _, device, *places = fields.split()[:5]
            root, point = (re.sub(r"\\(\d{3})", lambda code: chr(int(code[1], 8)), place) for place in places)
            mounts[point] = Mount(point, device, root, source.split()[0])
    return mounts


# Where we are root, so that a sandbox's port can tell who comes.
FIRST_SANDBOX_USER: Final = 1_879_048_192
"""Sandboxes run as users from here on, each numbered by its port."""

FIRST_JUDGE_USER: Final = 2_000_000_000
"""Judges run as users from here on, one for each server that starts them."""

FIRST_JUDGE_USER_OF_FEW: Final = 40_000
"""The same where only 65,536 users are mapped, as in a container with a user namespace of its own."""

judge_users: Final[set[int]] = set()
"""The users that judges of this process with the host's network run as at the moment; none where we are not root."""
