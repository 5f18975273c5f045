"""Whose the other end of a connection on this machine is: TCP has no SO_PEERCRED, so the kernel is asked.

Where it lacks what answers (sock_diag(7), its module tcp_diag), its tables tell the same a hundred times slower.
"""

from __future__ import annotations

import socket
import struct
import sys
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Final, NamedTuple

_ESTABLISHED: Final = 1
_TABLES: Final = {4: "/proc/self/net/tcp", 6: "/proc/self/net/tcp6"}
_ALL_USERS: Final = ["0", "0", "4294967295"]

_SOCK_DIAG, _BY_FAMILY, _REQUEST = 4, 20, 1  # linux/netlink.h, linux/sock_diag.h
_HEADER: Final = struct.Struct("=IHHII")
_NO_COOKIE: Final = 0xFFFFFFFF
_FACTS: Final = struct.Struct("=BB62xII")  # struct inet_diag_msg: family, state, then user, inode
_WAIT_S: Final = 1.0

_Address = tuple[str, int]


class _Socket(NamedTuple):
    state: int
    user: int
    inode: int


def owner_of(connection: socket.socket) -> int | None:
    """The user that made the socket at the other end, whoever holds it now.

    None where that cannot be told: the other end is closed or closing, or not in our network namespace, or its user
    has no number in our user namespace.
    """
    try:
        ours, theirs = connection.getsockname()[:2], connection.getpeername()[:2]
        found = _ask_kernel(theirs, ours) or _find_in_tables(theirs, ours)
        # Its port may meanwhile be another's. As long as our end has noticed nothing, it is not.
        state = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]
    except OSError:
        return None
    # A socket that nobody holds has no inode, and counts as root's.
    if found is None or found.state != _ESTABLISHED or found.inode == 0 or state != _ESTABLISHED:
        return None
    return None if found.user == stand_in_user() else found.user


def stand_in_user() -> int | None:
    """The number that the kernel gives for every user that our user namespace has none for; None where it has all."""
    with suppress(FileNotFoundError), open("/proc/self/uid_map", encoding="ascii") as file:
        if file.read().split() != _ALL_USERS:
            return int(Path("/proc/sys/kernel/overflowuid").read_text("ascii"))
    return None


def _ask_kernel(local: _Address, remote: _Address) -> _Socket | None:
    """None where there is no such socket, or no answer."""
    family = socket.AF_INET if ip_address(local[0]).version == 4 else socket.AF_INET6
    addresses = (ip_address(address).packed.ljust(16, b"\0") for address, _ in (local, remote))
    question = b"".join(
        (
            struct.pack("=BBBBI", family, socket.IPPROTO_TCP, 0, 0, 1 << _ESTABLISHED),
            struct.pack(">HH", local[1], remote[1]),
            *addresses,
            struct.pack("=III", 0, _NO_COOKIE, _NO_COOKIE),
        )
    )
    with suppress(OSError), socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as kernel:
        kernel.settimeout(_WAIT_S)
        kernel.connect((0, 0))  # takes messages of the kernel alone
        kernel.send(_HEADER.pack(_HEADER.size + len(question), _BY_FAMILY, _REQUEST, 1, 0) + question)
        answer = kernel.recv(4096)
        if _HEADER.unpack_from(answer)[1] == _BY_FAMILY:
            _, state, user, inode = _FACTS.unpack_from(answer, _HEADER.size)
            return _Socket(state, user, inode)
    return None


def _find_in_tables(local: _Address, remote: _Address) -> _Socket | None:
    """As proc(5) describes /proc/net/tcp."""
    places = [(_TABLES[ip_address(local[0]).version], local[0], remote[0])]
    if "." in local[0]:
        # The other end may be an IPv6 socket that reached us by the IPv4 address within it.
        places.append((_TABLES[6], f"::ffff:{local[0]}", f"::ffff:{remote[0]}"))
    for table, own, other in places:
        entry = f"{_hex(own)}:{local[1]:04X} {_hex(other)}:{remote[1]:04X} ".encode()
        with suppress(OSError), open(table, "rb") as file:
            for line in file:
                if entry in line:
                    fields = line.split()
                    return _Socket(int(fields[3], 16), int(fields[7]), int(fields[9]))
    return None


def _hex(address: str) -> str:
    """As the kernel writes it: each four bytes in the machine's order."""
    packed = ip_address(address).packed
    words = (packed[at : at + 4] for at in range(0, len(packed), 4))
    return "".join(f"{int.from_bytes(word, sys.byteorder):08X}" for word in words)
