"""Runs one program and ends with it everything that it started, however that hides.

`supervisor LIFELINE STATUS PROGRAM…`, run by its path with -I -S, so that it imports the standard library only. A
process of its own, so that what the program leaves behind becomes a child of this one and of no other. It ends once the
program has, or at the end of the pipe LIFELINE: then whoever started it wants that, or is gone. To the pipe STATUS it
writes `exit CODE` (negative for a signal) or `error ERRNO`.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
import time
from contextlib import suppress

_PR_SET_CHILD_SUBREAPER = 36
_POLL_S = 0.005
_GIVE_UP_S = 5.0


def main(lifeline: int, status: int, command: list[str]) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    child = os.fork()
    if child == 0:
        _become(command, lifeline, status)
    # The program's own streams must end with the program.
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    ended = os.pidfd_open(child)
    poller = select.poll()
    poller.register(lifeline, select.POLLIN | select.POLLHUP)
    poller.register(ended, select.POLLIN)
    poller.poll()
    pid, code = os.waitpid(child, os.WNOHANG)
    _end_all()
    if pid:
        os.write(status, b"exit %d\n" % os.waitstatus_to_exitcode(code))


def _become(command: list[str], lifeline: int, status: int) -> None:
    """In the child. Never returns."""
    try:
        os.close(lifeline)
        os.set_inheritable(status, False)
        os.setsid()
        os.execvp(command[0], command)  # noqa: S606 - no shell
    except OSError as error:
        os.write(status, b"error %d\n" % (error.errno or 0))
    finally:
        os._exit(127)


def _end_all() -> None:
    """Kill children until none is left: the children of one that ends become ours."""
    deadline = time.monotonic() + _GIVE_UP_S
    while time.monotonic() < deadline:
        for pid in _children():
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(_POLL_S)


def _children() -> list[int]:
    own = os.getpid()
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    # The name of the program stands in brackets, and may hold anything.
                    parent = int(file.read().rpartition(b")")[2].split()[1])
            except (OSError, ValueError, IndexError):
                continue
            if parent == own:
                found.append(int(name))
    return found


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
