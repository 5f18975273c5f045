"""Starting processes with the sandbox's limits on each of them."""

from __future__ import annotations

import fcntl
import os
import resource
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from .api_request import RequestError
from .event_loop import EventLoop

_NO_CORE: Final = 1
"""Byte. With 0 a kernel that hands cores to a program of the host, as many do, would still do so (core(5))."""


class ProcessStarter:
    """Starts processes of the agent. environment, home: of each. loop: learns of their ends.

    limits: on every one of them, by name: `memory` and `file` in bytes, `processes`, `open_files`, `cpu_s` in seconds.
    """

    def __init__(self, loop: EventLoop, environment: Mapping[str, str], home: str, limits: Mapping[str, int]) -> None:
        self.loop = loop
        self.environment = environment
        self.home = home
        self._limits = limits

    def start(self, command: Sequence[str], folder: str, descriptors: Mapping[int, int]) -> int:
        """The id of a new process that leads a session of its own. Raises RequestError.

        descriptors: its number → ours.
        """
        pid = _fork()
        if pid == 0:
            try:
                os.setsid()
                place_descriptors(descriptors)
                os.chdir(folder)
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGPIPE, signal.SIG_DFL)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                self._restrict()
                os.execve(command[0], list(command), dict(self.environment))  # noqa: S606 - the very purpose
            finally:
                os._exit(127)
        return pid

    def fork(self) -> int:
        """Like os.fork, the child in a session of its own and with the limits set. Raises RequestError."""
        pid = _fork()
        if pid == 0:
            os.setsid()
            self._restrict()
        return pid

    def _restrict(self) -> None:
        for kind, value in (
            (resource.RLIMIT_CORE, _NO_CORE),
            (resource.RLIMIT_DATA, self._limits.get("memory")),
            (resource.RLIMIT_FSIZE, self._limits.get("file")),
            (resource.RLIMIT_NPROC, self._limits.get("processes")),
            (resource.RLIMIT_NOFILE, self._limits.get("open_files")),
            (resource.RLIMIT_CPU, self._limits.get("cpu_s")),
        ):
            if value is not None:
                hard = resource.getrlimit(kind)[1]
                lowest = value if hard == resource.RLIM_INFINITY else min(value, hard)
                resource.setrlimit(kind, (lowest, lowest))
        # Only upwards for want of rights, so where ours was not raised nothing changes.
        os.setpriority(os.PRIO_PROCESS, 0, max(os.getpriority(os.PRIO_PROCESS, 0), 0))
        # If the machine itself runs out of memory, these go first.
        with suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
            file.write("1000")


def _fork() -> int:
    try:
        return os.fork()
    except OSError as error:
        raise RequestError(503, f"the sandbox cannot start another process: {os.strerror(error.errno or 0)}") from None


def place_descriptors(descriptors: Mapping[int, int]) -> None:
    """Give our descriptors the numbers that a program looks for them at. descriptors: its number → ours."""
    # First out of the way of each other, then to where they belong.
    moved = {wanted: fcntl.fcntl(ours, fcntl.F_DUPFD_CLOEXEC, 100) for wanted, ours in descriptors.items()}
    for wanted, ours in moved.items():
        os.dup2(ours, wanted)


def kill_group(leader: int) -> None:
    """End a process with all that it started and that did not part from it."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
