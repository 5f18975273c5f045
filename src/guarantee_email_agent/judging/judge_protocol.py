"""What we, a judge's server and its supervisor exchange: limits, the isolation that there is, and messages.

A message is two lengths, a JSON header, and a body that only the two ends read; open files may come with it.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import sys
from collections.abc import Mapping, Sequence
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
    attributes_protected: nor permissions and times of one.
    processes_protected: it cannot stop or change a process that it did not start.
    processes_limited: `JudgeLimits.processes` holds.
    locks_separate: what it locks or takes from a named pipe in a folder of the host is its own.
    """

    namespaces: bool = False
    network_blocked: bool = False
    files_protected: bool = False
    attributes_protected: bool = False
    processes_protected: bool = False
    processes_limited: bool = False
    locks_separate: bool = False
    why: str = ""

    def weakness(self) -> str | None:
        """What a judge can do here that it cannot do elsewhere, in a sentence; None where everything holds."""
        can = {
            "see other processes": self.namespaces,
            "change your files": self.files_protected,
            "change permissions and times of your files": self.attributes_protected or not self.files_protected,
            "stop other processes of yours": self.processes_protected,
            "start processes without limit": self.processes_limited,
            "lock your files and empty named pipes": self.locks_separate,
            "use the whole network": self.network_blocked,
            "reach the whole network where it may look into a sandbox": self.namespaces or not self.network_blocked,
        }
        weaknesses = [what for what, prevented in can.items() if not prevented]
        if not weaknesses:
            return None
        why = f" (no namespaces: {self.why})" if self.why else ""
        return f"Judges are isolated less than usual{why}: a judge can {', '.join(weaknesses)}. See docs/security.md"


def send(sock: socket.socket, header: Mapping[str, Any], body: bytes = b"", descriptors: Sequence[int] = ()) -> None:
    """Raises OSError where the other end is gone. descriptors: of open files, which the other end gets, too."""
    head = json.dumps(header).encode()
    lengths = _LENGTHS.pack(len(head), len(body))
    if descriptors:
        socket.send_fds(sock, [lengths], descriptors)
        lengths = b""
    sock.sendall(lengths + head)
    if body:  # without one the other end may be done, and gone
        sock.sendall(body)


def receive(sock: socket.socket) -> tuple[dict[str, Any], bytes, list[int]]:
    """The next message: header, body, descriptors. Raises EOFError where the other end is gone, TimeoutError by the
    socket's own timeout."""
    start, descriptors = receive_descriptors(sock, _LENGTHS.size)
    try:
        head_length, body_length = _LENGTHS.unpack(start + _receive_exactly(sock, _LENGTHS.size - len(start)))
        header: dict[str, Any] = json.loads(_receive_exactly(sock, head_length))
        return header, _receive_exactly(sock, body_length), descriptors
    except BaseException:
        for descriptor in descriptors:
            os.close(descriptor)
        raise


def receive_descriptors(sock: socket.socket, length: int) -> tuple[bytes, list[int]]:
    """Up to `length` bytes and the open files that came with them. Raises as `receive`."""
    try:
        start, descriptors, _, _ = socket.recv_fds(sock, length, 1, getattr(socket, "MSG_CMSG_CLOEXEC", 0))
    except ConnectionError:
        start, descriptors = b"", []
    if not start:
        raise EOFError("the other end closed the channel")
    return start, descriptors


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
