"""The filter for system calls, run step by step as the kernel does."""

import errno
import operator
import struct

import pytest

from guarantee_email_agent.isolation.seccomp import filter_program

ALLOWED, KILLED = 0x7FFF0000, 0x80000000
X86, ARM = 0xC000003E, 0xC00000B7


def _decision(number: int, *arguments: int, machine: str = "x86_64", architecture: int = X86) -> int:
    program = filter_program(machine)
    assert program is not None
    data = struct.pack("<IIQ6Q", number, architecture, 0, *(*arguments, 0, 0, 0, 0, 0, 0)[:6])
    steps = list(struct.iter_unpack("<HBBI", program))
    at, value = 0, 0
    tests = {0x15: operator.eq, 0x35: operator.ge, 0x45: operator.and_}
    while True:
        code, if_true, if_false, constant = steps[at]
        at += 1
        if code == 0x06:
            return int(constant)
        if code == 0x20:
            value = int.from_bytes(data[constant : constant + 4], "little")
        else:
            at += if_true if tests[code](value, constant) else if_false


def _refused(error: int) -> int:
    return 0x00050000 | error


def test_usual_calls_pass() -> None:
    assert {_decision(number) for number in (0, 1, 2, 9, 57, 59, 231, 257)} == {ALLOWED}


@pytest.mark.parametrize(
    ("calls", "error"),
    [
        (
            {
                "mount": 165,
                "pivot_root": 155,
                "bpf": 321,
                "ptrace": 101,
                "open_by_handle_at": 304,
                "open_tree_attr": 467,
            },
            errno.EPERM,
        ),
        ({"memfd_create": 319, "clone3": 435, "io_uring_setup": 425, "vmsplice": 278}, errno.ENOSYS),
        ({"io_setup": 206, "inotify_init": 253, "inotify_init1": 294, "fanotify_init": 300}, errno.ENOSYS),
    ],
    ids=["those that change the machine", "those that have a substitute look absent", "so do those of shared tables"],
)
def test_calls_are_refused(calls: dict[str, int], error: int) -> None:
    assert {name: _decision(number) for name, number in calls.items()} == dict.fromkeys(calls, _refused(error))


def test_a_process_may_be_made_but_no_user_namespace() -> None:
    assert _decision(56, 0x01200011) == ALLOWED
    assert _decision(56, 0x10000011) == _refused(errno.EPERM)
    assert _decision(272, 0x10000000) == _refused(errno.EPERM)


@pytest.mark.parametrize("number", [41, 53])
def test_only_some_kinds_of_sockets_pass(number: int) -> None:
    assert {_decision(number, family) for family in (1, 2, 10, 16)} == {ALLOWED}
    assert {_decision(number, family) for family in (0, 17, 38, 40, 44)} == {_refused(errno.EAFNOSUPPORT)}


def test_a_set_of_semaphores_is_small() -> None:
    assert _decision(64, 0, 32) == ALLOWED
    assert _decision(64, 0, 33) == _refused(errno.ENOSPC)
    assert _decision(190, 0, 33, machine="aarch64", architecture=ARM) == _refused(errno.ENOSPC)


def test_other_ways_into_the_kernel_are_closed() -> None:
    assert _decision(165, architecture=0x40000003) == KILLED
    assert _decision(0x40000000 | 165) == _refused(errno.ENOSYS)


def test_the_other_processor_has_its_own_numbers() -> None:
    assert _decision(40, machine="aarch64", architecture=ARM) == _refused(errno.EPERM)
    assert _decision(198, 40, machine="aarch64", architecture=ARM) == _refused(errno.EAFNOSUPPORT)
    assert _decision(64, machine="aarch64", architecture=ARM) == ALLOWED


def test_a_processor_that_is_not_known_has_no_filter() -> None:
    assert filter_program("riscv64") is None
