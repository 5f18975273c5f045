"""Starting processes with the sandbox's limits on each of them."""

from __future__ import annotations

import asyncio
import fcntl
import os
import resource
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from .api_request import RequestError

_NO_CORE: Final = 1
"""Byte. With 0 a kernel that hands cores to a program of the host, as many do, would still do so (core(5))."""
_FIRST_TO_GO: Final = b"1000"


class ProcessStarter:
    """Starts processes of the agent. environment, home: of each.

    limits: on every one of them, by name: `memory` and `file` in bytes, `processes`, `open_files`, `cpu_s` in seconds.
    oom_score: descriptor of our own `oom_score_adj` (proc(5)), which a child without a program of its own yet may not
    write to.
    """

    def __init__(self, environment: Mapping[str, str], home: str, limits: Mapping[str, int], oom_score: int) -> None:
        self.environment = environment
        self.home = home
        self._limits = limits
        self._oom_score = oom_score
        self._usual_score = os.pread(oom_score, 16, 0)
        self._exit_handlers: dict[int, Callable[[int], None]] = {}
        asyncio.get_running_loop().add_signal_handler(signal.SIGCHLD, self._reap)

    def start(
        self,
        command: Sequence[str],
        folder: str,
        descriptors: Mapping[int, int],
        on_exit: Callable[[int], None] | None = None,
    ) -> int:
        """Like `fork`, for a program. descriptors: its number → ours."""

        def become() -> None:
            place_descriptors(descriptors)
            os.chdir(folder)
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            os.execve(command[0], list(command), dict(self.environment))  # noqa: S606 - the very purpose

        return self.fork(become, on_exit)

    def fork(self, run: Callable[[], None], on_exit: Callable[[int], None] | None = None) -> int:
        """The id of a child that leads a session of its own, calls `run` and ends. Raises RequestError.

        on_exit: called with its wait status.
        """
        # If memory runs out, these go first; they have it from us.
        self._set_oom_score(_FIRST_TO_GO)
        try:
            pid = os.fork()
        except OSError as error:
            self._set_oom_score(self._usual_score)
            problem = f"the sandbox cannot start another process: {os.strerror(error.errno or 0)}"
            raise RequestError(503, problem) from None
        if pid == 0:
            # Whatever happens, the child never gets back into the event loop, which is its parent's.
            try:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                os.setsid()
                self._restrict()
                run()
            finally:
                os._exit(127)
        self._set_oom_score(self._usual_score)
        if on_exit is not None:
            self._exit_handlers[pid] = on_exit
        return pid

    def _reap(self) -> None:
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                # As the first process it is also the parent of everything that lost its own.
                if (handler := self._exit_handlers.pop(ended[0], None)) is not None:
                    handler(ended[1])

    def _restrict(self) -> None:
        for kind, value in (
            (resource.RLIMIT_CORE, _NO_CORE),
            (resource.RLIMIT_DATA, self._limits.get("memory")),
            (resource.RLIMIT_FSIZE, self._limits.get("file")),
            (resource.RLIMIT_NPROC, self._limits.get("processes")),
            (resource.RLIMIT_SIGPENDING, self._limits.get("processes")),  # of timers, too
            (resource.RLIMIT_NOFILE, self._limits.get("open_files")),
            (resource.RLIMIT_CPU, self._limits.get("cpu_s")),
        ):
            if value is not None:
                hard = resource.getrlimit(kind)[1]
                lowest = value if hard == resource.RLIM_INFINITY else min(value, hard)
                resource.setrlimit(kind, (lowest, lowest))
        # Only upwards for want of rights, so where ours was not raised nothing changes.
        os.setpriority(os.PRIO_PROCESS, 0, max(os.getpriority(os.PRIO_PROCESS, 0), 0))

    def _set_oom_score(self, score: bytes) -> None:
        with suppress(OSError):
            os.pwrite(self._oom_score, score, 0)


def place_descriptors(descriptors: Mapping[int, int]) -> None:
    """Give our descriptors the numbers that a program looks for them at. descriptors: its number → ours."""
    # First out of the way of each other, then to where they belong.
    moved = {wanted: fcntl.fcntl(ours, fcntl.F_DUPFD_CLOEXEC, 100) for wanted, ours in descriptors.items()}
    for wanted, ours in moved.items():
        os.dup2(ours, wanted)
