"""The Linux system calls that isolation needs and Python has no function for. All raise OSError where they fail."""

from __future__ import annotations

import ctypes
import fcntl
import os
import struct
from collections.abc import Iterable

CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x20000, 1 << 27, 1 << 28, 1 << 29, 1 << 30
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND = 1, 2, 4, 8, 0x20, 0x1000
MS_REC, MS_PRIVATE, MS_SLAVE = 0x4000, 0x40000, 0x80000
MOUNT_ATTR_RDONLY, MOUNT_ATTR_NOSUID = 1, 2

_libc = ctypes.CDLL(None, use_errno=True)

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_KEEPCAPS, _PR_SET_SECCOMP = 1, 4, 8, 22
_PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT = 36, 38, 47
_PR_CAP_AMBIENT_RAISE = 2
CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_SETGID, CAP_SETUID, CAP_SYS_NICE = 1, 2, 6, 7, 23
_CAPABILITY_HEADER = struct.pack("=Ii", 0x20080522, 0)  # version 3 of the interface, this process

# These numbers are the same on every architecture: they came after the tables were merged.
_MOUNT_SETATTR, _LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 442, 444, 445, 446
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1


def _call(function: str, *arguments: object) -> int:
    result: int = getattr(_libc, function)(*arguments)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{function}: {os.strerror(number)}")
    return result


def _prctl(option: int, *values: int) -> None:
    _call("prctl", option, *(ctypes.c_ulong(value) for value in (*values, 0, 0, 0, 0)[:4]))


def unshare(flags: int) -> None:
    _call("unshare", flags)


def enter_namespace(descriptor: int) -> None:
    """That of an open file of /proc/<id>/ns; a namespace of processes is that of the children to come."""
    _call("setns", descriptor, 0)


def map_only_user(user: int, group: int) -> None:
    """In a user namespace that is new: its one user and group are those of this process outside."""
    for file, text in (("setgroups", "deny"), ("gid_map", f"{group} {group} 1"), ("uid_map", f"{user} {user} 1")):
        with open(f"/proc/self/{file}", "w", encoding="ascii") as opened:
            opened.write(text)


def start_loopback() -> None:
    """Give this network namespace, which is new, its 127.0.0.1."""
    import socket  # as long to load as everything else here

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sH22x", b"lo", _IFF_UP))


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    _call("mount", os.fsencode(source), os.fsencode(target), kind.encode(), ctypes.c_ulong(flags), options.encode())


def protect_mounts(path: str, attributes: int) -> None:
    """Give the mount at `path` and all below it these attributes, too (Linux 5.12)."""
    change = struct.pack("=QQQQ", attributes, 0, 0, 0)
    _call("syscall", _MOUNT_SETATTR, _AT_FDCWD, os.fsencode(path), _AT_RECURSIVE, change, ctypes.c_size_t(len(change)))


def die_with_parent() -> None:
    _prctl(_PR_SET_PDEATHSIG, 9)


def adopt_orphans() -> None:
    """Whatever our descendants leave behind becomes our child instead of that of process 1."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def set_dumpable(dumpable: bool) -> None:
    """Whether processes of the same user may look into this one."""
    _prctl(_PR_SET_DUMPABLE, int(dumpable))


def no_new_privileges() -> None:
    """No set-user-id program gives anything from here on."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def keep_capabilities_over_setuid() -> None:
    _prctl(_PR_SET_KEEPCAPS, 1)


def capabilities() -> set[int]:
    """Those that this process has."""
    has = ctypes.create_string_buffer(24)
    _call("capget", _CAPABILITY_HEADER, has)
    # Effective, permitted and inheritable ones, the lower 32 of each first.
    _, permitted, _, _, permitted_too, _ = struct.unpack("=6I", has.raw)
    return {number for number in range(64) if (permitted | permitted_too << 32) >> number & 1}


def set_capabilities(keep: Iterable[int] = ()) -> None:
    """Leave this process and the programs it starts `keep`, which it has, and no other capability."""
    kept = list(keep)
    mask = sum(1 << number for number in kept)
    _call("capset", _CAPABILITY_HEADER, struct.pack("=6I", mask, mask, mask, 0, 0, 0))
    for number in kept:
        _prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, number)


# Landlock: what files may be changed, without any privilege (Linux 5.13; signals 6.12).
_MAY_WRITE_FILE, _MAY_TRUNCATE, _MAY_SET_UP_DEVICE = 1 << 1, 1 << 14, 1 << 15
_MAY_CHANGE = {1: sum(1 << bit for bit in (1, *range(4, 13))), 2: 1 << 13, 3: _MAY_TRUNCATE, 5: _MAY_SET_UP_DEVICE}
LANDLOCK_KEEPS_FILES_FROM_ALL, LANDLOCK_KEEPS_PROCESSES = 3, 6
_SCOPE_ABSTRACT_SOCKETS_AND_SIGNALS = 3


def landlock_version() -> int:
    """0 where the kernel has none."""
    try:
        return _call("syscall", _LANDLOCK_CREATE, None, ctypes.c_size_t(0), 1)
    except OSError:
        return 0


def allow_changes_only_in(folders: Iterable[str], files: Iterable[str]) -> None:
    """Forbid this process and its children to write to anything else, trace other processes and, from Linux 6.12 on,
    signal them. Needs `no_new_privileges()`."""
    version = landlock_version()
    changes = sum(rights for since, rights in _MAY_CHANGE.items() if since <= version)
    scope = _SCOPE_ABSTRACT_SOCKETS_AND_SIGNALS if version >= LANDLOCK_KEEPS_PROCESSES else 0
    attributes = struct.pack("=QQQ", changes, 0, scope)[: 24 if version >= LANDLOCK_KEEPS_PROCESSES else 8]
    rules = _call("syscall", _LANDLOCK_CREATE, attributes, ctypes.c_size_t(len(attributes)), 0)
    try:
        for path, rights in (
            *((folder, changes) for folder in folders),
            *((file, changes & (_MAY_WRITE_FILE | _MAY_TRUNCATE | _MAY_SET_UP_DEVICE)) for file in files),
        ):
            descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
            try:
                _call("syscall", _LANDLOCK_ADD, rules, 1, struct.pack("=Qi", rights, descriptor), 0)
            finally:
                os.close(descriptor)
        _call("syscall", _LANDLOCK_RESTRICT, rules, 0)
    finally:
        os.close(rules)


def refuse_system_calls(program: bytes) -> None:
    """From here on, in this process and its children (seccomp). Needs `no_new_privileges()`."""
    instructions = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("@HP", len(program) // 8, ctypes.addressof(instructions))
    _call("prctl", _PR_SET_SECCOMP, ctypes.c_ulong(2), header, ctypes.c_ulong(0), ctypes.c_ulong(0))
