"""What we and the judge's server exchange: the limits of a judge, the isolation that it has, and the messages.

A message is two lengths, a JSON header, and a body that only the two ends read.
"""

from __future__ import annotations

import json
import socket
import struct
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MIB = 1 << 20
LINUX = sys.platform == "linux"
_LENGTHS = struct.Struct("!QQ")

NOT_STARTED = 70
"""Exit code of a judge's process that got no further than us."""


@dataclass(frozen=True, slots=True)
class JudgeLimits:
    """The most that one judge, with everything it starts, may take.

    memory_mb: MiB, of each process when it asks for memory and of all its processes together while they run.
    file_mb, temp_mb: MiB, of one file and of the temporary folder as a whole.
    processes: processes and threads at the same time; open_files: per process.
    cpu_s: seconds of processor time per process; None: as much as fits into the judge's time.
    output_bytes: how much of what it prints is kept; the rest is read and dropped.
    verdict_bytes: the size of what it returns, as JSON.
    """

    memory_mb: int = 1024
    file_mb: int = 64
    temp_mb: int = 256
    processes: int = 64
    open_files: int = 256
    cpu_s: float | None = None
    output_bytes: int = 20_000
    verdict_bytes: int = 1_000_000


@dataclass(frozen=True, slots=True)
class Isolation:
    """What holds for judges here. `why` says why there is no more; empty where everything holds.

    namespaces: no other process is visible to a judge, and all that it started ends in one step.
    network_blocked: it has no network, except where its task asks for it.
    files_protected: it changes the content of no file outside its temporary folder.
    processes_protected: it cannot stop or change a process that it did not start.
    processes_limited: `JudgeLimits.processes` holds.
    """

    namespaces: bool = False
    network_blocked: bool = False
    files_protected: bool = False
    processes_protected: bool = False
    processes_limited: bool = False
    why: str = ""


def send(sock: socket.socket, header: Mapping[str, Any], body: bytes = b"") -> None:
    """Raises OSError where the other end is gone."""
    head = json.dumps(header).encode()
    sock.sendall(_LENGTHS.pack(len(head), len(body)) + head)
    if body:  # without one the other end may be done, and gone
        sock.sendall(body)


def receive(sock: socket.socket) -> tuple[dict[str, Any], bytes]:
    """The next message. Raises EOFError where the other end is gone, TimeoutError by the socket's own timeout."""
    head_length, body_length = _LENGTHS.unpack(_receive_exactly(sock, _LENGTHS.size))
    header: dict[str, Any] = json.loads(_receive_exactly(sock, head_length))
    return header, _receive_exactly(sock, body_length)


def _receive_exactly(sock: socket.socket, length: int) -> bytes:
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
