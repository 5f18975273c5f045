"""Starting processes with the sandbox's limits on each of them."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Mapping, Sequence
from typing import Final

from .api_request import Failure

_NO_CORE: Final = 1
"""Byte. With 0 a kernel that hands cores to a program of the host, as many do, would still do so (core(5))."""


class Starter:
    """Forks. limits: for every process that it starts.

    By name: `memory` and `file` in bytes, `processes`, `open_files`, `cpu_s` in seconds; no limit where one is missing.
    """

    def __init__(self, limits: Mapping[str, int]) -> None:
        self._limits = limits

    def start(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        folder: str,
        descriptors: Mapping[int, int],
    ) -> int:
        """The id of a new process that leads a session of its own. descriptors: its number → ours. Raises Failure."""
        pid = _fork()
        if pid == 0:
            try:
                self._become(folder, descriptors)
                os.execve(command[0], list(command), dict(environment))  # noqa: S606 - the very purpose
            finally:
                os._exit(127)
        return pid

    def fork(self) -> int:
        """Like os.fork, the limits set in the child. Raises Failure."""
        pid = _fork()
        if pid == 0:
            os.setsid()
            self._restrict()
        return pid

    def _become(self, folder: str, descriptors: Mapping[int, int]) -> None:
        os.setsid()
        # First out of the way of each other, then to where they belong.
        moved = {wanted: _above(ours, 100) for wanted, ours in descriptors.items()}
        for wanted, ours in moved.items():
            os.dup2(ours, wanted)
        os.chdir(folder)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._restrict()

    def _restrict(self) -> None:
        limits = self._limits
        for kind, value in (
            (resource.RLIMIT_CORE, _NO_CORE),
            (resource.RLIMIT_DATA, limits.get("memory")),
            (resource.RLIMIT_FSIZE, limits.get("file")),
            (resource.RLIMIT_NPROC, limits.get("processes")),
            (resource.RLIMIT_NOFILE, limits.get("open_files")),
            (resource.RLIMIT_CPU, limits.get("cpu_s")),
        ):
            if value is not None:
                hard = resource.getrlimit(kind)[1]
                lowest = value if hard == resource.RLIM_INFINITY else min(value, hard)
                resource.setrlimit(kind, (lowest, lowest))
        # Only upwards for want of rights, so where ours was not raised nothing changes.
        os.setpriority(os.PRIO_PROCESS, 0, max(os.getpriority(os.PRIO_PROCESS, 0), 0))
        # If the machine itself runs out of memory, these go first.
        try:
            with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
                file.write("1000")
        except OSError:
            return


def _fork() -> int:
    try:
        return os.fork()
    except OSError as error:
        raise Failure(503, f"the sandbox cannot start another process: {os.strerror(error.errno or 0)}") from None


def _above(descriptor: int, lowest: int) -> int:
    import fcntl

    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, lowest)


def kill_group(leader: int) -> None:
    """End a process with all that it started and that did not part from it."""
    try:
        os.killpg(leader, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def exit_code(status: int) -> int:
    """As a shell counts: 128 and more for a signal."""
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code
