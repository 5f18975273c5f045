"""Filters for system calls (seccomp) that close what namespaces leave open.

Refused are: new namespaces and mounts (a file system of one's own has no size limit), kinds of sockets that no network
namespace holds back, memory that shows in no process's account, buffers larger than usual, files by their number, which
leads past all mounts, changes to the limits and priority of a sandbox's first process, what the machine, or a user, has
but some of for all programs together, and parts of the kernel that no task needs. To a judge also: what outlives a
process, shared memory of no file, what reaches another process, sockets.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal

# Classic BPF (linux/filter.h): operation codes of the few instructions that are needed.
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06

# struct seccomp_data: where the number of the call, the architecture and the arguments' low halves stand.
_NUMBER, _ARCHITECTURE = 0, 4
_ARGUMENTS: Final = (16, 24, 32, 40, 48, 56)

_ALLOW, _KILL, _ERROR = 0x7FFF0000, 0x80000000, 0x00050000
_X32: Final = 0x40000000
_NEW_USER_NAMESPACE: Final = 0x10000000

_SOCKETS: Final = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, 16)  # 16: AF_NETLINK, which lists interfaces

# name → (number on x86_64, number on aarch64)
_REFUSED: Final[Mapping[str, tuple[int, int]]] = {
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "setns": (308, 268),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "open_tree_attr": (467, 467),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kexec_load": (246, 104),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "acct": (163, 89),
    "swapon": (167, 224),
    "quotactl": (179, 60),
    "vhangup": (153, 58),
    "pidfd_getfd": (438, 438),
    "process_mrelease": (448, 448),
    "kcmp": (312, 272),
}
# These look as if the kernel did not have them, so that programs use what they used before.
_ABSENT: Final[Mapping[str, tuple[int, int]]] = {
    "clone3": (435, 435),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "msgget": (68, 186),
    "mq_open": (240, 180),
    "vmsplice": (278, 75),
    "io_setup": (206, 0),
    "inotify_init": (253, 26),  # on ARM there is but the other one
    "inotify_init1": (294, 26),
    "fanotify_init": (300, 262),
}
_CLONE: Final = (56, 220)
_UNSHARE: Final = (272, 97)
_SOCKET: Final = (41, 198)
_SOCKETPAIR: Final = (53, 199)
_SETSOCKOPT, _FCNTL = (54, 208), (72, 25)
_BUFFER_SIZES: Final = {1: (socket.SOL_SOCKET,), 2: (socket.SO_SNDBUF, socket.SO_RCVBUF, 32, 33)}  # 32, 33: …FORCE
_PIPE_SIZE: Final = {1: (1031,)}
# What changes a process's priority or limits: numbers, the alternatives of arguments (argument → values) that mean
# process 1 or all of a user's, and those (argument → value) that mean the caller itself, which is all that a judge may.
_PRIORITY_AND_LIMITS: Final = (
    ((302, 261), ({0: (1,)},), {0: 0}),  # prlimit64
    ((141, 140), ({1: (1,)}, {0: (os.PRIO_USER,)}), {0: 0, 1: 0}),  # setpriority
    ((251, 30), ({1: (1,)}, {0: (3,)}), {0: 1, 1: 0}),  # ioprio_set
    ((203, 122), ({0: (1,)},), {0: 0}),  # sched_setaffinity
    ((144, 119), ({0: (1,)},), {0: 0}),  # sched_setscheduler
    ((142, 118), ({0: (1,)},), {0: 0}),  # sched_setparam
    ((314, 274), ({0: (1,)},), {0: 0}),  # sched_setattr
)
# Nor may a judge move the memory of others.
_MOVE_MEMORY: Final = ((256, 238), (279, 239))  # migrate_pages, move_pages
_SEMGET: Final = (64, 190)
_MMAP: Final = (9, 222)
_MAP_SHARED_ANONYMOUS: Final = 0x21
# What they make outlives its process.
_PERSISTENT: Final[Mapping[str, tuple[int, int]]] = {"shmget": (29, 194), "semget": _SEMGET}
_PROCESS_MADVISE: Final = (440, 440)
_MAX_SEMAPHORES: Final = 32
"""In one set; there may be 32,000 sets, and what they take stays when their processes end."""
Sockets = Literal["none", "internet", "all"]
"""Which ones a judge may have. Not even Unix ones by default: programs of this machine listen behind those. A pair that
is connected to itself is none."""

_MACHINES: Final = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}


def filter_program(machine: str | None = None, judge_sockets: Sockets | None = None) -> bytes | None:
    """The filter as the kernel and bubblewrap take it; None for a processor that we have no numbers for.

    judge_sockets: for a judge, to whom more is refused, which ones it may have.
    """
    column, architecture = _MACHINES.get(machine or os.uname().machine, (None, 0))
    if column is None:
        return None
    steps = [
        *(_step(_LOAD, _ARCHITECTURE), _step(_EQUAL, architecture, 1, 0), _step(_RETURN, _KILL)),
        _step(_LOAD, _NUMBER),
        *(_step(_AT_LEAST, _X32, 0, 1), _step(_RETURN, _ERROR | errno.ENOSYS)),
    ]
    if judge_sockets is not None:  # first: what they allow is allowed below, too
        steps += _judge_steps(column, judge_sockets)
    for calls, code in ((_REFUSED, errno.EPERM), (_ABSENT, errno.ENOSYS)):
        steps += _refusals((numbers[column] for numbers in calls.values()), code)
    for numbers in (_CLONE, _UNSHARE):
        steps += (
            _step(_EQUAL, numbers[column], 0, 4),
            _step(_LOAD, _ARGUMENTS[0]),
            _step(_ANY_BIT, _NEW_USER_NAMESPACE, 0, 1),
            _step(_RETURN, _ERROR | errno.EPERM),
            _step(_RETURN, _ALLOW),
        )
    for numbers in (_SOCKET, _SOCKETPAIR):
        # Past the families that are fine stands the refusal.
        steps += (_step(_EQUAL, numbers[column], 0, len(_SOCKETS) + 3), _step(_LOAD, _ARGUMENTS[0]))
        steps += (_step(_EQUAL, family, len(_SOCKETS) - passed, 0) for passed, family in enumerate(_SOCKETS))
        steps += (_step(_RETURN, _ERROR | errno.EAFNOSUPPORT), _step(_RETURN, _ALLOW))
    # Buffers keep the size that they begin with: nobody's account has what waits in them. Programs take a refusal to
    # give a socket's another size for a broken one, so they are told that it has it, as the kernel does with too much.
    steps += _refuse_with(_SETSOCKOPT[column], 0, _BUFFER_SIZES)
    steps += _refuse_with(_FCNTL[column], errno.EPERM, _PIPE_SIZE)
    # The sandbox's first process has the agent's user, counts its memory, and has to come to its turn for that.
    for numbers, alternatives, _ in _PRIORITY_AND_LIMITS:
        steps += _refuse_with(numbers[column], errno.EPERM, *alternatives)
    steps += (
        _step(_EQUAL, _SEMGET[column], 0, 3),
        _step(_LOAD, _ARGUMENTS[1]),
        _step(_AT_LEAST, _MAX_SEMAPHORES + 1, 0, 1),
        _step(_RETURN, _ERROR | errno.ENOSPC),
        _step(_RETURN, _ALLOW),
    )
    return b"".join(steps)


def can_filter() -> bool:
    """Whether we have the numbers of this machine's system calls."""
    return os.uname().machine in _MACHINES and struct.calcsize("P") == 8


