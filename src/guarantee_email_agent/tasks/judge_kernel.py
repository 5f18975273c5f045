"""The Linux system calls that isolation needs and Python has no function for. All raise OSError where they fail."""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from collections.abc import Iterable

CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x20000, 1 << 27, 1 << 28, 1 << 29, 1 << 30
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REC, MS_PRIVATE = 2, 4, 8, 0x4000, 0x40000

_libc = ctypes.CDLL(None, use_errno=True)

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_KEEPCAPS, _PR_SET_SECCOMP = 1, 4, 8, 22
_PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT = 36, 38, 47
_PR_CAP_AMBIENT_RAISE = 2
CAP_DAC_READ_SEARCH = 2
_CAPABILITY_VERSION = 0x20080522

# These numbers are the same on every architecture: they came after the tables were merged.
_MOUNT_SETATTR, _LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 442, 444, 445, 446
_AT_FDCWD, _AT_RECURSIVE, _MOUNT_ATTR_RDONLY = -100, 0x8000, 1


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


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    _call("mount", source.encode(), os.fsencode(target), kind.encode(), ctypes.c_ulong(flags), options.encode())


def unmount(target: str) -> None:
    """At once for everybody, even where something still uses it (MNT_DETACH)."""
    _call("umount2", os.fsencode(target), 2)


def make_all_mounts_read_only() -> None:
    """Linux 5.12."""
    attributes = struct.pack("=QQQQ", _MOUNT_ATTR_RDONLY, 0, 0, 0)
    _call("syscall", _MOUNT_SETATTR, _AT_FDCWD, b"/", _AT_RECURSIVE, attributes, ctypes.c_size_t(len(attributes)))


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


def set_capabilities(keep: Iterable[int] = ()) -> None:
    """Leave this process and the programs it starts `keep`, of those it has, and no other capability."""
    header = struct.pack("=Ii", _CAPABILITY_VERSION, 0)
    has = ctypes.create_string_buffer(24)
    _call("capget", header, has)
    permitted = struct.unpack("=6I", has.raw)[1]
    kept = [number for number in keep if permitted >> number & 1]
    mask = sum(1 << number for number in kept)
    _call("capset", header, struct.pack("=6I", mask, mask, mask, 0, 0, 0))
    for number in kept:
        _prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, number)


# --- Landlock: what files may be changed, without any privilege (Linux 5.13; signals 6.12) ---

_MAY_WRITE_FILE, _MAY_TRUNCATE = 1 << 1, 1 << 14
_MAY_CHANGE = {1: sum(1 << bit for bit in (1, *range(4, 13))), 2: 1 << 13, 3: _MAY_TRUNCATE}
LANDLOCK_KEEPS_PROCESSES = 6
_SCOPE_ABSTRACT_SOCKETS_AND_SIGNALS = 3


def landlock_version() -> int:
    """0 where the kernel has none."""
    try:
        return _call("syscall", _LANDLOCK_CREATE, None, ctypes.c_size_t(0), 1)
    except OSError:
        return 0


def allow_changes_only_in(folders: Iterable[str], files: Iterable[str]) -> None:
    """From here on this process and its children write to nothing else, trace nobody else, and signal nobody else
    where the kernel can forbid that (Linux 6.12). Needs `no_new_privileges()`."""
    version = landlock_version()
    changes = sum(rights for since, rights in _MAY_CHANGE.items() if since <= version)
    scope = _SCOPE_ABSTRACT_SOCKETS_AND_SIGNALS if version >= LANDLOCK_KEEPS_PROCESSES else 0
    attributes = struct.pack("=QQQ", changes, 0, scope)[: 24 if version >= LANDLOCK_KEEPS_PROCESSES else 8]
    rules = _call("syscall", _LANDLOCK_CREATE, attributes, ctypes.c_size_t(len(attributes)), 0)
    try:
        for place, rights in (
            *((folder, changes) for folder in folders),
            *((file, changes & (_MAY_WRITE_FILE | _MAY_TRUNCATE)) for file in files),
        ):
            descriptor = os.open(place, os.O_PATH | os.O_CLOEXEC)
            try:
                rule = struct.pack("=Qi", rights, descriptor)
                _call("syscall", _LANDLOCK_ADD, rules, 1, rule, 0)
            finally:
                os.close(descriptor)
        _call("syscall", _LANDLOCK_RESTRICT, rules, 0)
    finally:
        os.close(rules)


# --- seccomp: system calls refused, without any privilege ---

# Memory that belongs to no process, and a way around this very filter.
_REFUSED = {"x86_64": (319, 447, 29, 425), "aarch64": (279, 447, 194, 425)}  # memfd_*, shmget, io_uring_setup
_SOCKET = {"x86_64": 41, "aarch64": 198}
_AUDIT_ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_ALLOW, _REFUSE, _AF_UNIX, _ENETUNREACH, _ENOSYS = 0x7FFF0000, 0x00050000, 1, 101, 38
_LOAD, _JUMP_IF_EQUAL, _JUMP_IF_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16


def can_refuse_system_calls() -> bool:
    return platform.machine() in _SOCKET and struct.calcsize("P") == 8


def refuse_system_calls(*, network: bool) -> None:
    """No memory outside of a process, and without `network` no socket but a Unix one. Needs `no_new_privileges()`."""
    machine = platform.machine()
    program = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_JUMP_IF_EQUAL, 1, 0, _AUDIT_ARCHITECTURE[machine]),
        (_RETURN, 0, 0, _REFUSE | _ENOSYS),  # a 32-bit program, whose calls have other numbers
        (_LOAD, 0, 0, _NUMBER),
        (_JUMP_IF_AT_LEAST, 0, 1, 0x40000000),  # the x32 numbering
        (_RETURN, 0, 0, _REFUSE | _ENOSYS),
    ]
    for number in _REFUSED[machine]:
        program += [(_JUMP_IF_EQUAL, 0, 1, number), (_RETURN, 0, 0, _REFUSE | _ENOSYS)]
    if not network:
        program += [
            (_JUMP_IF_EQUAL, 0, 3, _SOCKET[machine]),
            (_LOAD, 0, 0, _FIRST_ARGUMENT),
            (_JUMP_IF_EQUAL, 1, 0, _AF_UNIX),
            (_RETURN, 0, 0, _REFUSE | _ENETUNREACH),
        ]
    program.append((_RETURN, 0, 0, _ALLOW))
    instructions = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in program))
    header = struct.pack("@HP", len(program), ctypes.addressof(instructions))
    _call("prctl", _PR_SET_SECCOMP, ctypes.c_ulong(2), header, ctypes.c_ulong(0), ctypes.c_ulong(0))
