"""This machine by its loopback address, and a socket that servers listen on there."""

from __future__ import annotations

import ipaddress
import socket
from contextlib import suppress
from typing import Final

HOST: Final = "127.0.0.1"
_BACKLOG: Final = 128


def listen_on_loopback(port: int = 0) -> socket.socket:
    """port: 0 for any that is free. Raises OSError.

    The socket is named as TCP, unlike that of `socket.create_server`: asyncio turns Nagle's algorithm off for such
    alone. With it, every answer after the first on a connection waits 40 ms for an acknowledgement.
    """
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((HOST, port))
        listener.listen(_BACKLOG)
    except BaseException:
        listener.close()
        raise
    return listener


def is_loopback(host: str) -> bool:
    """Whether a host is this machine by its very name: where no proxy stands, and a password may go without TLS."""
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"