def _judge_steps(column: int, sockets: Sockets) -> list[bytes]:
    steps = _refusals((numbers[column] for numbers in _PERSISTENT.values()), errno.ENOSYS)
    steps += _refusals([_PROCESS_MADVISE[column]], errno.EPERM)
    for numbers, _, own in _PRIORITY_AND_LIMITS:
        steps += _only_with(numbers[column], own)
    for numbers in _MOVE_MEMORY:
        steps += _only_with(numbers[column], {0: 0})
    if sockets == "none":
        steps += _refusals([_SOCKET[column]], errno.ENETUNREACH)
    elif sockets == "internet":
        steps += (
            *(_step(_EQUAL, _SOCKET[column], 0, 5), _step(_LOAD, _ARGUMENTS[0])),
            *(_step(_EQUAL, socket.AF_INET, 2, 0), _step(_EQUAL, socket.AF_INET6, 1, 0)),
            *(_step(_RETURN, _ERROR | errno.ENETUNREACH), _step(_RETURN, _ALLOW)),
        )
    return [
        *steps,
        _step(_EQUAL, _MMAP[column], 0, 5),
        _step(_LOAD, _ARGUMENTS[3]),
        _step(_AND, _MAP_SHARED_ANONYMOUS),
        _step(_EQUAL, _MAP_SHARED_ANONYMOUS, 0, 1),
        _step(_RETURN, _ERROR | errno.EPERM),
        _step(_RETURN, _ALLOW),
    ]


def _only_with(number: int, wanted: Mapping[int, int]) -> list[bytes]:
    """Allow a call where the arguments are as `wanted`, and refuse it otherwise."""
    left = 2 * len(wanted)
    steps = [_step(_EQUAL, number, 0, left + 2)]
    for argument, value in wanted.items():
        left -= 2
        steps += (_step(_LOAD, _ARGUMENTS[argument]), _step(_EQUAL, value, 0, left + 1))
    return [*steps, _step(_RETURN, _ALLOW), _step(_RETURN, _ERROR | errno.EPERM)]


def _refuse_with(number: int, code: int, *alternatives: Mapping[int, Sequence[int]]) -> list[bytes]:
    """Refuse a call where each argument of one alternative has one of its values (argument → values)."""
    steps: list[bytes] = []
    for wanted in alternatives:
        left = sum(1 + len(values) for values in wanted.values())
        for argument, values in wanted.items():
            steps.append(_step(_LOAD, _ARGUMENTS[argument]))
            left -= 1 + len(values)
            for others, value in zip(reversed(range(len(values))), values, strict=True):
                steps.append(_step(_EQUAL, value, others, 0 if others else left + 1))
        steps.append(_step(_RETURN, _ERROR | code))
    return [_step(_EQUAL, number, 0, len(steps) + 1), *steps, _step(_RETURN, _ALLOW)]


def _refusals(numbers: Iterable[int], code: int) -> list[bytes]:
    return [step for number in numbers for step in (_step(_EQUAL, number, 0, 1), _step(_RETURN, _ERROR | code))]


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
