"""Names a process in the ledger so that others on the same machine can tell whether it still runs.

A process id alone does not: it is used again, and means another process in another container. So the name holds the
machine's boot, the namespace of process ids, the id, and when the process was started (proc(5), Linux). Where one of
these is not known, or is another, nothing is known of the process, and its lease has to run out.
"""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")
_NAME: Final = re.compile(r"[^\s:]*:(\d+):([0-9a-f]{8}):(\d+):(\d+)")


def process_name() -> str:
    """Of this process: `host:pid:boot:namespace:start`, or `host:pid` where that is all that is known."""
    pid = os.getpid()
    plain = f"{socket.gethostname()}:{pid}"
    place, started = _place(), _start_of(pid)
    return plain if place is None or started is None else f"{plain}:{place[0]}:{place[1]}:{started}"


def is_on_this_machine(name: str) -> bool:
    """Whether it can be told if the process of that name runs."""
    match = _NAME.fullmatch(name)
    return match is not None and (match[2], match[3]) == _place()


def has_ended(name: str) -> bool:
    """Whether the process of that name is known to run no more."""
    match = _NAME.fullmatch(name)
    if match is None or not is_on_this_machine(name):
        return False
    pid = int(match[1])
    started = _start_of(pid)
    return not _is_there(pid) if started is None else started != match[4]


def _place() -> tuple[str, str] | None:
    """The start of the boot's id, and the namespace of process ids."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return boot.replace("-", "")[:8], str(os.stat(_PROC / "self/ns/pid").st_ino)
    except (OSError, ValueError):
        return None


def _is_there(pid: int) -> bool:
    """Whether there is a process that /proc tells nothing of: `hidepid` keeps those of other users back."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


def _start_of(pid: int) -> str | None:
    """When a process was started, in clock ticks since the boot; empty of a zombie, None where it cannot be read."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()  # behind the program's name, which may hold anything
    return "" if fields[0] in "ZXx" else fields[19]
