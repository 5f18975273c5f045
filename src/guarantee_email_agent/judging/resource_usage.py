"""What the processes of a judge and its folder take up, and how that folder is removed."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress

from guarantee_email_agent.isolation.processes import list_processes, living_descendants
from guarantee_email_agent.judging.judge_protocol import MIB

_SOCKET_BYTES = 416 << 10
"""Twice the kernel's usual buffer: the last message may be as long as the buffer. No judge can make it larger."""


def threads_of_user(user: int) -> int:
    """How many threads all processes of a user have."""
    return sum(int(fields[17]) for _, fields, owner in list_processes() if owner == user)


def memory_of_descendants(most: int) -> int:
    """Bytes that they hold together; counted exactly, shared pages once, only where the rough count is above `most`.

    What waits in sockets is in no process's account: it counts with the most that their buffers can hold.
    """
    page = os.sysconf("SC_PAGE_SIZE")
    resident = {pid: int(fields[21]) * page for pid, fields in living_descendants()}
    sockets = _sockets_of(resident) * _SOCKET_BYTES
    if sum(resident.values()) + sockets <= most:
        return 0
    return sockets + sum(_proportional_size(pid, rough) for pid, rough in resident.items())


def _sockets_of(pids: Iterable[int]) -> int:
    """How many they have, those that several share once; of a process that hides them, as many as it has open files."""
    hidden, found = 0, set()
    for pid in pids:
        try:
            for name in os.listdir(f"/proc/{pid}/fd"):
                with suppress(OSError):
                    if (target := os.readlink(f"/proc/{pid}/fd/{name}")).startswith("socket:"):
                        found.add(target)
        except PermissionError:
            hidden += _open_files(pid)
        except OSError:
            continue  # it has ended
    return hidden + len(found)


def _open_files(pid: int) -> int:
    """How many a process has, or before Linux 6.2, which does not tell, has room for."""
    with suppress(OSError):
        if number := os.stat(f"/proc/{pid}/fd").st_size:
            return number
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("FDSize:"))
    return 0


def is_larger(folder: str, most: int) -> bool:
    """Whether the files below `folder` take more than `most` bytes, or are more than 256 for each MiB of them.

    So is one that cannot be looked into: what it holds has been hidden. Goes there as the process's own current folder,
    since the path of a folder that is nested deep enough is too long for every other way; ends in the root folder.
    """
    size = count = 0
    above: list[list[str]] = []  # for each folder on the way down, those in it that are still to be seen
    below = [folder]
    try:
        while above or below:
            if not below:
                os.chdir("..")
                below = above.pop()
                continue
            _change_directory(below.pop())
            above.append(below)
            below = []
            with os.scandir(".") as entries:
                for entry in entries:
                    size += entry.stat(follow_symlinks=False).st_blocks * 512
                    count += 1
                    if size > most or count > most // MIB * 256:
                        return True
                    if entry.is_dir(follow_symlinks=False):
                        below.append(entry.name)
    except FileNotFoundError:
        return False  # removed meanwhile; the next check is soon
    except OSError:
        return True
    finally:
        os.chdir("/")
    return False


def _change_directory(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        os.chdir(descriptor)
    finally:
        os.close(descriptor)


def unlinked_files_of_descendants(folder: str) -> int:
    """Bytes of the files that they hold open on the file system of `folder`, and that stand in no folder any more."""
    device = os.stat(folder).st_dev
    sizes: dict[int, int] = {}
    for pid, _ in living_descendants():
        with suppress(OSError):
            for name in os.listdir(f"/proc/{pid}/fd"):
                with suppress(OSError):
                    file = os.stat(f"/proc/{pid}/fd/{name}")
                    if file.st_dev == device and file.st_nlink == 0:
                        sizes[file.st_ino] = file.st_blocks * 512
    return sum(sizes.values())


def remove_tree(folder: str) -> None:
    """Remove a folder that a judge has left, however deep it is nested and whatever permissions it took away.

    What is found in a folder is moved up first: so nothing depends on how long a path may be. Raises OSError.
    """
    os.chmod(folder, 0o700)
    top = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    moved, mark = 0, os.urandom(8).hex()
    try:
        while names := os.listdir(top):
            for name in names:
                if _unlink_file(name, top):
                    continue
                inside = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=top)
                try:
                    for inner in os.listdir(inside):
                        if not _unlink_file(inner, inside):
                            moved += 1
                            os.rename(inner, f"{mark}-{moved}", src_dir_fd=inside, dst_dir_fd=top)
                finally:
                    os.close(inside)
                os.rmdir(name, dir_fd=top)
    finally:
        os.close(top)
    os.rmdir(folder)


def _unlink_file(name: str, folder: int) -> bool:
    """Whether it is gone; else it is a folder, which we may change now."""
    try:
        os.unlink(name, dir_fd=folder)
    except (IsADirectoryError, PermissionError):  # the second on macOS
        os.chmod(name, 0o700, dir_fd=folder)
        return False
    return True


def _proportional_size(pid: int, rough: int) -> int:
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith("Pss:"))
    except (OSError, StopIteration):
        return rough
