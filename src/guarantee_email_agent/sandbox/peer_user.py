"""Whose program is at the other end of a connection on loopback, as Linux tells it in /proc/net."""

from __future__ import annotations

import contextlib
import os
import pwd
import socket
import sys
from typing import Final

FIRST_USER: Final = 1_879_048_192
"""Users from here on are those that sandboxes run as: one each, numbered by the port."""
_PORTS: Final = 65_536
_ESTABLISHED: Final = b"01"
# A program may reach an IPv4 address over an IPv6 socket, as ::ffff:127.0.0.1.
_TABLES: Final = (("/proc/self/net/tcp", ""), ("/proc/self/net/tcp6", "0000000000000000" + "FFFF0000"))


def is_same_user(connection: socket.socket) -> bool:
    """Whether the other end is ours to serve: our user's, root's, and, for root, those of no account (our judges')."""
    user = _user_of(connection)
    if user is None:
        return False
    if user in (0, os.geteuid()):
        return True
    if os.geteuid() != 0 or FIRST_USER <= user < FIRST_USER + _PORTS:
        return False
    with contextlib.suppress(KeyError):
        pwd.getpwuid(user)
        return False
    return True


def _user_of(connection: socket.socket) -> int | None:
    """The user at the other end; None where the kernel does not tell, as once that end is closed."""
    try:
        ours, theirs = connection.getsockname(), connection.getpeername()
    except OSError:
        return None
    for path, prefix in _TABLES:
        entry = f"{prefix}{_hex(theirs)} {prefix}{_hex(ours)} ".encode()
        with contextlib.suppress(OSError), open(path, "rb") as file:
            for line in file:
                if entry in line:
                    fields = line.split()
                    # Of a closed one it says root, whoever's it was.
                    return int(fields[7]) if fields[3] == _ESTABLISHED else None
    return None


def _hex(address: tuple[str, int]) -> str:
    """As the kernel writes it: the bytes of the address in the machine's order."""
    packed = socket.inet_aton(address[0])
    return f"{int.from_bytes(packed, sys.byteorder):08X}:{address[1]:04X}"
