"""Messages between us and the judge's server: two lengths, a JSON header, and a body that only the two ends read."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Mapping
from typing import Any

_LENGTHS = struct.Struct("!QQ")


def send(sock: socket.socket, header: Mapping[str, Any], body: bytes = b"") -> None:
    """Raises OSError where the other end is gone."""
    head = json.dumps(header).encode()
    sock.sendall(_LENGTHS.pack(len(head), len(body)) + head)
    if body:  # without one the other end may be done, and gone
        sock.sendall(body)


def receive(sock: socket.socket) -> tuple[dict[str, Any], bytes]:
    """The next message. Raises EOFError where the other end is gone, TimeoutError by the socket's own timeout."""
    head_length, body_length = _LENGTHS.unpack(_exactly(sock, _LENGTHS.size))
    header: dict[str, Any] = json.loads(_exactly(sock, head_length))
    return header, _exactly(sock, body_length)


def _exactly(sock: socket.socket, length: int) -> bytes:
    received = bytearray()
    while len(received) < length:
        try:
            part = sock.recv(min(length - len(received), 1 << 20))
        except ConnectionError:
            part = b""
        if not part:
            raise EOFError("the other end closed the channel")
        received += part
    return bytes(received)
