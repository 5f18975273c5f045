"""Runs one program and ends with it everything that it started, however that hides.

A process of its own for each program, run with -I -S, so that it starts in milliseconds. With namespaces it has the
program run below a process 1 of their own: the program sees no process but those that it started, cannot end that one,
and the kernel ends all of them with it. Without, what loses its parent becomes a child of the supervisor, and is ended
by it; a program that ends its supervisor first leaves such children running.
"""

from __future__ import annotations

import os
import select
import signal
from contextlib import suppress
from typing import NoReturn

from guarantee_email_agent.isolation import syscalls as kernel
from guarantee_email_agent.isolation.processes import end_children

_GIVE_UP_S = 5.0
_SAFE = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC
_ASKING_TO_END = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main(lifeline: int, status: int, place: str, folder: str, namespaces: bool, command: list[str]) -> None:
    """Run `command` until it ends, or until the pipe `lifeline` has a byte, or ends with whoever holds its other end.

    place: the program's own folder, removed where that one is gone; with namespaces those beside it are out
    of its sight. folder: where it runs. To the pipe `status` goes `exit CODE` (negative for a signal), or `error ERRNO`
    for a program that cannot be started and for namespaces that are not to be had. An empty command only tries those.
    """
    for descriptor in (lifeline, status):
        os.set_inheritable(descriptor, False)
    for number in _ASKING_TO_END:
        signal.signal(number, signal.SIG_IGN)
    try:
        if namespaces:
            _unshare_processes()
            if (first := os.fork()) == 0:
                _be_first_process(lifeline, status, place, folder, command)
            _let_go_of_streams()
            os.waitpid(first, 0)
        else:
            kernel.adopt_orphans()
            _run(lifeline, status, folder, command)
            end_children(_GIVE_UP_S)
    except OSError as error:
        os.write(status, b"error %d\n" % (error.errno or 0))
    finally:
        if place and _is_at_its_end(lifeline):
            _remove(place)


def _unshare_processes() -> None:
    """The next child is to be process 1 of a new namespace. Raises OSError."""
    user, group = os.geteuid(), os.getegid()
    try:
        kernel.unshare(kernel.CLONE_NEWPID)
    except PermissionError:
        kernel.unshare(kernel.CLONE_NEWPID | kernel.CLONE_NEWUSER)
        kernel.map_only_user(user, group)


def _be_first_process(lifeline: int, status: int, place: str, folder: str, command: list[str]) -> NoReturn:
    try:
        kernel.die_with_parent()
        kernel.unshare(kernel.CLONE_NEWNS)
        kernel.mount("none", "/", "none", kernel.MS_REC | kernel.MS_SLAVE)
        kernel.mount("proc", "/proc", "proc", _SAFE)
        if command:
            _hide_others(place)
            _run(lifeline, status, folder, command)
        else:
            os.write(status, b"exit 0\n")
    except OSError as error:
        os.write(status, b"error %d\n" % (error.errno or 0))
    finally:
        os._exit(0)


def _hide_others(place: str) -> None:
    """Nothing but `place` is seen in the folder that it stands in."""
    own = os.open(place, os.O_PATH | os.O_DIRECTORY)
    kernel.mount("tmpfs", os.path.dirname(place), "tmpfs", _SAFE, "mode=0700,size=4k,nr_inodes=4")
    os.mkdir(place)
    kernel.mount(f"/proc/self/fd/{own}", place, "none", kernel.MS_BIND)
    os.close(own)


def _run(lifeline: int, status: int, folder: str, command: list[str]) -> None:
    """Return once the program has ended, or `lifeline` has; meanwhile no orphan stays a zombie."""
    woken, wake = os.pipe()
    for descriptor in (woken, wake):
        os.set_blocking(descriptor, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    child = os.fork()
    if child == 0:
        _become(command, folder, status)
    _let_go_of_streams()
    while lifeline not in select.select([lifeline, woken], [], [])[0]:
        os.read(woken, 4096)
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if ended[0] == child:
                os.write(status, b"exit %d\n" % os.waitstatus_to_exitcode(ended[1]))
                return


def _become(command: list[str], folder: str, status: int) -> NoReturn:
    try:
        for number in signal.valid_signals():  # ours, Python's, and those that a shell has its background jobs ignore
            if signal.getsignal(number) is signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        os.setsid()
        os.chdir(folder)
        os.execvp(command[0], command)  # noqa: S606 - no shell
    except OSError as error:
        os.write(status, b"error %d\n" % (error.errno or 0))
    finally:
        os._exit(127)


def _let_go_of_streams() -> None:
    """The program's own streams end with the program."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    os.close(nothing)


def _is_at_its_end(lifeline: int) -> bool:
    """The pipe ends before its other end's process has, as others see it: so nothing of that one is asked."""
    os.set_blocking(lifeline, False)
    with suppress(BlockingIOError):
        return not os.read(lifeline, 1)
    return False


def _remove(place: str) -> None:
    """With the folder that it stands in, if it was the last there."""
    import shutil  # seldom needed: whoever should have removed it is gone

    shutil.rmtree(place, ignore_errors=True)
    with suppress(OSError):
        os.rmdir(os.path.dirname(place))
